// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/frontier/frontier_study.hpp"

#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "rheo/energy/clocks/bucket_clocks.hpp"
#include "rheo/energy/clocks/clock_bound.hpp"
#include "rheo/energy/clocks/switching.hpp"
#include "rheo/energy/frontier/certificate.hpp"
#include "rheo/energy/frontier/continued_plan.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// Points at which a long program's plans are carried over and proved.
constexpr int carried_points = 2 * table_rows;

/// Longer programs are not rounded by the published method as well: that takes longer than all the rest.
constexpr std::size_t most_published = 2048;

/// The program of the family that has as many stages as the profile, on as many ranks as that takes.
program program_for(frontier_input const& input, int microbatches, frontier_options const& options)
{
    auto const stages = stages_of(input.measured);
    std::string why = fmt::format("it has no program of {} stages", stages);
    for (int ranks = stages; ranks >= 1; --ranks) {
        schedule_shape const shape{.ranks = ranks, .microbatches = microbatches};
        if (auto const fault = error_of(input.schedule, shape); fault != shape_error::none) {
            why = ranks == stages ? message_of(fault) : why;
            continue;
        }
        auto result = make_program(input.schedule, shape);
        if (stages_per_copy(result) == stages && result.slices == 1) {
            return result;
        }
    }
    throw exit_error{exit_code::usage, fmt::format("the schedule {} does not go with {}: {}", options.schedule, options.profile, why)};
}

/// The same input for the other cost model, in its own unit or in the one that was asked for.
frontier_input with_fit(frontier_input input, cost_fit fit, seconds unit)
{
    input.request.fit = fit;
    input.request.unit = unit;
    return input;
}

rheo::frontier solve(activity_network const& p, watts waiting, frontier_begin begin)
{
    auto const from = length_at(p, curve_end::cheapest);
    auto const to = length_at(p, curve_end::fastest);
    progress_bar bar;
    auto result = make_frontier(p, waiting, begin,
                                [&](ticks now) { bar.show(from > to ? static_cast<double>(from - now.count) / static_cast<double>(from - to) : 1.0); });
    bar.clear();
    return result;
}

/// What bounds the chosen plan, and the frontier that real clocks follow from.
struct solved {
    rheo::frontier plans;
    std::vector<std::int64_t> flows;
    std::string unproved;
};

/// @param end of the iteration: at the chosen deadline, or at T* if that is earlier
solved solve_whole(frontier_study& s, seconds end)
{
    s.hull =
        solve(s.made.activities, s.blocking * static_cast<double>(s.program.rows.size()), s.waits() ? frontier_begin::slowest : frontier_begin::least_energy);
    auto const time = std::max(detail::ticks_within(s.hull, end), s.hull.vertices.back().time);
    auto claim = certify(s.hull, time);
    auto unproved = verify(s.hull.activities, claim).error;
    if (!s.waits() && end >= slowest_time(s.hull)) {  // then plans that are slower still are bounded by a flow of what waiting draws
        claim.flows = flow_for(s.hull.activities, claim.events, detail::waiting_per_tick(s.hull.activities, s.hull.waiting));
    }
    return {s.hull, std::move(claim.flows), std::move(unproved)};
}

/// Long programs: the curve from two shorter ones, and plans of a fixed number of times, each proved. Nothing where that is not so.
std::optional<solved> carry_over(frontier_study& s, frontier_input const& input, frontier_options const& options, seconds end)
{
    auto const ranks = static_cast<int>(s.program.rows.size());
    auto const make = [&](int microbatches) { return network_for(program_for(input, microbatches, options), input, options).activities; };
    steady_search const where{.from = 6 * ranks, .to = options.microbatches / 4};
    for (auto microbatches = where.from; microbatches <= where.to; microbatches *= 2) {
        for (auto const m : {microbatches, microbatches + where.period}) {
            if (error_of(input.schedule, {.ranks = ranks, .microbatches = m}) != shape_error::none) {
                return std::nullopt;  // a family that does not take every number of microbatches
            }
        }
    }
    auto const steady = find_steady_state(make, s.blocking * static_cast<double>(ranks), where);
    if (!steady) {
        return std::nullopt;
    }
    auto const curve = continued_curve(*steady, s.made.activities, options.microbatches);
    auto const slowest = curve.vertices.front().time;
    auto const fastest = curve.vertices.back().time;
    std::vector<continued_plan> plans;
    for (int k = 0; k <= carried_points; ++k) {
        auto const time = slowest - ticks{static_cast<std::int32_t>(std::int64_t{(slowest - fastest).count} * k / carried_points)};
        if (!plans.empty() && plans.back().claim.events.back() == time.count) {
            continue;
        }
        plans.push_back(continued_at(*steady, curve, options.microbatches, time));
        if (!plans.back()) {
            return std::nullopt;
        }
    }
    auto const time = std::max(detail::ticks_within(curve, end), fastest);
    auto chosen = time < slowest
                      ? continued_at(*steady, curve, options.microbatches, time)
                      : detail::continued_with(*steady, curve, options.microbatches, slowest, detail::waiting_per_tick(curve.activities, curve.waiting));
    if (!chosen || !proved_least(*steady, curve, options.microbatches)) {
        return std::nullopt;
    }
    s.hull = curve;
    s.carried_over = true;
    return solved{frontier_through(curve, plans), std::move(chosen.claim.flows), {}};
}

