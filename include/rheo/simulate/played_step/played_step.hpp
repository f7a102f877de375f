#pragma once
// SPDX-License-Identifier: Apache-2.0

// What playing a step on a network gives: how far each rank came, when it was through, and where its time went.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "rheo/simulate/loss.hpp"
#include "rheo/simulate/network/nccl.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/simulate/played_step/rank_step_times.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// How the holders of a unit sum it.
enum class step_reduction : unsigned char {
    slice_owner,  ///< what the executor does: integers straight to the owner of each slice, values back
    node_first,   ///< the same in each node, and then between nodes by slices
    ring,
    tree,
    direct,
    nccl,  ///< an all-reduce of NCCL, in the time that NCCL expects of it, beside links
};

/// The names in options.
inline constexpr std::array<std::string_view, 6> step_reduction_names{"slice-owner", "node-first", "ring", "tree", "direct", "nccl"};

constexpr std::string_view name_of(step_reduction reduction) { return step_reduction_names[static_cast<std::size_t>(reduction)]; }

/// How steps are played. @tparam Model of the network (network_model.hpp)
template <class Model>
struct step_rules {
    step_reduction reduction = step_reduction::slice_owner;
    int sum_bytes = 8;  ///< of an element of sums, on the way to its owner
    /// At which what came is added; none: in no time. Sums node first, and those of more than `most_exact_holders`, are added in no time.
    std::optional<typename Model::rate> memory{};
    /// Above so many holders what a rank sends in a round of slice_owner, node_first or direct is one message for each level of the network.
    int most_exact_holders = 64;
    std::optional<nccl_machine> nccl{};  ///< for reductions by NCCL; ranks and nodes are those of the holders
    bool each_pipeline = false;          ///< also those that are alike: else one stands for them
    /// Row of all pipelines -> place in its program -> time of a computation that does not take that of its stage; it outlives the step. None: all do.
    std::vector<std::vector<seconds>> const* times = nullptr;
    /// Links of ranks that are not those of their levels; they outlive the step. None: all are.
    rank_links<typename Model::link> const* links = nullptr;
};

/// Ranks that a step loses. Survivors go on until `heard`, and finish the computation at hand.
struct step_losses {
    array_view<modelled_loss const> losses;
    seconds heard;  ///< since launch
};

/// The rank at a position of a pipeline; where ranks share the stages, the first of them.
template <class Time = seconds>
struct played_row {
    pipeline_id pipeline;
    int position;
    rank_id rank;
    std::size_t done = 0;  ///< instructions that have ended
    Time end{};            ///< of the last one, from the begin of the step; with losses: when it has left the step
    rank_step_times<Time> times{};

    friend constexpr bool operator==(played_row, played_row) = default;
};

template <class Time = seconds>
struct played_step {
    std::vector<played_row<Time>> rows;  ///< by pipeline, then position
    Time end{};                          ///< of the update; with losses: when the last survivor has left

    friend bool operator==(played_step const&, played_step const&) = default;
};

}  // namespace rheo::inline v0
