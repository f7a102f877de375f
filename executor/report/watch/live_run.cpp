// SPDX-License-Identifier: Apache-2.0
#include "executor/report/watch/live_run.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "executor/config/files/schedule_file.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/config/toml.hpp"
#include "executor/plan/plan_file.hpp"
#include "executor/records/record_json.hpp"
#include "executor/records/record_line.hpp"
#include "executor/records/record_text.hpp"
#include "executor/records/run_lock.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

std::string text_of(fs::path const& path)
{
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

/// The file of the plan in force: of the newest generation, else the one that the run began with.
fs::path newest_plan(fs::path const& folder)
{
    std::int64_t newest = -1;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
        auto const name = entry->path().filename().string();
        std::int64_t generation = 0;
        constexpr std::string_view prefix = "plan-";
        if (!name.starts_with(prefix) || !name.ends_with(".json")) {
            continue;
        }
        auto const read = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), generation);
        if (read.ec == std::errc{} && std::string_view{read.ptr} == ".json") {
            newest = std::max(newest, generation);
        }
    }
    return newest < 0 ? folder / "plan.json" : folder / fmt::format("plan-{}.json", newest);
}

double number_of(json const& record, char const* key)
{
    auto const found = record.find(key);
    return found != record.end() && found->is_number() ? found->get<double>() : 0.0;
}

/// The sum of all members whose names begin and end so.
bytes sum_of(json const& record, std::string_view begin)
{
    bytes sum;
    for (auto const& [key, value] : record.items()) {
        if (key.starts_with(begin) && key.ends_with("_bytes")) {
            sum += bytes{value.get<std::int64_t>()};
        }
    }
    return sum;
}

}  // namespace

run_follower::run_follower(std::string folder) : run_{.folder = folder}, metrics_{std::move(folder) + "/metrics.jsonl"} {}

bool run_follower::poll()
{
    auto const held = run_lock::is_held(run_.folder);  // before the records: when none holds it, these are all
    was_held_ = was_held_ || held == true;
    auto const news = metrics_.poll();
    if (news.began_again) {
        live_run fresh{.folder = run_.folder};
        fresh.phase = run_.phase;
        fresh.config = std::move(run_.config);
        fresh.plan_in_force = std::move(run_.plan_in_force);
        fresh.readings = run_.readings + 1;
        run_ = std::move(fresh);
        has_started_ = false;
    }
    for (auto const& line : news.lines) {
        take(line);
    }
    auto const before = run_.phase;
    if (news.is_there && (news.began_again || !news.lines.empty() || !run_.plan_in_force)) {
        read_other_files();
    }
    if (news.is_there) {
        run_.phase = phase_now(held);
    }
    return news.began_again || !news.lines.empty() || run_.phase != before;
}

void run_follower::take(std::string const& line)
{
    try {
        if (auto const record = record_of(line)) {
            take(*record);
        } else {
            ++run_.strange_lines;
        }
    } catch (json_error const&) {
        ++run_.strange_lines;
    }
}

void run_follower::start(json const& record)
{
    auto const step = integer_member(record, "step", {});
    run_.steps = step;
    run_.losses.erase(run_.losses.upper_bound(step), run_.losses.end());
    run_.started = number_of(record, "unix_time_s");
    run_.ranks = static_cast<int>(record.value("ranks", std::int64_t{0}));
    if (std::exchange(run_.end, std::nullopt) || run_.recoveries.empty()) {
        run_.checkpoints = 0;
        run_.recoveries.clear();
    }
    run_.last.reset();
    run_.pace = {};
    if (run_.validation && run_.validation->step > step_id{step}) {
        run_.validation.reset();
    }
    has_started_ = true;
    looks_at_ranks_ = most_looks;
}

