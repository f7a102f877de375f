#pragma once
// SPDX-License-Identifier: Apache-2.0

// What of a half-done step is kept after a loss: which accumulators move to whom, which (use,
// microbatch) pairs no rank holds any more, and the work that makes exactly those again. Every survivor
// computes the same value from the same exchanged holdings; `salvage` (salvage.hpp) makes it.

#include <vector>

#include "rheo/topology/holdings.hpp"
#include "rheo/topology/microbatch_set.hpp"
#include "rheo/topology/microbatch_work.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// One accumulator (with its maximum and flag) that is sent to a rank which will answer for it.
struct accumulator_move {
    use_id use;
    rank_id from;
    rank_id to;
    microbatch_set done;  ///< the contributions in it

    friend constexpr bool operator==(accumulator_move const&, accumulator_move const&) = default;
};

struct salvage_plan {
    std::vector<layer_id> lost;                      ///< no survivor has a copy; then nothing else is planned
    std::vector<accumulator_move> moves;             ///< ascending by use, then by sender
    std::vector<use_holding> missing;                ///< per use (all uses, ascending): to be contributed again
    std::vector<std::vector<microbatch_work>> work;  ///< per pipeline, in the order in which it runs them
    std::vector<rank_holdings> after;                ///< per rank of the exchanged holdings: what it holds once merged
    bool in_place = false;                           ///< memory is short: accumulators, which are empty, make room for the copies (recover/in_place.hpp)
    bool more = false;                               ///< it is not all that the pipelines need: another round follows the merge

    friend constexpr bool operator==(salvage_plan const&, salvage_plan const&) = default;
};

/// True when the contribution of a microbatch to a use is missing, so that a section which runs what is
/// missing adds it; one that is not missing is computed on the way at most and must not be added again.
template <class OnlyWhenCalled = void>
constexpr bool misses(salvage_plan const& plan, use_id use, microbatch_id microbatch)
{
    return at(use) < plan.missing.size() && plan.missing[at(use)].done.contains(microbatch);
}

}  // namespace rheo::inline v0
