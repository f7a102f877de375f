#pragma once
// SPDX-License-Identifier: Apache-2.0

// Templates and clocks chosen together. Pipelines of a job finish a step together: the slowest of their fastest plans
// sets the time, and the others slow down to it. So what a set of pipelines draws depends on how unequal it is, and
// the set that a planner of time alone takes need not be the one of least energy at that time. Here it is: for every
// number of ranks that may survive, ahead of time, by dynamic programming over ranks and microbatches.
//
// The frontiers are asked of the caller by (ranks of a pipeline, its microbatches), as each comes from a template.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// A pipeline of so many ranks that runs so many of the step's microbatches.
struct pipeline_choice {
    int ranks;
    int microbatches;

    friend constexpr bool operator==(pipeline_choice, pipeline_choice) = default;
};

struct joint_request {
    int ranks;              ///< that are left
    int microbatches;       ///< of a step
    int pipelines = 1;      ///< at least as many, for copies of the state
    seconds deadline{0.0};  ///< of a step; 0: the fastest that the ranks can do
    bool spares = false;    ///< ranks may be left over; else all of them work
    watts waiting{0.0};     ///< drawn by a rank that is left over

    friend constexpr bool operator==(joint_request, joint_request) = default;
};

/// Pipelines by ranks and microbatches, largest first, at their common time.
struct joint_choice {
    std::vector<pipeline_choice> pipelines;
    seconds time;
    joules energy;  ///< of all ranks over a step, waiting included

    friend constexpr bool operator==(joint_choice const&, joint_choice const&) = default;
};

/// Ranks that no pipeline of the choice takes.
template <class OnlyWhenCalled = void>
constexpr int spares_of(joint_choice const& choice, int ranks)
{
    for (auto const p : choice.pipelines) {
        ranks -= p.ranks;
    }
    return ranks;
}

namespace detail {

template <class OnlyWhenCalled = void>
constexpr void largest_first(std::vector<pipeline_choice>& pipelines)
{
    std::sort(pipelines.begin(), pipelines.end(),
              [](pipeline_choice a, pipeline_choice b) { return a.ranks != b.ranks ? a.ranks > b.ranks : a.microbatches > b.microbatches; });
}

/// The least sum (or the least maximum) of a measure of pipelines, over all ways to use the ranks and the microbatches;
/// of equal ones the one that leaves the fewest ranks over. Empty when there is none.
template <class Measure, class Join>
constexpr std::vector<pipeline_choice> best_pipelines(array_view<int const> sizes, joint_request request, Measure measure, Join join)
{
    constexpr double none = std::numeric_limits<double>::infinity();
    auto const ranks = static_cast<std::size_t>(request.ranks);
    auto const work = static_cast<std::size_t>(request.microbatches);
    auto const least = static_cast<std::size_t>(std::max(request.pipelines, 1));
    struct step {
        double value;
        pipeline_choice last;
        std::size_t before;  ///< pipelines before it, counted up to `least`
    };
    std::vector<step> best((least + 1) * (ranks + 1) * (work + 1), step{none, {0, 0}, 0});
    auto const cell = [&](std::size_t count, std::size_t r, std::size_t m) -> step& { return best[(count * (ranks + 1) + r) * (work + 1) + m]; };
    cell(0, 0, 0).value = 0.0;
    std::vector<std::vector<double>> table;
    for (auto const size : sizes) {
        table.emplace_back(work + 1, none);
        for (std::size_t m = 1; m <= work && size <= request.ranks; ++m) {
            table.back()[m] = measure(pipeline_choice{size, static_cast<int>(m)});
        }
    }
    for (std::size_t r = 1; r <= ranks; ++r) {
        for (std::size_t s = 0; s < sizes.size(); ++s) {
            auto const size = static_cast<std::size_t>(sizes[s]);
            for (std::size_t before = 0; before <= least && size <= r; ++before) {
                for (std::size_t m = 1; m <= work; ++m) {
                    auto& here = cell(std::min(before + 1, least), r, m);
                    for (std::size_t own = 1; own <= m; ++own) {
                        auto const others = cell(before, r - size, m - own).value;
                        auto const value = others == none || table[s][own] == none ? none : join(others, table[s][own]);
                        if (value < here.value) {
                            here = {value, {sizes[s], static_cast<int>(own)}, before};
                        }
                    }
                }
            }
        }
    }
    auto r = ranks;
    for (std::size_t fewer = 0; request.spares && fewer < ranks; ++fewer) {
        r = cell(least, fewer, work).value < cell(least, r, work).value ? fewer : r;
    }
    std::vector<pipeline_choice> result;
    for (auto m = work, count = cell(least, r, work).value < none ? least : 0; count > 0;) {
        auto const last = cell(count, r, m);
        result.push_back(last.last);
        r -= static_cast<std::size_t>(last.last.ranks);
        m -= static_cast<std::size_t>(last.last.microbatches);
        count = last.before;
    }
    largest_first(result);
    return result;
}

constexpr void expect_possible(array_view<int const> sizes, joint_request request)
{
    expects(request.ranks >= 1 && request.microbatches >= 1, "pipelines need at least one rank and one microbatch");
    expects(!sizes.empty(), "pipelines are made from at least one template");
    for (auto const size : sizes) {
        expects(size >= 1, "a template has at least one rank");
    }
}

/// The energy of a choice at its time, ranks that are left over included.
template <class FrontierOf>
constexpr joules energy_of(joint_choice const& choice, joint_request request, FrontierOf&& frontier_of)
{
    auto sum = request.waiting * static_cast<double>(spares_of(choice, request.ranks)) * choice.time;
    for (auto const p : choice.pipelines) {
        frontier const& f = frontier_of(p.ranks, p.microbatches);
        sum += total_energy(f, cost_within(f, choice.time), choice.time);
    }
    return sum;
}

inline constexpr char const* no_set = "no set of these templates uses all ranks, with as many pipelines as asked for and a microbatch for each";

}  // namespace detail

