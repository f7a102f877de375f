#pragma once
// SPDX-License-Identifier: Apache-2.0

// Lowering: where sends and receives go. Pair insertion (PyTorch, torch/distributed/pipelining/
// schedules.py, _add_send_recv) rehearses the compute order, one instruction per rank in turn, and
// puts a send and its receive into both rows at the same moment. Replaying the moments in order is a
// run without a wait, and every run of a rendezvous program ends like any other; so the result cannot
// hang, whatever the schedule, as long as its compute order is acyclic.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/grid.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The send that the output of a computation needs: when the neighbour stage lives on another rank and
/// has a use for it.
struct needed_send {
    bool needed;
    instruction send;
};

/// Marks which (stage, microbatch) have a forward (bit 1) and a backward (bit 2) in the program.
template <class OnlyWhenCalled = void>
constexpr pipeline_facts computations_of(program const& p)
{
    auto result = facts_of(p, 0);
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            if (i.kind == instruction_kind::overlap) {
                continue;
            }
            expects(is_compute(i.kind), "lowering begins with a program that only computes");
            expects(i.stage >= 0 && static_cast<std::size_t>(i.stage) < result.stages && i.item >= 0, "an instruction names a stage outside the pipeline");
            auto& f = result.of(i.stage, i.item);
            f = static_cast<std::uint8_t>(f | (i.kind == instruction_kind::forward ? forward_done : gradient_done));
        }
    }
    return result;
}

template <class OnlyWhenCalled = void>
constexpr needed_send send_after(program const& p, pipeline_facts& computations, instruction i)
{
    bool const up = i.kind == instruction_kind::forward;
    if (i.kind == instruction_kind::weight_gradient || i.kind == instruction_kind::overlap ||
        (up ? computations.ends_copy(i.stage) : computations.begins_copy(i.stage))) {
        return {false, i};
    }
    auto const target = i.stage + (up ? 1 : -1);
    if (p.placement[static_cast<std::size_t>(target)] == p.placement[static_cast<std::size_t>(i.stage)] ||
        !computations.holds(target, i.item, up ? forward_done : gradient_done)) {
        return {false, i};
    }
    return {true, {up ? instruction_kind::send_activation : instruction_kind::send_gradient, i.stage, i.item}};
}

/// What a computation waits for before it may be put into the lowered row, given what is there.
template <class OnlyWhenCalled = void>
constexpr bool ready_to_place(program const& p, pipeline_facts& there, instruction i)
{
    auto const same_rank = [&](int stage) { return p.placement[static_cast<std::size_t>(stage)] == p.placement[static_cast<std::size_t>(i.stage)]; };
    switch (i.kind) {
    case instruction_kind::overlap: return true;
    case instruction_kind::forward:
        return there.slices_done(i.stage, i.item, true) && (there.begins_copy(i.stage) || there.holds(i.stage, i.item, activation_here) ||
                                                            (same_rank(i.stage - 1) && there.holds(i.stage - 1, i.item, forward_done)));
    case instruction_kind::weight_gradient: return there.holds(i.stage, i.item, gradient_done);
    default:
        return there.holds(i.stage, i.item, forward_done) && there.slices_done(i.stage, i.item, false) &&
               (there.ends_copy(i.stage) || there.holds(i.stage, i.item, gradient_here) ||
                (same_rank(i.stage + 1) && there.holds(i.stage + 1, i.item, gradient_done)));
    }
}

}  // namespace detail