/// Chooses the plan for a deadline, and bounds it.
void choose(frontier_study& s, frontier_options const& options, solved const& found, seconds deadline)
{
    switching_rule const rule{time_option("--switch-latency", options.switch_latency), time_option("--dwell", options.dwell)};
    auto const real = round_to_clocks(s.real, deadline, rule, s.waits() ? waiting_until::deadline : waiting_until::own_end);
    if (!real) {
        auto const given = !options.straggler.empty()  ? "--straggler " + options.straggler
                           : !options.deadline.empty() ? "--deadline " + options.deadline
                                                       : fmt::format("without a --deadline, {:.6f} s", deadline.count);
        throw exit_error{exit_code::impossible_plan, fmt::format("{}: {} ({:.6f} s)", given, real.error(), s.fastest.time.count)};
    }
    s.chosen = *real;
    s.unproved = found.unproved;
    auto const& p = s.made.activities;
    s.bound = s.waits() ? in_joules(least_cost_by(p, s.made.options, s.blocking, found.flows, deadline)) + s.hull.waiting * std::max(s.until, s.chosen.time)
                        : least_energy_by(p, s.made.options, s.blocking, found.flows, s.hull.waiting, s.fastest.time, deadline);
}

}  // namespace

frontier_study make_study(frontier_options const& options)
{
    auto const asked = read_input(options);
    auto const input = with_fit(asked, cost_fit::hull, asked.request.unit);
    frontier_study s{};
    s.program = program_for(input, options.microbatches, options);
    s.made = network_for(s.program, input, options);
    s.blocking = input.request.blocking;
    s.highest = at_highest_clocks(s.made.activities, s.made.options, s.blocking);
    s.fastest = at_fastest_clocks(s.made.activities, s.made.options, s.blocking);
    s.until = time_option("--straggler", options.straggler);
    s.fitted = asked.request.fit == cost_fit::exponential;
    // Where clocks may not change at each computation, those of the fastest plan may be out of reach: no time is lost against the highest then.
    auto const no_loss = options.switch_latency.empty() && options.dwell.empty() ? s.fastest.time : s.highest.time;
    auto const deadline = s.waits() ? s.until : options.deadline.empty() ? no_loss : time_option("--deadline", options.deadline);
    bool const lists = options.json || options.csv || !options.svg.empty();  // these show all vertices
    bool const is_long = !lists && !s.waits() && options.microbatches >= 24 * static_cast<int>(s.program.rows.size());
    auto carried = is_long ? carry_over(s, input, options, deadline) : std::nullopt;
    auto const found = carried ? std::move(*carried) : solve_whole(s, deadline);

    auto const own = milliseconds(1.0);  // the published method's unit
    std::vector<clocked_plan> published;
    std::optional<rheo::frontier> theirs;
    if (s.made.activities.curve_of.size() <= most_published && input.shortest >= own) {
        auto const fitted = network_for(s.program, with_fit(asked, cost_fit::exponential, own), options);
        theirs = solve(fitted.activities, s.hull.waiting, frontier_begin::slowest);
        published = published_plans(fitted, *theirs, s.blocking);
    }
    if (s.fitted && (!theirs || theirs->activities.unit != (options.unit.empty() ? own : asked.request.unit))) {
        theirs = solve(network_for(s.program, asked, options).activities, s.hull.waiting, frontier_begin::slowest);
    }
    s.curve = s.fitted ? std::move(*theirs) : s.hull;
    s.real = make_real_frontier(found.plans, s.made.options, s.blocking, {std::numeric_limits<double>::max()}, published);
    choose(s, options, found, deadline);
    return s;
}

}  // namespace rheo::cli