/// Time first: the pipelines whose slowest is fastest, then clocks at their common time (the request's deadline if it is
/// later). `frontier_of(ranks, microbatches)` returns a frontier by reference. Cost: least pipelines x ranks x microbatches^2 x sizes.
template <class FrontierOf>
constexpr result<joint_choice> choose_one_after_the_other(array_view<int const> sizes, joint_request request, FrontierOf&& frontier_of)
{
    detail::expect_possible(sizes, request);
    joint_choice choice;
    choice.pipelines = detail::best_pipelines(
        sizes, request, [&](pipeline_choice p) { return fastest_time(frontier_of(p.ranks, p.microbatches)).count; },
        [](double a, double b) { return std::max(a, b); });
    if (choice.pipelines.empty()) {
        return failure{detail::no_set};
    }
    for (auto const p : choice.pipelines) {
        choice.time = std::max(choice.time, fastest_time(frontier_of(p.ranks, p.microbatches)));
    }
    if (request.deadline > seconds{0.0} && request.deadline < choice.time) {
        return failure{"no set of these templates meets the deadline"};
    }
    choice.time = std::max(choice.time, request.deadline);
    choice.energy = detail::energy_of(choice, request, frontier_of);
    return choice;
}

/// Of all sets of pipelines that are done within `time`, the one of least energy. `Fastest(ranks, microbatches)` is asked
/// first, so that no frontier is made of a pipeline that is too slow. Cost: as above.
template <class FrontierOf, class Fastest>
constexpr result<joint_choice> least_energy_within(array_view<int const> sizes, joint_request request, seconds time, FrontierOf&& frontier_of,
                                                   Fastest&& fastest)
{
    detail::expect_possible(sizes, request);
    joint_choice choice{{}, time, {}};
    choice.pipelines = detail::best_pipelines(
        sizes, request,
        [&](pipeline_choice p) {
            if (fastest(p.ranks, p.microbatches) > time) {
                return std::numeric_limits<double>::infinity();
            }
            frontier const& f = frontier_of(p.ranks, p.microbatches);
            return (total_energy(f, cost_within(f, time), time) - request.waiting * static_cast<double>(p.ranks) * time).count;
        },
        [](double a, double b) { return a + b; });
    if (choice.pipelines.empty()) {
        return failure{"no set of these templates meets the deadline"};
    }
    choice.energy = detail::energy_of(choice, request, frontier_of);
    return choice;
}

/// Together: of all sets of pipelines that keep the same time, the one of least energy. Never more than one after the other.
template <class FrontierOf>
constexpr result<joint_choice> choose_together(array_view<int const> sizes, joint_request request, FrontierOf&& frontier_of)
{
    auto first = choose_one_after_the_other(sizes, request, frontier_of);
    if (!first) {
        return first;
    }
    auto together = least_energy_within(sizes, request, first->time, frontier_of,
                                        [&](int ranks, int microbatches) { return fastest_time(frontier_of(ranks, microbatches)); });
    return together && together->energy < first->energy ? together : first;
}

}  // namespace rheo::inline v0
