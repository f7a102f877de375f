// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/manage/prune.hpp"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_publish.hpp"
#include "executor/checkpoint/manage/list.hpp"
#include "executor/checkpoint/manage/verify.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

void remove(fs::path const& run_folder, listed_checkpoint const& one)
{
    if (one.place == checkpoint_place::published) {
        remove_checkpoint(run_folder, *one.step);
        return;
    }
    std::error_code error;
    fs::remove_all(one.folder, error);
    if (error) {
        throw exit_error{exit_code::environment, fmt::format("'{}' cannot be removed: {}", one.folder.string(), error.message())};
    }
    if (one.place == checkpoint_place::set_aside) {
        fs::remove(one.folder.parent_path(), error);  // which fails while something else is in it
    }
}

std::string why_kept(listed_checkpoint const& one)
{
    switch (one.place) {
    case checkpoint_place::set_aside: return fmt::format("'{}' was set aside", one.folder.string());
    case checkpoint_place::unfinished: return fmt::format("'{}' is unfinished", one.folder.string());
    case checkpoint_place::published: break;
    }
    return one.problem;
}

}  // namespace

pruning prune_checkpoints(fs::path const& run_folder, int keep, bool leftovers, bool dry_run, int threads)
{
    auto const all = list_checkpoints(run_folder);
    std::vector<step_id> good;
    for (auto const& one : all) {
        if (one.place == checkpoint_place::published && one.problem.empty()) {
            good.push_back(*one.step);
        }
    }
    if (good.empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has no checkpoint that can be opened, so none is removed", run_folder.string())};
    }
    auto const newest = good.back();
    auto const oldest_kept = good[good.size() - std::min(good.size(), static_cast<std::size_t>(keep))];
    pruning done;
    std::vector<listed_checkpoint const*> removed;
    for (auto const& one : all) {
        bool const opens = one.place == checkpoint_place::published && one.problem.empty();
        bool const is_older = one.place == checkpoint_place::set_aside || !one.step || *one.step <= newest;
        if (opens ? *one.step < oldest_kept : leftovers && is_older) {
            removed.push_back(&one);
        } else if (!opens) {
            done.kept.push_back(why_kept(one));
        }
    }
    if (removed.empty()) {
        return done;
    }
    auto const folder = checkpoint_folder(run_folder, newest);
    if (auto const bad = verify_checkpoint(folder, threads).found; !bad.empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("nothing is removed: '{}', the newest, has bad bytes from {} to {} of '{}' ({})", folder.string(),
                                                          bad.front().begin, bad.front().end, bad.front().file.filename().string(), bad.front().what)};
    }
    for (auto const* one : removed) {
        if (!dry_run) {
            remove(run_folder, *one);
        }
        done.removed.push_back(one->folder);
        done.size += one->size;
    }
    return done;
}

}  // namespace rheo::inline v0
