// SPDX-License-Identifier: Apache-2.0
#include "executor/records/monitor/tensorboard_log.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/records/record_line.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

constexpr std::string_view prefix = "events.out.tfevents.";

/// The end of metrics.jsonl from which a writer takes the newest steps: more than the last one can have left out.
constexpr std::streamoff newest_bytes = std::streamoff{1} << 18;

constexpr double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;

struct curve_source {
    char const* key;
    char const* tag;
    double unit = 1.0;
};

/// Of a step, in the words of those who train with PyTorch.
constexpr curve_source step_curves[] = {
    {"loss", "train/loss"},
    {"gradient_norm", "train/grad_norm"},
    {"learning_rate", "train/learning_rate"},
    {"tokens_per_s", "train/tokens_per_second"},
    {"mfu", "train/mfu"},
    {"duration_s", "train/step_seconds"},
    {"ranks", "train/ranks"},
    {"energy_J", "energy/joules_per_step"},
    {"energy_J_per_token", "energy/joules_per_token"},
    {"memory_bytes", "memory/process_gib", bytes_per_gib},
    {"state_and_activation_bytes", "memory/state_and_activations_gib", bytes_per_gib},
};

double now() { return std::chrono::duration<double>{std::chrono::system_clock::now().time_since_epoch()}.count(); }

/// The seconds in the names of the event files of a folder, which order them; none when there are none.
std::optional<std::int64_t> newest_file(std::string const& folder)
{
    std::optional<std::int64_t> newest;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
        auto const name = entry->path().filename().string();
        std::int64_t second = 0;
        if (name.starts_with(prefix) && std::from_chars(name.data() + prefix.size(), name.data() + name.size(), second).ec == std::errc{}) {
            newest = std::max(newest.value_or(second), second);
        }
    }
    return newest;
}

/// The points of the newest steps in metrics.jsonl. @param all  of all steps
std::vector<record_points> recorded_points(std::string const& folder, bool all)
{
    std::vector<record_points> found;
    std::istringstream lines{end_of_file(folder + "/metrics.jsonl", all ? std::numeric_limits<std::streamoff>::max() : newest_bytes)};
    for (std::string line; std::getline(lines, line);) {
        try {
            auto const record = record_of(line);
            auto points = record ? points_of(*record) : std::nullopt;
            bool const is_first_step = points && found.empty() && record->value("kind", "") == "step";
            if (points && (is_first_step || !found.empty())) {  // what stands before the first whole step belongs to steps that are not read
                found.push_back(std::move(*points));
            }
        } catch (json_error const&) {
            // another program's line, which the report will name
        }
    }
    return found;
}

}  // namespace

std::optional<record_points> points_of(json const& record)
{
    auto const kind = record.value("kind", "");
    if (kind != "step" && kind != "evaluation") {
        return std::nullopt;
    }
    auto const unix_time = record.find("unix_time_s");
    auto const step = record.value("step", std::int64_t{0}) + (kind == "step" ? 1 : 0);
    record_points result{step, unix_time != record.end() && unix_time->is_number() ? unix_time->get<double>() : now(), {}};
    auto const add = [&](curve_source const& curve) {
        if (auto const value = record.find(curve.key); value != record.end()) {
            result.points.push_back({curve.tag, value->is_number() ? value->get<double>() / curve.unit : std::numeric_limits<double>::quiet_NaN()});
        }
    };
    if (kind == "evaluation") {
        add({"loss", "validation/loss"});
    } else {
        std::for_each(std::begin(step_curves), std::end(step_curves), add);
    }
    return result;
}

std::string tensorboard_log::begin()
{
    auto const before = newest_file(folder_);
    auto const points = recorded_points(folder_, !before);
    try {
        if (!file_) {
            char host[256] = "";
            ::gethostname(host, sizeof host - 1);
            auto const second = std::max(static_cast<std::int64_t>(now()), before.value_or(0) + 1);
            file_ = appended_file{fmt::format("{}/{}{:010}.{}.{}", folder_, prefix, second, host, ::getpid())};
            file_.append(version_event(now()));
        }
    } catch (exit_error const& error) {  // a training does not end for it
        return fmt::format("{}; there are no curves for TensorBoard", error.what());
    }
    if (before) {
        file_.append(session_start_event(now(), points.empty() ? 0 : points.front().step));
    }
    for (auto const& p : points) {
        file_.append(scalars_event(p.unix_time, p.step, p.points));
    }
    return {};
}

void tensorboard_log::add(json const& record)
{
    if (!file_) {
        return;
    }
    if (auto const p = points_of(record)) {
        file_.append(scalars_event(p->unix_time, p->step, p->points));
    }
}

}  // namespace rheo::inline v0
