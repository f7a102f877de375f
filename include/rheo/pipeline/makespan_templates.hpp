#pragma once
// SPDX-License-Identifier: Apache-2.0

// Templates with everything that planning knows of them: cuts and devices with the least makespan of the schedule, how
// near to the optimum that is proved to be, what the fullest device holds, how many microbatches fit. What instantiation
// compares them by is a line through their makespans at the microbatches that they are cut for and at twice as many: the schedules
// of this library grow by the slowest stage per microbatch once they are full.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/partition/optimal_makespan.hpp"
#include "rheo/partition/split_makespan.hpp"
#include "rheo/partition/split_memory.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/partition/steady_microbatches.hpp"
#include "rheo/pipeline/cost.hpp"
#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/families/schedule_form.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct makespan_template {
    int nodes;  ///< that an instance takes
    result<makespan_split> split;
    any_schedule schedule;  ///< that it is cut for
    int microbatches{};     ///< that it is cut for: those asked for, or as many as make a steady step (partition/steady_microbatches.hpp)
    std::string instead{};  ///< why that is not the one asked for; empty when it is
    pipeline_cost cost{};
    bytes fullest{};          ///< of the devices, with the microbatches asked for
    int most_microbatches{};  ///< that fit, and any fewer, at least those it is cut for and at most as many as were asked about; 0: memory was not looked at

    friend constexpr bool operator==(makespan_template const&, makespan_template const&) = default;

    /// With so many microbatches: what the split says, or what its line says where it was cut for fewer. @pre it has a split
    constexpr seconds makespan_at(int count) const { return count > microbatches ? time_of(cost, count) : split->makespan; }
};

struct makespan_templates_request {
    any_schedule schedule;                    ///< what it cannot be made for at the microbatches below it is cut for at the fewest more that it can
    size_range nodes;                         ///< sizes of templates
    int microbatches;                         ///< that a pipeline runs in a step; templates are cut for no more than make a steady step
    int most_microbatches;                    ///< the step's: no pipeline runs more
    std::optional<bytes> device_memory{};     ///< of one device; none: not looked at
    std::int64_t effort = 20'000'000;         ///< for each template, see makespan_request
    std::optional<any_schedule> otherwise{};  ///< for sizes that the schedule, with other stages than one per rank, cannot have; none: these have no template
    bool recompute = false;                   ///< what does not fit into the memory may recompute activations; stages have one device then
    int slices = 0;                           ///< of sequences, for families that cut them; 0: their own choice
};

namespace detail {

constexpr schedule_shape shape_of(any_schedule schedule, int ranks, int microbatches, makespan_templates_request const& request)
{
    return on_slices(schedule, {.ranks = ranks, .microbatches = microbatches}, request.slices);
}

/// The fewest microbatches, from those asked for or a steady step's on, for which the family can be made on so many ranks; those asked for when it cannot.
template <class OnlyWhenCalled = void>
constexpr int microbatches_to_cut_for(any_schedule schedule, int ranks, int devices, makespan_templates_request const& request)
{
    for (int m = steady_microbatches<OnlyWhenCalled>(schedule, devices, request.microbatches, request.slices); m <= request.most_microbatches; ++m) {
        if (error_of(schedule, shape_of(schedule, ranks, m, request)) == shape_error::none) {
            return m;
        }
    }
    return request.microbatches;
}

/// What the rank with the most work computes in a step.
template <class OnlyWhenCalled = void>
constexpr std::int64_t busiest_rank(stage_prices const& prices, makespan_split const& split, program const& p)
{
    auto const times = times_of_split(prices, p.slices, split.cuts, split.devices);
    std::int64_t most = 0;
    for (auto const& row : p.rows) {
        std::int64_t work = 0;
        for (auto const& i : row) {
            work += is_compute(i.kind) ? time_of_instruction(times[static_cast<std::size_t>(i.stage) % times.size()], i.kind) : 0;
        }
        most = std::max(most, work);
    }
    return most;
}

/// The line through the makespans at m and at 2 m microbatches; where the schedule cannot have twice as many, through none.
template <class OnlyWhenCalled = void>
constexpr pipeline_cost cost_of_split(stage_prices const& prices, makespan_split const& split, any_schedule schedule, int microbatches,
                                      makespan_templates_request const& request)
{
    auto const twice = shape_of(schedule, split.ranks, 2 * microbatches, request);
    if (error_of(schedule, twice) != shape_error::none) {
        return {seconds{0.0}, split.makespan / static_cast<double>(microbatches)};
    }
    auto const once = in_whole_nanoseconds(split.makespan);
    auto const more = in_whole_nanoseconds(makespan_of(prices, make_program(schedule, twice), split.cuts, split.devices)) - once;
    auto each = std::max<std::int64_t>(1, more / microbatches);
    if (microbatches < request.microbatches) {  // no slower than its busiest rank, which a longer step waits for in the end
        each = std::max(each, busiest_rank(prices, split, make_program(schedule, shape_of(schedule, split.ranks, microbatches, request))) / microbatches);
    }
    return {nanoseconds(static_cast<double>(std::max<std::int64_t>(0, once - microbatches * each))), nanoseconds(static_cast<double>(each))};
}

}  // namespace detail

