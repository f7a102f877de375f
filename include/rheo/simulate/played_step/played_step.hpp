#pragma once
// SPDX-License-Identifier: Apache-2.0

// What playing a step on a network gives: how far each rank came, when it was through, and where its time went.

#include <cstddef>
#include <optional>
#include <vector>

#include "rheo/simulate/collectives/collective.hpp"
#include "rheo/simulate/loss.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/simulate/played_step/rank_step_times.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// How steps are played. @tparam Model of the network (network_model.hpp)
template <class Model>
struct step_rules {
    collective_form reduction = collective_form::slice_owner;  ///< what the executor does
    int sum_bytes = 8;                                         ///< of an element of sums, on the way to its owner
    std::optional<typename Model::rate> memory{};              ///< at which what came is added; none: in no time
    /// Above so many holders the messages of a rank in each half of a slice_owner or direct reduction are played as one.
    int most_exact_holders = 64;
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
