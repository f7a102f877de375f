#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a family has of its own at so many ranks, whatever the number of microbatches: where its stages live, whether its
// backward is in two parts, into how many slices it cuts a microbatch. Templates and pipelines are made of this; where
// the family itself cannot be made for the microbatches at hand, an order by list scheduling has the same form.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/stage_placement.hpp"
#include "rheo/schedule/search/list_schedule.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct schedule_form {
    stage_placement where;
    bool split = false;  ///< its backward is in two parts
    int slices = 1;      ///< of a microbatch

    friend constexpr bool operator==(schedule_form const&, schedule_form const&) = default;
};

/// The form of a program.
template <class OnlyWhenCalled = void>
constexpr schedule_form form_of(program const& p)
{
    schedule_form form{placement_of(p), false, p.slices};
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            form.split = form.split || i.kind == instruction_kind::input_gradient;
        }
    }
    return form;
}

/// A form that may not be there. (std::optional of what has a vector is no literal type to every compiler.)
struct possible_form {
    bool found = false;
    schedule_form form{};

    constexpr explicit operator bool() const { return found; }
    constexpr schedule_form& operator*() { return form; }
    constexpr schedule_form const& operator*() const { return form; }
    constexpr schedule_form* operator->() { return &form; }
    constexpr schedule_form const* operator->() const { return &form; }
};

/// The form of the family on so many ranks; none when it cannot be made there, however many microbatches.
/// @pre ranks >= 1. Cost: a program of the fewest microbatches that it can have, at most 2 ranks + 2.
template <class OnlyWhenCalled = void>
constexpr possible_form form_of(any_schedule schedule, int ranks)
{
    expects(ranks >= 1, "a schedule needs at least one rank");
    auto const only = schedule->microbatches;
    for (int m = only > 0 ? only : 1; m <= std::max(only, 2 * ranks + 2); ++m) {
        schedule_shape const shape{.ranks = ranks, .microbatches = m};
        if (error_of(schedule, shape) == shape_error::none) {
            return {true, form_of(make_program(schedule, shape))};
        }
    }
    return {};
}

/// An order of `work` over this form that exists for any work, also for none; a rank holds at most as many activations as with two
/// microbatches per rank in all of its stages (slices: as it comes). @pre deepest within the pipeline, each microbatch once
template <class OnlyWhenCalled = void>
constexpr program listed_program(schedule_form const& form, array_view<stage_work const> work)
{
    auto const stages = static_cast<int>(form.where.positions.size());
    auto const cap = form.slices == 1 ? bytes{2 * std::int64_t{stages}} : bytes{};
    auto answer = list_schedule({.ranks = position_count(form.where),
                                 .placement = form.where.positions,
                                 .costs = unit_costs(stages),
                                 .microbatches = static_cast<int>(work.size()),
                                 .copies = form.where.copies,
                                 .split = form.split,
                                 .cap = cap,
                                 .slices = form.slices});
    return detail::restricted(std::move(answer->program), work);
}

}  // namespace rheo::inline v0
