#pragma once
// SPDX-License-Identifier: Apache-2.0

// The cuts with the least makespan of the chosen schedule, its transfers and the real number of microbatches included:
// by branch and bound, so either the optimum or, when the effort is used up, the best found with a proven bound. Effort
// is counted, not timed, so that each rank finds the same cuts. A stage may take several devices of one node, any number
// of them, and none spans nodes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/detail/makespan_search.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct makespan_request {
    any_schedule schedule;
    int nodes;                             ///< whose devices are all used, as many on each as the prices are for
    int microbatches;                      ///< that the pipeline runs in a step
    std::optional<bytes> device_memory{};  ///< of one device; none: not looked at
    std::int64_t effort = 20'000'000;      ///< most instructions that the search replays: some 0.1 s
    int slices = 0;                        ///< of sequences, for families that cut them; 0: their own choice
    bool recompute = false;                ///< the memory is for stages that all recompute activations; the time that takes is not counted
};

struct makespan_split {
    std::vector<layer_id> cuts{};
    std::vector<int> devices{};  ///< per stage
    int ranks = 0;               ///< of the schedule's program: stages, or all devices where ranks have several
    seconds makespan{};
    seconds bound{};   ///< no cuts take less: proven
    int explored = 0;  ///< partial cuts whose makespan was computed

    friend constexpr bool operator==(makespan_split const&, makespan_split const&) = default;
    constexpr bool is_optimal() const { return bound == makespan; }
};

/// Ties go to the lexicographically smallest cuts, then devices. Schedules that put several stages on a rank, or two copies of
/// the model, take one device per rank.
/// @pre nodes, microbatches and effort are positive; recompute: nodes have one device
/// @return a split, or why there is none. Cost: that of `effort`, some more to close up (at most stages x layers x devices replays), and
/// O(stages x layers^2 x devices^2).
template <class OnlyWhenCalled = void>
constexpr result<makespan_split> optimal_makespan(stage_prices const& prices, makespan_request const& request)
{
    expects(request.nodes >= 1, "a pipeline takes at least one node");
    expects(request.microbatches >= 1, "a step needs at least one microbatch");
    expects(request.effort >= 1, "a search needs some effort");
    auto const devices = request.nodes * prices.devices_per_node();
    detail::best_split best{.effort = request.effort};
    std::string error;
    bool possible = false;
    for (int ranks = request.nodes; ranks <= devices; ++ranks) {
        auto const shape = on_slices(request.schedule, {.ranks = ranks, .microbatches = request.microbatches}, request.slices);
        if (auto const fault = error_of(request.schedule, shape); fault != shape_error::none) {
            error = message_of(fault);
            continue;
        }
        auto const program = make_program(request.schedule, shape);
        bool const one_each = program.placement.size() == program.rows.size();
        if (!one_each && ranks < devices) {
            continue;
        }
        if (stages_per_copy(program) > prices.layers()) {
            error = "there are more stages than layers";
            continue;
        }
        auto held = program;
        if (request.recompute) {
            held = with_recomputation(program);
        }
        detail::makespan_search search{prices, program, one_each && prices.devices_per_node() > 1 ? request.nodes : 0, request.device_memory, held, best};
        if (search.possible()) {
            search.run();
            possible = true;
        }
    }
    if (best.makespan == detail::no_partition) {
        if (possible || error.empty()) {
            error = "no cuts found whose stages fit into the memory of their devices";
            error += request.recompute ? ", not even when all activations are recomputed" : "";
        }
        return failure{error};
    }
    auto const bound = nanoseconds(static_cast<double>(std::min(best.open, best.makespan)));
    return makespan_split{best.cuts, best.devices, best.ranks, nanoseconds(static_cast<double>(best.makespan)), bound, best.explored};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<makespan_split> optimal_makespan<>(stage_prices const&, makespan_request const&);
#endif

}  // namespace rheo::inline v0