void run_follower::take(json const& record)
{
    auto const kind = record.value("kind", "");
    auto const time = number_of(record, "unix_time_s");
    run_.newest = std::max(run_.newest, time);
    auto const event = [&](std::string text, bool is_note = false) { run_.events.push_back({time, std::move(text), is_note}); };
    if (kind == "step" || kind == "redo" || kind == "undone") {
        run_.energy += joules{number_of(record, "energy_J")};
    }
    if (kind == "step") {
        auto step = step_of(record);
        run_.steps = step.step.value + 1;
        run_.losses[run_.steps] = step.loss;
        run_.ranks = step.ranks;
        if (std::isfinite(step.duration.count)) {
            run_.pace.add(step.duration);
        }
        step.of_steps = run_.of_steps;
        run_.last = step;
        has_started_ = false;
    } else if (kind == "start") {
        start(record);
    } else if (kind == "evaluation") {
        auto const loss = record.find("loss");
        auto const value = loss != record.end() && loss->is_number() ? loss->get<double>() : std::nan("");
        run_.validation = evaluation_record{{integer_member(record, "step", {})}, value};
        event(fmt::format("after step {}: validation loss {}", run_.validation->step.value, loss_text(value)));
    } else if (kind == "recovery") {
        looks_at_ranks_ = most_looks;
        run_.recoveries.push_back(recovery_of(record));
        run_.ranks = run_.recoveries.back().ranks;
        event(recovery_line(run_.recoveries.back()));
    } else if (kind == "checkpoint") {
        run_.last_checkpoint = checkpoint_of(record);
        ++run_.checkpoints;
        event(checkpoint_line(*run_.last_checkpoint));
    } else if (kind == "safe") {
        run_.last_safe = level_of(record);
        event(level_line(*run_.last_safe));
    } else if (kind == "note") {
        event(text_member(record, "message"), true);
    } else if (kind == "end") {
        looks_at_ranks_ = most_looks;
        run_.end =
            run_end{static_cast<int>(integer_member(record, "exit_code", {0, 255})), text_member(record, "message"), integer_member(record, "steps", {})};
    }
}

void run_follower::read_other_files()
{
    fs::path const folder{run_.folder};
    if (auto text = text_of(folder / "config.toml"); text != config_text_) {
        config_text_ = std::move(text);
        try {
            run_.config = read_config_file((folder / "config.toml").string(), {}, find_schedule_or_name).config;
        } catch (std::runtime_error const&) {  // in the making, or of another version
        }
    }
    run_.of_steps = run_.config ? run_.config->train.steps : 0;
    if (run_.last) {
        run_.last->of_steps = run_.of_steps;
    }
    read_plan();
    if (looks_at_ranks_ > 0) {
        --looks_at_ranks_;
        read_ranks();
    }
}

void run_follower::read_plan()
{
    auto const file = newest_plan(run_.folder);
    std::error_code error;
    auto const changed = fs::last_write_time(file, error);
    if (error) {
        return;
    }
    auto const name = fmt::format("{} {} {}", file.string(), changed.time_since_epoch().count(), fs::file_size(file, error));
    if (name == plan_text_) {
        return;
    }
    try {
        run_.plan_in_force = read_plan_file(file.string(), find_schedule_or_name);
        plan_text_ = name;
    } catch (std::runtime_error const&) {  // in the making: the next look reads it
    }
}

void run_follower::read_ranks()
{
    char here[256] = "";
    ::gethostname(here, sizeof here - 1);
    run_.fullest.reset();
    bool any = false;
    bool all_here = true;
    std::error_code error;
    for (fs::directory_iterator entry(fs::path{run_.folder} / "ranks", error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
        if (entry->path().extension() != ".json") {
            continue;
        }
        try {
            auto const record = record_of(text_of(entry->path()));
            if (!record) {
                continue;
            }
            any = true;
            all_here = all_here && record->value("host", "") == here;
            live_memory const one{{static_cast<std::int32_t>(record->value("rank", 0))}, sum_of(*record, "planned_"), sum_of(*record, "measured_")};
            if (one.measured > bytes{} &&
                (!run_.fullest || one.measured > run_.fullest->measured || (one.measured == run_.fullest->measured && one.rank < run_.fullest->rank))) {
                run_.fullest = one;
            }
        } catch (json_error const&) {  // of another program
        }
    }
    is_all_here_ = any && all_here;
}

run_phase run_follower::phase_now(std::optional<bool> held) const
{
    bool const sees_lock = was_held_ || is_all_here_;
    if (held != true && run_.end) {
        return run_phase::ended;
    }
    if (held == false && sees_lock) {
        return run_phase::stopped;
    }
    return has_started_ || !run_.last ? run_phase::starting : run_phase::running;
}

}  // namespace rheo::inline v0
