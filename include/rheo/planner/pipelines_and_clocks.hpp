#pragma once
// SPDX-License-Identifier: Apache-2.0

// Templates and clocks chosen together. Pipelines of a job finish a step together: the slowest of their fastest plans
// sets the time, and the others slow down to it. So what a set of pipelines draws depends on how unequal it is, and
// the set that a planner of time alone takes need not be the one of least energy at that time. Here it is: for every
// number of ranks that may survive, ahead of time, by dynamic programming over ranks, microbatches and pipelines.
//
// The frontiers are asked of the caller by (ranks of a pipeline, its microbatches), as each comes from a template.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rheo/frequency/frontier.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// A pipeline of so many ranks that runs so many of the step's microbatches.
struct pipeline_choice {
    int ranks;
    int microbatches;

    friend constexpr bool operator==(pipeline_choice, pipeline_choice) = default;
};

struct joint_request {
    int ranks;              ///< that are left, all of which work
    int microbatches;       ///< of a step
    int pipelines = 1;      ///< at least as many, for copies of the state
    seconds deadline{0.0};  ///< of a step; 0: the fastest that the ranks can do

    friend constexpr bool operator==(joint_request, joint_request) = default;
};

/// The answer: pipelines by ranks and microbatches, largest first, at their common time; or the reason why there are none.
struct joint_choice {
    std::vector<pipeline_choice> pipelines;
    seconds time;
    joules energy;       ///< of all ranks over a step, waiting included
    std::string reason;  ///< empty when there is a choice

    constexpr explicit operator bool() const { return reason.empty(); }
};

namespace detail {

/// The least sum (or the least maximum) of a measure of pipelines, over all ways to use the ranks and the microbatches.
template <class Measure, class Join>
constexpr std::vector<pipeline_choice> best_pipelines(std::span<int const> sizes, joint_request request, Measure measure, Join join)
{
    constexpr double none = std::numeric_limits<double>::infinity();
    auto const most = static_cast<std::size_t>(request.ranks / *std::min_element(sizes.begin(), sizes.end()));
    auto const ranks = static_cast<std::size_t>(request.ranks);
    auto const work = static_cast<std::size_t>(request.microbatches);
    auto const cells = (ranks + 1) * (work + 1);
    auto const cell = [&](std::size_t r, std::size_t m) { return r * (work + 1) + m; };
    struct step {
        double value;
        pipeline_choice last;
    };
    std::vector<std::vector<step>> best{std::vector<step>(cells, step{none, {0, 0}})};
    best[0][cell(0, 0)].value = 0.0;
    std::vector<std::vector<double>> table;
    for (auto const size : sizes) {
        table.emplace_back(work + 1, none);
        for (std::size_t m = 1; m <= work; ++m) {
            table.back()[m] = measure(pipeline_choice{size, static_cast<int>(m)});
        }
    }
    for (std::size_t count = 1; count <= most; ++count) {
        best.emplace_back(cells, step{none, {0, 0}});
        for (std::size_t s = 0; s < sizes.size(); ++s) {
            auto const size = static_cast<std::size_t>(sizes[s]);
            for (std::size_t r = size; r <= ranks; ++r) {
                for (std::size_t m = 1; m <= work; ++m) {
                    for (std::size_t own = 1; own <= m; ++own) {
                        auto const before = best[count - 1][cell(r - size, m - own)].value;
                        auto const value = before == none || table[s][own] == none ? none : join(before, table[s][own]);
                        if (auto& here = best[count][cell(r, m)]; value < here.value) {
                            here = {value, {sizes[s], static_cast<int>(own)}};
                        }
                    }
                }
            }
        }
    }
    std::size_t chosen = most + 1;
    for (auto count = static_cast<std::size_t>(std::max(request.pipelines, 1)); count <= most; ++count) {
        auto const value = best[count][cell(ranks, work)].value;
        if (value < none && (chosen > most || value < best[chosen][cell(ranks, work)].value)) {
            chosen = count;
        }
    }
    std::vector<pipeline_choice> result;
    for (auto r = ranks, m = work; chosen <= most && chosen > 0; --chosen) {
        auto const last = best[chosen][cell(r, m)].last;
        result.push_back(last);
        r -= static_cast<std::size_t>(last.ranks);
        m -= static_cast<std::size_t>(last.microbatches);
    }
    std::sort(result.begin(), result.end(), [](pipeline_choice a, pipeline_choice b) {
        return a.ranks != b.ranks ? a.ranks > b.ranks : a.microbatches > b.microbatches;
    });
    return result;
}

constexpr void expect_possible(std::span<int const> sizes, joint_request request)
{
    expects(request.ranks >= 1 && request.microbatches >= 1, "pipelines need at least one rank and one microbatch");
    expects(!sizes.empty(), "pipelines are made from at least one template");
    for (auto const size : sizes) {
        expects(size >= 1, "a template has at least one rank");
    }
}

/// The energy of the pipelines at a common time.
template <class FrontierOf>
constexpr joules energy_at(std::span<pipeline_choice const> pipelines, FrontierOf&& frontier_of, seconds time)
{
    joules sum{0.0};
    for (auto const p : pipelines) {
        frontier const& f = frontier_of(p.ranks, p.microbatches);
        sum += total_energy(f, at(f, time).plan.cost, time);
    }
    return sum;
}

}  // namespace detail

/// Time first: the pipelines whose slowest is fastest, then clocks at their common time (the request's deadline if it is
/// later). `frontier_of(ranks, microbatches)` returns a frontier by reference. Cost: pipelines x ranks x microbatches^2 x sizes.
template <class FrontierOf>
constexpr joint_choice choose_one_after_the_other(std::span<int const> sizes, joint_request request, FrontierOf&& frontier_of)
{
    detail::expect_possible(sizes, request);
    auto pipelines = detail::best_pipelines(
        sizes, request, [&](pipeline_choice p) { return fastest_time(frontier_of(p.ranks, p.microbatches)).count; },
        [](double a, double b) { return std::max(a, b); });
    if (pipelines.empty()) {
        return {{}, {}, {}, "no set of these templates uses all ranks, with as many pipelines as asked for and a microbatch for each"};
    }
    seconds time{0.0};
    for (auto const p : pipelines) {
        time = std::max(time, fastest_time(frontier_of(p.ranks, p.microbatches)));
    }
    if (request.deadline > seconds{0.0} && request.deadline < time) {
        return {{}, {}, {}, "no set of these templates meets the deadline"};
    }
    time = std::max(time, request.deadline);
    auto const energy = detail::energy_at(pipelines, frontier_of, time);
    return {std::move(pipelines), time, energy, {}};
}

/// Together: of all sets of pipelines that keep the same time, the one of least energy. Never more than one after the other.
template <class FrontierOf>
constexpr joint_choice choose_together(std::span<int const> sizes, joint_request request, FrontierOf&& frontier_of)
{
    auto first = choose_one_after_the_other(sizes, request, frontier_of);
    if (!first) {
        return first;
    }
    auto pipelines = detail::best_pipelines(
        sizes, request,
        [&](pipeline_choice p) {
            frontier const& f = frontier_of(p.ranks, p.microbatches);
            auto const answer = at(f, first.time);
            return answer ? total_energy(f, answer.plan.cost, first.time).count : std::numeric_limits<double>::infinity();
        },
        [](double a, double b) { return a + b; });
    auto const energy = detail::energy_at(pipelines, frontier_of, first.time);
    return energy < first.energy ? joint_choice{std::move(pipelines), first.time, energy, {}} : first;
}

}  // namespace rheo::inline v0
