#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a program costs, in the words of the literature: work per rank, makespan, span, and two bubbles
// that must not be confused: makespan - largest work counts fill and drain of a single step, the
// largest span - work of a rank what is left when steps follow each other without a gap.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/check/lower_bound.hpp"
#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct schedule_figures {
    seconds makespan;
    seconds largest_work;     ///< of a rank
    seconds makespan_bubble;  ///< makespan - largest_work
    seconds span_bubble;      ///< the largest (last end - first start - work) of a rank
    seconds lower_bound;      ///< see lower_bound.hpp
    std::vector<int> peaks;   ///< rank -> most (stage, item) activations held

    friend constexpr bool operator==(schedule_figures const&, schedule_figures const&) = default;

    /// True when no other order of these computations could be shorter.
    constexpr bool is_shortest() const { return makespan <= lower_bound; }
};

namespace detail {

/// The work of a row: computations, an overlapped pair counted once.
template <class OnlyWhenCalled = void>
constexpr seconds work_of(timed_row const& row)
{
    seconds work{0.0};
    for (std::size_t k = 0; k < row.instructions.size(); ++k) {
        auto const& t = row.instructions[k];
        bool const second = k > 1 && row.instructions[k - 2].instruction.kind == instruction_kind::overlap;
        work += is_work(t.instruction.kind) && !second ? t.end - t.start : seconds{0.0};
    }
    return work;
}

/// From the first computation's start to the last one's end.
template <class OnlyWhenCalled = void>
constexpr seconds span_of(timed_row const& row)
{
    seconds first{0.0};
    seconds last{0.0};
    bool any = false;
    for (auto const& t : row.instructions) {
        if (is_work(t.instruction.kind)) {
            first = any ? first : t.start;
            last = t.end;
            any = true;
        }
    }
    return last - first;
}

}  // namespace detail

/// Rank -> how long it computes.
template <class OnlyWhenCalled = void>
constexpr std::vector<seconds> work_by_rank(timeline const& times)
{
    std::vector<seconds> work;
    for (auto const& row : times.rows) {
        work.push_back(detail::work_of(row));
    }
    return work;
}

/// The figures of one pipeline; the default transport is for programs that only compute.
/// @pre costs of every stage; the program is sound under the transport
template <class Transport = shared_memory>
constexpr schedule_figures figures_of(program const& p, stage_costs const& costs)
{
    auto const times = make_timeline<Transport>(array_view{&p, 1}, {{costs}, {}});
    expects(times.sound.ok, "a program that hangs has no makespan");
    auto const work = work_by_rank(times);
    schedule_figures f{makespan(times), {}, {}, {}, lower_bound(p, costs, work), peak_activations_by_rank(p)};
    for (std::size_t row = 0; row < work.size(); ++row) {
        f.largest_work = std::max(f.largest_work, work[row]);
        f.span_bubble = std::max(f.span_bubble, detail::span_of(times.rows[row]) - work[row]);
    }
    f.makespan_bubble = f.makespan - f.largest_work;
    return f;
}

}  // namespace rheo::inline v0
