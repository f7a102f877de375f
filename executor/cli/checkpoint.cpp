// SPDX-License-Identifier: Apache-2.0
// `rheo checkpoint`: the checkpoints of a run listed, verified, pruned and copied.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/manage/copy.hpp"
#include "executor/checkpoint/manage/list.hpp"
#include "executor/checkpoint/manage/prune.hpp"
#include "executor/checkpoint/manage/verify.hpp"
#include "executor/cli/command_line.hpp"
#include "executor/cli/commands.hpp"
#include "executor/cli/size_text.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/records/run_lock.hpp"
#include "rheo/units/exit_code.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

int threads_of(checkpoint_command_options const& options)
{
    return options.threads > 0 ? options.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void print(json const& answer) { fmt::print("{}\n", format_json(answer, 1)); }

bool is_checkpoint(fs::path const& folder)
{
    std::error_code ignored;
    return step_of(folder).has_value() || fs::exists(folder / "manifest.json", ignored);
}

/// The checkpoints of a run folder that are meant, ascending: that of --step, or all. @throws exit_error: there is none
std::vector<fs::path> checkpoints_in(checkpoint_command_options const& options)
{
    if (is_checkpoint(options.from)) {
        return {options.from};
    }
    std::vector<fs::path> folders;
    for (auto const step : checkpoint_steps(options.from)) {
        if (options.step < 0 || options.step == step.value) {
            folders.push_back(checkpoint_folder(options.from, step));
        }
    }
    if (folders.empty()) {
        throw exit_error{exit_code::bad_data, options.step < 0 ? fmt::format("'{}' is no checkpoint and has none", options.from)
                                                               : fmt::format("'{}' has no checkpoint of step {}", options.from, options.step)};
    }
    return folders;
}

std::string time_text(fs::file_time_type time)
{
    auto const since = std::chrono::file_clock::to_sys(time);
    return fmt::format("{:%Y-%m-%d %H:%M:%S}",
                       fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::system_clock::duration>(since))));
}

constexpr char const* name_of(checkpoint_place place)
{
    return place == checkpoint_place::published ? "published" : place == checkpoint_place::set_aside ? "set aside" : "unfinished";
}

