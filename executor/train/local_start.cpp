// SPDX-License-Identifier: Apache-2.0
#include "executor/train/local_start.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/checkpoint/levels/promotion.hpp"
#include "executor/checkpoint/levels/replica_routes.hpp"
#include "executor/state/collectives.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

int node_of(rank_id rank, run_config const& config) { return rank.value / config.plan.node_size; }

/// The newest step that has its name in the run folder, whether its bytes are right or not.
std::optional<step_id> newest_published(fs::path const& run_folder)
{
    auto steps = checkpoint_steps(run_folder);
    std::error_code error;
    std::erase_if(steps, [&](step_id step) { return !fs::exists(checkpoint_folder(run_folder, step) / "manifest.json", error); });
    return steps.empty() ? std::nullopt : std::optional{steps.back()};
}

/// What the first member reads in the run folder, on all.
struct run_before {
    run_identity run{};
    std::optional<step_id> published{};
    startup_error error{};  ///< on the first member
};

run_before look_at_run_folder(mpi::messenger& messages, fs::path const& run_folder)
{
    run_before found;
    std::vector<std::int64_t> words(2);
    if (messages.members().members.front() == messages.members().self) {
        try {
            found.run = identity_of(run_folder);
            found.published = newest_published(run_folder);
        } catch (exit_error const& error) {
            found.error = {error.code, error.what()};
            found.run = {};
        }
        words = {std::bit_cast<std::int64_t>(found.run.value), found.published ? found.published->value : -1};
    }
    broadcast(messages, words);
    found.run = {std::bit_cast<std::uint64_t>(words[0])};
    found.published = words[1] >= 0 ? std::optional{step_id{words[1]}} : std::nullopt;
    return found;
}

promotion promote(mpi::messenger& messages, run_config const& config, run_before const& before)
{
    auto const local = local_folder(config.checkpoint.local, node_of(messages.members().self, config), before.run);
    return promote_newest(messages, config.run.folder, local, before.published);
}

/// The marks of ranks that began in a folder: `.node-<n>.<launch>`.
std::string mark_of(int node, launch_id launch) { return fmt::format(".node-{}.{}", node, launch.value); }

/// @returns another node that sees the same folder; none: there is no such node
std::optional<int> node_beside(fs::path const& local, int node, int nodes, launch_id launch)
{
    std::error_code error;
    for (int other = 0; other < nodes; ++other) {
        if (other != node && fs::exists(local / mark_of(other, launch), error)) {
            return other;
        }
    }
    return std::nullopt;
}

/// What a node keeps: two checkpoints at a time, with copies of other nodes' parts.
std::int64_t local_bytes(run_config const& config, collection const& state, int nodes)
{
    return 2 * bytes_of(tensors_for_manifest(state)).count * (config.checkpoint.replicas + 1) / nodes;
}

}  // namespace

startup_error take_up_local(mpi::messenger& messages, run_config const& config, std::vector<std::string>& notes)
{
    auto const before = look_at_run_folder(messages, config.run.folder);
    if (before.run == run_identity{}) {
        return before.error;
    }
    auto taken = promote(messages, config, before);
    if (messages.members().members.front() != messages.members().self) {
        return {};
    }
    notes.insert(notes.end(), taken.notes.begin(), taken.notes.end());
    return taken.error.empty() ? startup_error{} : startup_error{exit_code::environment, taken.error};
}

std::vector<std::string> take_up_local(mpi::messenger& messages, run_config const& config, run_identity run)
{
    auto before = look_at_run_folder(messages, config.run.folder);
    before.run = run;
    auto taken = promote(messages, config, before);
    if (!taken.error.empty()) {
        taken.notes.push_back(taken.error);
    }
    return taken.notes;
}

startup_error begin_local(mpi::messenger& messages, run_config const& config, std::string const& folder, bool resumes, launch_id launch,
                          collection const& state, run_identity& run)
{
    auto const& members = messages.members();
    startup_error mine;
    std::vector<std::int64_t> words(1);
    if (members.members.front() == members.self) {
        try {
            run = resumes ? identity_of(folder) : run_identity{};
            run = run == run_identity{} ? give_identity(folder) : run;
        } catch (exit_error const& error) {
            mine = {error.code, error.what()};
        }
        words = {std::bit_cast<std::int64_t>(run.value)};
    }
    broadcast(messages, words);
    run = {std::bit_cast<std::uint64_t>(words[0])};
    auto const node = node_of(members.self, config);
    auto const nodes = node_of(members.members.back(), config) + 1;
    auto const local = local_folder(config.checkpoint.local, node, run);
    std::error_code error;
    fs::create_directories(local, error);
    if (error) {
        mine = {exit_code::environment, fmt::format("checkpoint.local: '{}' cannot be made: {}", local.string(), error.message())};
    }
    std::ofstream{local / mark_of(node, launch)} << "rheo\n";
    wait_for_all(messages);
    if (!mine && !fs::exists(local / mark_of(node, launch), error)) {
        mine = {exit_code::environment, fmt::format("checkpoint.local: '{}' cannot be written", local.string())};
    }
    if (auto const other = node_beside(local, node, nodes, launch); other && !mine) {
        mine = {exit_code::environment,
                fmt::format("checkpoint.local: nodes {} and {} have one folder, '{}': expected a folder of each node's own; {{node}} in its "
                            "path stands for the number of the node (plan.node_size = {})",
                            std::min(node, *other), std::max(node, *other), local.string(), config.plan.node_size)};
    }
    if (auto why = no_local_folder(local, local_bytes(config, state, nodes_of(members.members, config.plan.node_size))); !mine && !why.empty()) {
        mine = {exit_code::environment, fmt::format("checkpoint.local: {}", why)};
    }
    wait_for_all(messages);
    fs::remove(local / mark_of(node, launch), error);
    return mine;
}

}  // namespace rheo::inline v0
