// SPDX-License-Identifier: Apache-2.0
#include "executor/records/earlier_run.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/records/record_line.hpp"
#include "executor/records/run_folder.hpp"
#include "rheo/recover/outcome.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

/// The newest step whose checkpoint the records say is there, or that a launch continued from; none when they know of none.
std::optional<step_id> recorded_checkpoint(fs::path const& folder)
{
    std::optional<step_id> newest;
    std::ifstream file{folder / "metrics.jsonl"};
    for (std::string line; std::getline(file, line);) {
        if (line.find("checkpoint") == line.npos) {
            continue;
        }
        try {
            auto const record = record_of(line);
            auto const kind = record ? record->value("kind", "") : std::string{};
            if (kind == "checkpoint" || (kind == "start" && record->value("from_checkpoint", false))) {
                newest = std::max(newest.value_or(step_id{0}), step_id{record->value("step", std::int64_t{0})});
            }
        } catch (json_error const&) {
            // another program's line, which the report will name
        }
    }
    return newest;
}

/// What `--resume never` does about it, in the words of every refusal.
std::string restart_advice(fs::path const& folder)
{
    return fmt::format("or start with --resume never, which sets everything of this run aside in '{}' and begins at step 0", (folder / "before-<k>").string());
}

double number_or_not_finite(nlohmann::json const& record, char const* key)
{
    auto const found = record.find(key);
    return found != record.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

earlier_state find_earlier_state(fs::path const& folder)
{
    earlier_state result;
    auto found = find_newest_checkpoint(folder);
    auto const recorded = recorded_checkpoint(folder);
    if (recorded && !fs::exists(checkpoint_folder(folder, *recorded)) && (!found.newest || found.newest->step() < *recorded)) {
        result.skipped.push_back(fmt::format("'{}' is not there, but 'metrics.jsonl' says that it was written: expected a folder with manifest.json",
                                             checkpoint_folder(folder, *recorded).string()));
    }
    result.skipped.insert(result.skipped.end(), found.skipped.begin(), found.skipped.end());
    result.newest = std::move(found.newest);
    if (!result.newest && !result.skipped.empty()) {
        for (auto const& message : result.skipped) {
            result.error += message + "; restore it from a copy, or wait until it can be read, and start the same command again\n";
        }
        result.error += fmt::format(
            "run folder '{}': no checkpoint can be read, so the run is neither resumed nor restarted, and nothing was changed: restore one of them, {}",
            folder.string(), restart_advice(folder));
    }
    return result;
}

std::vector<std::int64_t> steps_so_far::words() const { return {loss ? 1 : 0, std::bit_cast<std::int64_t>(loss.value_or(0)), skipped, evaluations_not_finite}; }

steps_so_far steps_so_far::of(std::vector<std::int64_t> const& words, std::size_t first)
{
    auto const known = words.at(first) != 0;
    return {known ? std::optional{std::bit_cast<double>(words.at(first + 1))} : std::nullopt, words.at(first + 2), words.at(first + 3)};
}

steps_so_far steps_of_records(fs::path const& folder, step_id from)
{
    steps_so_far result;
    std::set<std::int64_t> skipped;  // a step may be recorded twice, in records of older versions
    std::set<std::int64_t> evaluations;
    auto const last = fmt::format("\"step\":{},", from.value - 1);
    std::ifstream file{folder / "metrics.jsonl"};
    for (std::string line; std::getline(file, line);) {
        if (line.find(last) == line.npos && line.find("\"skipped\":true") == line.npos && line.find("\"loss\":null") == line.npos) {
            continue;
        }
        try {
            auto const record = record_of(line);
            auto const kind = record ? record->value("kind", "") : std::string{};
            auto const step = record ? record->value("step", std::int64_t{-1}) : -1;
            if (step < 0 || step >= from.value) {
                continue;
            }
            if (kind == "step") {
                auto const is_skipped = record->find("skipped");
                if (is_skipped != record->end() && is_skipped->is_boolean() && is_skipped->get<bool>()) {
                    skipped.insert(step);
                }
                if (step == from.value - 1) {
                    result.loss = number_or_not_finite(*record, "loss");
                }
            } else if (kind == "evaluation" && !std::isfinite(number_or_not_finite(*record, "loss"))) {
                evaluations.insert(step);
            }
        } catch (json_error const&) {
            // another program's line, which the report will name
        }
    }
    result.skipped = std::ssize(skipped);
    result.evaluations_not_finite = std::ssize(evaluations);
    return result;
}

std::optional<ended_run> finished_run(fs::path const& folder, step_id steps, checkpoint const& newest)
{
    std::error_code error;
    auto const path = folder / "report.json";
    if (!fs::exists(path, error)) {
        return std::nullopt;
    }
    try {
        auto end = read_report(path.string());
        auto const& r = end.record;
        bool const is_whole = (r.exit_code == 0 || r.exit_code == number_of(exit_code::not_finite)) && r.steps == steps && r.digest_known;
        bool const same_state = newest.step() < steps || (newest.step() == steps && newest.manifest().digest() == r.digest);
        return is_whole && same_state ? std::optional{std::move(end)} : std::nullopt;
    } catch (exit_error const&) {
        return std::nullopt;  // a report can be computed again
    }
}

fs::path set_run_aside(fs::path const& folder)
{
    std::error_code error;
    std::vector<fs::path> names;
    for (auto const step : checkpoint_steps(folder)) {  // first of all: a run whose checkpoints are only partly there is rejected, not continued
        names.push_back(checkpoint_folder(folder, step).filename());
    }
    for (auto const* name : {"metrics.jsonl", "report.json", "trace.json"}) {
        if (fs::exists(folder / name, error)) {
            names.emplace_back(name);
        }
    }
    if (names.empty()) {
        return {};
    }
    for (auto const* name : {"report.html", "trace", "ranks", "plan.json", "command", "config.toml", "run-id"}) {
        if (fs::exists(folder / name, error)) {
            names.emplace_back(name);
        }
    }
    for (auto const& entry : fs::directory_iterator(folder, error)) {
        auto const name = entry.path().filename();
        if (name.string().starts_with("reshape-") || name.string().starts_with("plan-") ||
            name.string().starts_with("events.out.tfevents.")) {  // an answer; a request stays for the next run
            names.push_back(name);
        }
    }
    try {
        auto const aside = make_aside(folder);
        for (auto const& name : names) {
            rename_file(folder / name, aside / name);
        }
        sync_folder(aside);
        sync_folder(folder);
        return aside;
    } catch (exit_error const& why) {
        throw exit_error{exit_code::environment, fmt::format("run folder '{}': an earlier run cannot be set aside: {}", folder.string(), why.what())};
    }
}

}  // namespace rheo::inline v0