namespace detail {

template <class OnlyWhenCalled = void>
constexpr makespan_template make_makespan_template(stage_prices const& prices, makespan_templates_request const& request, any_schedule schedule, int nodes)
{
    auto const microbatches = microbatches_to_cut_for<OnlyWhenCalled>(schedule, nodes, nodes * prices.devices_per_node(), request);
    makespan_template made{nodes, optimal_makespan(prices, {schedule, nodes, microbatches, request.device_memory, request.effort, request.slices}), schedule,
                           microbatches};
    bool const again = !made.split && request.recompute && request.device_memory;
    if (again) {
        made.split = optimal_makespan(prices, {schedule, nodes, microbatches, request.device_memory, request.effort, request.slices, true});
    }
    if (!made.split) {
        return made;
    }
    auto p = make_program(schedule, shape_of(schedule, made.split->ranks, microbatches, request));
    if (again) {
        p = with_recomputation(p);
    }
    made.fullest = fullest_device(prices, p, made.split->cuts, made.split->devices);
    made.cost = cost_of_split(prices, *made.split, schedule, microbatches, request);
    if (request.device_memory) {
        made.most_microbatches = microbatches_that_fit(prices, schedule, made.split->cuts, made.split->devices, made.split->ranks, *request.device_memory,
                                                       request.most_microbatches, request.recompute, request.slices);
        if (made.most_microbatches < microbatches) {  // orders of some families hold more of fewer
            made.split = failure{"no cuts found whose stages fit into the memory of their devices with any fewer microbatches, too"};
            return made;
        }
        if (made.most_microbatches < request.most_microbatches) {
            made.cost.most_microbatches = made.most_microbatches;
        }
    }
    return made;
}

}  // namespace detail

/// A template for each number of nodes of the range, also those that cannot be: they say why.
/// @pre 1 <= from <= to, 1 <= microbatches <= most_microbatches. Cost: that of optimal_makespan for each.
template <class OnlyWhenCalled = void>
constexpr std::vector<makespan_template> plan_makespan_templates(stage_prices const& prices, makespan_templates_request const& request)
{
    expects(1 <= request.nodes.from && request.nodes.from <= request.nodes.to, "template sizes must be a range from at least 1");
    expects(1 <= request.microbatches && request.microbatches <= request.most_microbatches,
            "a pipeline runs at least one and at most all microbatches of a step");
    std::vector<makespan_template> result;
    for (int nodes = request.nodes.from; nodes <= request.nodes.to; ++nodes) {
        auto made = detail::make_makespan_template(prices, request, request.schedule, nodes);
        auto const form = form_of(request.schedule, nodes);  // a pipeline with the family's stages runs the family
        bool const replaced = !form || !is_one_each(form->where);
        if (!made.split && replaced && request.otherwise && !(*request.otherwise == request.schedule)) {
            auto other = detail::make_makespan_template(prices, request, *request.otherwise, nodes);
            other.instead = std::string{name_of(*request.otherwise)} + ", not " + std::string{name_of(request.schedule)} + ": " + made.split.error();
            made = std::move(other);
        }
        result.push_back(std::move(made));
    }
    return result;
}

/// Those that ranks can run, one device per rank, as instantiation and recomposition take them: counted in ranks.
template <class OnlyWhenCalled = void>
constexpr template_set_value to_template_set(array_view<makespan_template const> made)
{
    template_set_value ready;
    for (auto const& one : made) {
        if (!one.split || std::any_of(one.split->devices.begin(), one.split->devices.end(), [](int d) { return d > 1; })) {
            continue;
        }
        if (auto form = form_of(one.schedule, one.split->ranks); form && stages_per_copy(form->where) == stage_count(one.split->cuts)) {
            if (is_one_each(form->where)) {
                form->where = {};
            }
            ready.templates.push_back({one.split->cuts, one.cost, form->where});
        }
    }
    return ready;
}

}  // namespace rheo::inline v0
