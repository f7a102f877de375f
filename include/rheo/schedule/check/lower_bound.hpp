#pragma once
// SPDX-License-Identifier: Apache-2.0

// What no order of the same computations on the same ranks can beat: a rank cannot begin before the
// shortest way to one of its forwards, works as long as it works, and after its last computation the
// shortest way to the end is left. The bound is the largest such sum over ranks.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/precedence.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Stage -> the shortest time before one of its forwards can begin.
template <class OnlyWhenCalled = void>
constexpr std::vector<seconds> heads_of(program const& p, stage_costs const& costs)
{
    auto const chain = static_cast<std::size_t>(stages_per_copy(p));
    std::vector<seconds> heads(p.placement.size());
    for (std::size_t s = 0; s < heads.size(); ++s) {
        if (s % chain != 0) {
            heads[s] = heads[s - 1] + costs[s - 1].forward + hop(p, costs, s - 1, s);
        }
    }
    return heads;
}

/// (stage, item) -> the shortest time from the end of its backward or input gradient to the end of all that needs it.
template <class OnlyWhenCalled = void>
constexpr std::vector<seconds> tails_of(program const& p, stage_costs const& costs, pipeline_facts& kinds)
{
    auto const chain = static_cast<std::size_t>(stages_per_copy(p));
    std::vector<seconds> tails(kinds.facts.size());
    for (std::size_t s = 0; s < p.placement.size(); ++s) {
        auto const stage = static_cast<int>(s);
        for (auto item = kinds.items.first; kinds.items.contains(item); ++item) {
            auto const split = [&](int of) { return kinds.holds(of, item, weight_done); };
            auto tail = split(stage) ? costs[s].weight_gradient : seconds{0.0};
            if (s % chain != 0 && kinds.holds(stage - 1, item, gradient_done)) {
                auto const below = split(stage - 1) ? costs[s - 1].input_gradient : costs[s - 1].backward;
                tail = std::max(tail, hop(p, costs, s, s - 1) + below + tails[kinds.slot(stage - 1, item)]);
            }
            tails[kinds.slot(stage, item)] = tail;
        }
    }
    return tails;
}

}  // namespace detail

/// The bound for the computations of a program whose ranks work so long (work_by_rank). Cost: stages x items.
/// @pre costs of every stage, work of every rank; the program is complete
template <class OnlyWhenCalled = void>
constexpr seconds lower_bound(program const& p, stage_costs const& costs, std::vector<seconds> const& work)
{
    auto kinds = detail::facts_of(p, 0);
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            if (is_compute(i.kind) && i.kind != instruction_kind::forward) {
                auto& k = kinds.of(i.stage, i.item);
                k = static_cast<std::uint8_t>(k | (i.kind == instruction_kind::weight_gradient ? detail::weight_done : detail::gradient_done));
            }
        }
    }
    auto const heads = detail::heads_of(p, costs);
    auto const tails = detail::tails_of(p, costs, kinds);
    seconds bound{0.0};
    for (std::size_t row = 0; row < p.rows.size(); ++row) {
        seconds head{0.0};
        seconds tail{0.0};
        bool first = true;
        bool last = true;
        for (auto const& i : p.rows[row]) {
            if (!is_compute(i.kind)) {
                continue;
            }
            bool const forward = i.kind == instruction_kind::forward;
            if (forward) {
                auto const h = heads[static_cast<std::size_t>(i.stage)];
                head = first ? h : std::min(head, h);
                first = false;
            }
            if (!forward || !kinds.holds(i.stage, i.item, detail::gradient_done)) {
                bool const gradient = i.kind == instruction_kind::backward || i.kind == instruction_kind::input_gradient;
                auto const t = gradient ? tails[kinds.slot(i.stage, i.item)] : seconds{0.0};
                tail = last ? t : std::min(tail, t);
                last = false;
            }
        }
        bound = std::max(bound, head + work[row] + tail);
    }
    return bound;
}

}  // namespace rheo::inline v0