/// The program of a grid with its transfers, by pair insertion; deadlock-free under untagged rendezvous.
/// An idle cell uses up its rank's turn.
/// @pre the program only computes, and its order is acyclic (dependencies_in_order)
template <class OnlyWhenCalled = void>
constexpr program lower(program_grid const& grid)
{
    auto const compute = without_idle(grid);
    auto computations = detail::computations_of(compute);
    auto there = detail::facts_of(compute, 0);
    auto result = empty_like(compute);
    std::vector<std::size_t> next(compute.rows.size(), 0);
    auto const mark = [&](int stage, int item, int fact) {
        auto& f = there.of(stage, item);
        f = static_cast<std::uint8_t>(f | fact);
    };
    for (bool progress = true, left = true; left;) {
        expects(progress, "the compute order of this program is cyclic: it cannot be lowered");
        progress = left = false;
        for (std::size_t row = 0; row < grid.rows.size(); ++row) {
            if (next[row] == grid.rows[row].size()) {
                continue;
            }
            left = true;
            if (!grid.rows[row][next[row]]) {
                progress = true;
                ++next[row];
                continue;
            }
            auto const& cells = grid.rows[row];
            std::size_t const width = cells[next[row]]->kind == instruction_kind::overlap ? 3 : 1;
            bool ready = next[row] + width <= cells.size();
            for (std::size_t k = 0; k < width && ready; ++k) {
                ready = cells[next[row] + k] && detail::ready_to_place(compute, there, *cells[next[row] + k]);
            }
            if (!ready) {
                continue;
            }
            progress = true;
            for (std::size_t k = 0; k < width; ++k) {
                auto const i = *cells[next[row] + k];
                result.rows[row].push_back(i);
                if (is_compute(i.kind)) {
                    mark(i.stage, i.item, i.kind == instruction_kind::forward ? detail::forward_done : detail::gradient_done);
                }
            }
            for (std::size_t k = 0; k < width; ++k) {
                if (auto const [needed, send] = detail::send_after(compute, computations, *cells[next[row] + k]); needed) {
                    auto const receive = detail::counterpart(send);
                    result.rows[row].push_back(send);
                    result.rows[static_cast<std::size_t>(compute.placement[static_cast<std::size_t>(receive.stage)])].push_back(receive);
                    bool const up = receive.kind == instruction_kind::receive_activation;
                    mark(receive.stage, receive.item, up ? detail::activation_here : detail::gradient_here);
                }
            }
            next[row] += width;
        }
        progress = progress || !left;
    }
    return result;
}

/// The same for a program without idle cells.
template <class OnlyWhenCalled = void>
constexpr program lower(program const& compute)
{
    return lower(as_grid(compute));
}

/// The program with each receive right before its use and each send right after its producer. Not for
/// use with blocking transfers: under rendezvous every family but GPipe hangs from m >= p >= 2 on.
/// @pre the program only computes
template <class OnlyWhenCalled = void>
constexpr program lower_lazily(program const& compute)
{
    auto computations = detail::computations_of(compute);
    auto result = empty_like(compute);
    auto const receive_before = [&](std::vector<instruction>& row, instruction i) {
        bool const up = i.kind == instruction_kind::forward;
        auto const source = i.stage + (up ? -1 : 1);
        if (!is_compute(i.kind) || i.kind == instruction_kind::weight_gradient || (up ? computations.begins_copy(i.stage) : computations.ends_copy(i.stage)) ||
            compute.placement[static_cast<std::size_t>(source)] == compute.placement[static_cast<std::size_t>(i.stage)]) {
            return;
        }
        row.push_back({up ? instruction_kind::receive_activation : instruction_kind::receive_gradient, i.stage, i.item});
    };
    for (std::size_t row = 0; row < compute.rows.size(); ++row) {
        auto const& order = compute.rows[row];
        for (std::size_t begin = 0; begin < order.size();) {
            auto const end = std::min(order.size(), begin + (order[begin].kind == instruction_kind::overlap ? 3 : 1));
            for (auto k = begin; k < end; ++k) {
                receive_before(result.rows[row], order[k]);
            }
            result.rows[row].insert(result.rows[row].end(), order.begin() + static_cast<std::ptrdiff_t>(begin),
                                    order.begin() + static_cast<std::ptrdiff_t>(end));
            for (; begin < end; ++begin) {
                if (auto const [needed, send] = detail::send_after(compute, computations, order[begin]); needed) {
                    result.rows[row].push_back(send);
                }
            }
        }
    }
    return result;
}

/// The two lowerings as policies.
struct pair_insertion {
    template <class OnlyWhenCalled = void>
    static constexpr program lowered(program const& compute)
    {
        return lower(compute);
    }
};
struct lazy_insertion {
    template <class OnlyWhenCalled = void>
    static constexpr program lowered(program const& compute)
    {
        return lower_lazily(compute);
    }
};

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template program lower<>(program_grid const&);
extern template program lower<>(program const&);
#endif

}  // namespace rheo::inline v0
