#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where gradients are summed over pipelines: a reduction is posted on a rank when the rank's own part
// of the unit is complete, and waited for after all its computations and transfers, in one order for
// all ranks: last layer first (it is complete first), tied tensors last. Posting never waits and all
// wait in the same order behind all their work, so the sums overlap the rest of the step and cannot
// hold up a transfer that some other rank needs to come to its own sums.

#include <cstddef>
#include <vector>

#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/verdict.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The reduction units whose gradients the stages of one pipeline make: stage -> units, ascending.
using units_by_stage = std::vector<std::vector<reduction_id>>;

/// True when `a` is waited for before `b`; units below `layers` are layers, the others tied tensors.
constexpr bool awaited_before(reduction_id a, reduction_id b, int layers)
{
    if (a.value < layers && b.value < layers) {
        return b < a;
    }
    return a < b;
}

namespace detail {

/// A unit on a row, with the stage that completes it there (the last of the row's stages to contribute).
struct row_unit {
    reduction_id unit;
    std::size_t after;  ///< how many instructions of the row come before the post
    std::int16_t stage;
};

/// How many instructions of the row precede the moment at which `stage` has no gradient to add any more: its last
/// weight gradient together with the send that follows it, so that the neighbour does not wait for the post.
constexpr std::size_t completed_after(std::vector<instruction> const& row, int stage)
{
    std::size_t after = 0;
    for (std::size_t k = 0; k < row.size(); ++k) {
        auto const kind = row[k].kind;
        if (row[k].stage == stage && (kind == instruction_kind::backward || kind == instruction_kind::weight_gradient)) {
            after = k + 1;
            if (after < row.size() && row[after].kind == instruction_kind::send_gradient && row[after].stage == stage) {
                ++after;
            }
        }
    }
    return after;
}

/// True when the instruction adds a gradient to the unit.
template <class OnlyWhenCalled = void>
constexpr bool adds_to(instruction i, reduction_id unit, units_by_stage const& units)
{
    if (i.kind != instruction_kind::backward && i.kind != instruction_kind::weight_gradient) {
        return false;
    }
    for (auto const made : units[static_cast<std::size_t>(i.stage)]) {
        if (made == unit) {
            return true;
        }
    }
    return false;
}

/// The units of a row in the order in which they are awaited, each once.
template <class OnlyWhenCalled = void>
constexpr std::vector<row_unit> units_of_row(program const& p, std::size_t position, units_by_stage const& units, int layers)
{
    std::vector<row_unit> found;
    for (std::size_t stage = 0; stage < units.size(); ++stage) {
        if (static_cast<std::size_t>(p.placement[stage]) != position) {
            continue;
        }
        auto const after = completed_after(p.rows[position], static_cast<int>(stage));
        for (auto const unit : units[stage]) {
            std::size_t k = 0;
            while (k < found.size() && awaited_before(found[k].unit, unit, layers)) {
                ++k;
            }
            if (k < found.size() && found[k].unit == unit) {
                if (found[k].after < after) {
                    found[k] = {unit, after, static_cast<std::int16_t>(stage)};
                }
            } else {
                found.insert(found.begin() + static_cast<std::ptrdiff_t>(k), {unit, after, static_cast<std::int16_t>(stage)});
            }
        }
    }
    return found;
}

}  // namespace detail

/// The lowered program with its reductions: each unit of a row is posted right after the last
/// computation that adds to it there (at the beginning when there is none), and awaited at the end.
/// Units below `layers` are layers, the others tied tensors. Cost: instructions x units.
/// @pre units has one entry per stage
template <class OnlyWhenCalled = void>
constexpr program with_reductions(program const& lowered, units_by_stage const& units, int layers)
{
    expects(units.size() == lowered.placement.size(), "reductions need the units of every stage");
    program result{lowered.placement, {}, lowered.copies, lowered.slices};
    for (std::size_t position = 0; position < lowered.rows.size(); ++position) {
        auto const& row = lowered.rows[position];
        auto const held = detail::units_of_row(lowered, position, units, layers);
        std::vector<instruction> whole;
        for (std::size_t k = 0; k <= row.size(); ++k) {
            for (auto const& h : held) {
                if (h.after == k) {
                    whole.push_back(make_instruction(instruction_kind::post_reduction, stage_id{h.stage}, h.unit));
                }
            }
            if (k < row.size()) {
                whole.push_back(row[k]);
            }
        }
        for (auto const& h : held) {
            whole.push_back(make_instruction(instruction_kind::await_reduction, stage_id{h.stage}, h.unit));
        }
        result.rows.push_back(whole);
    }
    return result;
}

/// Whether the program posts each unit of a rank once, not before the rank's last gradient of it, and
/// awaits each once, in the global order, after everything else. @pre units has one entry per stage
template <class OnlyWhenCalled = void>
constexpr verdict reductions_in_place(program const& p, units_by_stage const& units, int layers)
{
    for (std::size_t position = 0; position < p.rows.size(); ++position) {
        auto const& row = p.rows[position];
        auto const held = detail::units_of_row(p, position, units, layers);
        std::vector<int> posts(held.size(), 0);
        std::size_t awaited = 0;
        for (std::size_t k = 0; k < row.size(); ++k) {
            waiting_row const culprit{pipeline_id{0}, static_cast<int>(position), row[k]};
            if (row[k].kind == instruction_kind::post_reduction) {
                std::size_t h = 0;
                while (h < held.size() && held[h].unit != reduction_of(row[k])) {
                    ++h;
                }
                if (h == held.size() || posts[h]++ != 0) {
                    return refused(h == held.size() ? program_error::misplaced : program_error::repeated, culprit);
                }
                for (auto later = k + 1; later < row.size(); ++later) {
                    if (detail::adds_to(row[later], reduction_of(row[k]), units)) {
                        return refused(program_error::early, culprit);
                    }
                }
            } else if (row[k].kind == instruction_kind::await_reduction) {
                if (awaited == held.size() || held[awaited].unit != reduction_of(row[k])) {
                    return refused(program_error::misplaced, culprit);
                }
                ++awaited;
            } else if (awaited != 0) {
                return refused(program_error::early, {pipeline_id{0}, static_cast<int>(position), row[k - 1]});
            }
        }
        for (std::size_t h = 0; h < held.size(); ++h) {
            if (posts[h] == 0 || h >= awaited) {
                auto const kind = posts[h] == 0 ? instruction_kind::post_reduction : instruction_kind::await_reduction;
                return refused(program_error::missing,
                               {pipeline_id{0}, static_cast<int>(position), make_instruction(kind, stage_id{held[h].stage}, held[h].unit)});
            }
        }
    }
    return {};
}

/// A rank that holds a unit: its pipeline and its position there.
struct unit_holder {
    pipeline_id pipeline;
    int position;

    friend constexpr auto operator<=>(unit_holder, unit_holder) = default;
};

/// The holders of a unit over all pipelines, ascending, read off the programs.
template <class OnlyWhenCalled = void>
constexpr std::vector<unit_holder> holders_of(array_view<program const> programs, reduction_id unit)
{
    std::vector<unit_holder> holders;
    for (std::size_t p = 0; p < programs.size(); ++p) {
        for (std::size_t position = 0; position < programs[p].rows.size(); ++position) {
            for (auto const& i : programs[p].rows[position]) {
                if (i.kind == instruction_kind::post_reduction && reduction_of(i) == unit) {
                    holders.push_back({pipeline_id{static_cast<int>(p)}, static_cast<int>(position)});
                    break;
                }
            }
        }
    }
    return holders;
}

}  // namespace rheo::inline v0