int list(checkpoint_command_options const& options)
{
    if (is_checkpoint(options.from)) {
        throw exit_error{exit_code::usage, fmt::format("checkpoint list takes a run folder, but '{}' is a checkpoint", options.from)};
    }
    auto const all = list_checkpoints(options.from);
    auto const is_newest = [&](listed_checkpoint const& one) {
        return std::none_of(all.begin(), all.end(),
                            [&](auto const& other) { return other.place == checkpoint_place::published && other.problem.empty() && other.step > one.step; });
    };
    json rows = json::array();
    bytes sum;
    for (auto const& one : all) {
        sum += one.size;
        auto const name = fs::relative(one.folder, options.from).string();
        bool const opens = one.place != checkpoint_place::unfinished && one.problem.empty();
        if (options.json) {
            rows.push_back({{"folder", name},
                            {"place", name_of(one.place)},
                            {"step", one.step ? json(one.step->value) : json()},
                            {"bytes", one.size.count},
                            {"written", time_text(one.written)},
                            {"digest", one.digest ? json(to_string(*one.digest)) : json()},
                            {"version", opens ? json(one.version) : json()},
                            {"problem", one.problem.empty() ? json() : json(one.problem)}});
            continue;
        }
        auto const about = opens                                       ? fmt::format("{}  {} files", to_string(*one.digest), one.files)
                           : one.place == checkpoint_place::unfinished ? std::string{"unfinished"}
                                                                       : one.problem;
        fmt::print("{:<18}  {:>12}  {}  {}{}\n", name, size_text(one.size), time_text(one.written), about,
                   one.place == checkpoint_place::set_aside ? "  set aside"
                   : opens && is_newest(one)                ? "  resumes here"
                                                            : "");
    }
    json local_rows = json::array();
    for (auto const& one : list_local_checkpoints(options.from)) {
        std::vector<std::int32_t> ranks;
        std::transform(one.parts.begin(), one.parts.end(), std::back_inserter(ranks), [](rank_id rank) { return rank.value; });
        local_rows.push_back({{"folder", one.folder.string()}, {"step", one.step.value}, {"parts_of_ranks", ranks}, {"bytes", one.size.count}});
        if (!options.json) {
            fmt::print("step-{:<13}  {:>12}  node-local: part{} of rank{} {} in {}\n", one.step.value, size_text(one.size), ranks.size() == 1 ? "" : "s",
                       ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "), one.folder.string());
        }
    }
    if (options.json) {
        print({{"schema", 1}, {"checkpoints", rows}, {"node_local", local_rows}});
    } else {
        fmt::print("{}: {} checkpoint{}, {}\n", options.from, all.size(), all.size() == 1 ? "" : "s", size_text(sum));
    }
    return 0;
}

int verify(checkpoint_command_options const& options)
{
    json rows = json::array();
    bool all_right = true;
    for (auto const& folder : checkpoints_in(options)) {
        json row{{"folder", folder.string()}};
        try {
            auto const result = verify_checkpoint(folder, threads_of(options));
            json bad = json::array();
            for (auto const& one : result.found) {
                bad.push_back({{"file", one.file.filename().string()}, {"begin", one.begin}, {"end", one.end}, {"what", one.what}});
                if (!options.json) {
                    fmt::print("{}: bytes {} to {} are bad: {}\n", one.file.string(), one.begin, one.end, one.what);
                }
            }
            if (!options.json && result.found.empty()) {
                fmt::print("{}: {} are as the manifest says\n", folder.string(), size_text(result.size));
            }
            all_right = all_right && result.found.empty();
            row.update({{"right", result.found.empty()}, {"bytes", result.size.count}, {"bad", bad}});
        } catch (exit_error const& error) {
            all_right = false;
            row.update({{"right", false}, {"problem", error.what()}});
            if (!options.json) {
                fmt::print("{}\n", error.what());
            }
        }
        rows.push_back(std::move(row));
    }
    if (options.json) {
        print({{"schema", 1}, {"right", all_right}, {"checkpoints", rows}});
    }
    return number_of(all_right ? exit_code::done : exit_code::bad_data);
}

int prune(checkpoint_command_options const& options)
{
    if (options.keep == 0) {
        throw exit_error{exit_code::usage, "checkpoint prune needs --keep N: how many of the newest stay"};
    }
    if (run_lock::is_held(options.from).value_or(false)) {
        throw exit_error{exit_code::environment,
                         fmt::format("a job runs in '{}' and removes its checkpoints itself, by checkpoint.keep_last; prune when it has ended", options.from)};
    }
    auto const done = prune_checkpoints(options.from, options.keep, options.leftovers, options.dry_run, threads_of(options));
    if (options.json) {
        json removed = json::array();
        for (auto const& folder : done.removed) {
            removed.push_back(folder.string());
        }
        print({{"schema", 1}, {"dry_run", options.dry_run}, {"removed", removed}, {"bytes", done.size.count}, {"kept", done.kept}});
        return 0;
    }
    auto const* const verb = options.dry_run ? "would be removed" : "removed";
    for (auto const& folder : done.removed) {
        fmt::print("{}: {}\n", folder.string(), verb);
    }
    for (auto const& sentence : done.kept) {
        fmt::print("kept: {}\n", sentence);
    }
    fmt::print("{} of {} {} in all\n", size_text(done.size), done.removed.size() == 1 ? "1 checkpoint" : fmt::format("{} checkpoints", done.removed.size()),
               verb);
    return 0;
}

int copy(checkpoint_command_options const& options)
{
    if (options.to.empty()) {
        throw exit_error{exit_code::usage, "checkpoint copy needs the run folder that gets it: rheo checkpoint copy RUN TO"};
    }
    auto const done = copy_checkpoint(checkpoints_in(options).back(), options.to, threads_of(options));
    if (options.json) {
        print({{"schema", 1}, {"folder", done.folder.string()}, {"bytes", done.size.count}});
    } else {
        fmt::print("{}: {}, verified\n", done.folder.string(), size_text(done.size));
    }
    return 0;
}

}  // namespace

int manage_checkpoints(checkpoint_command_options const& options)
{
    if (!options.to.empty() && options.action != "copy") {
        throw exit_error{exit_code::usage, fmt::format("checkpoint {} takes one folder, but '{}' is a second one", options.action, options.to)};
    }
    return options.action == "list" ? list(options) : options.action == "verify" ? verify(options) : options.action == "prune" ? prune(options) : copy(options);
}

void command_line::add_checkpoint()
{
    auto& command = *app.add_subcommand("checkpoint", "List, verify, prune or copy the checkpoints of a run.");
    command.callback([this] { chosen = [this] { return manage_checkpoints(checkpoint_); }; });
    auto& options = checkpoint_;
    command
        .add_option(
            "action", options.action,
            "list: what there is, and from which a run resumes. verify: every byte against the manifest; exit code 4 if some are bad. prune: remove old "
            "ones. copy: a verified copy in another run folder.")
        ->required()
        ->check(CLI::IsMember({"list", "verify", "prune", "copy"}))
        ->type_name("ACTION");
    command.add_option("from", options.from, "Run folder. verify, copy: or one checkpoint.")->required()->type_name("FOLDER");
    command.add_option("to", options.to, "copy: run folder that gets the checkpoint.")->type_name("RUN");
    command.add_option("--step", options.step, "verify, copy: the checkpoint of this step. Default: verify all, copy the newest.")
        ->check(CLI::NonNegativeNumber);
    command.add_option("--keep", options.keep, "prune: how many of the newest stay.")->check(CLI::Range(1, 1 << 20));
    command.add_flag("--leftovers", options.leftovers, "prune: also remove what was set aside, is unfinished or cannot be opened, up to the newest.");
    command.add_flag("--dry-run", options.dry_run, "prune: only say what would be removed.");
    command.add_option("--threads", options.threads, "Threads that verify. Default: one for each processor.")->check(CLI::Range(1, 1024));
    command.add_flag("--json", options.json, "Print the result as JSON.");
}

}  // namespace rheo::cli
