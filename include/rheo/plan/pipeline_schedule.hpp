#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which schedule a pipeline of a plan really has. The plan has one family for all; a pipeline may be of a size that the family
// cannot have, or may have to do too few microbatches for it, or what is left of a step after a loss. What then takes its place
// follows from the pipeline and its work alone, so every rank finds the same, and the reason is a sentence.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rheo/plan/plan.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/core/stage_work.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/schedule_form.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct pipeline_schedule {
    std::optional<any_schedule> family;  ///< none: an order by list scheduling
    std::string error;                   ///< why it is not the plan's; empty when it is
    program compute;                     ///< of the pipeline's work on the plan's slices, not lowered

    friend bool operator==(pipeline_schedule const&, pipeline_schedule const&) = default;
};

/// Of the family, or "list".
constexpr std::string_view name_of(pipeline_schedule const& schedule) { return schedule.family ? name_of(*schedule.family) : std::string_view{"list"}; }

namespace detail {

/// Why a pipeline with these stages is none of the family. @pre it is none
template <class OnlyWhenCalled = void>
std::string stage_mismatch(any_schedule wanted, stage_placement const& where)
{
    auto const ranks = position_count(where);
    auto const form = form_of(wanted, ranks);
    auto const name = std::string{name_of(wanted)};
    if (!form) {
        return name + " cannot be made for " + std::to_string(ranks) + (ranks == 1 ? " rank: " : " ranks: ") +
               message_of(error_of(wanted, {.ranks = ranks, .microbatches = 2 * ranks + 2}));
    }
    return name + " has " + std::to_string(stages_per_copy(form->where)) + (form->where.copies > 1 ? " stages in each of two copies of the model" : " stages") +
           " on " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") + ", this pipeline has " + std::to_string(stages_per_copy(where));
}

}  // namespace detail

/// The schedule of a pipeline for its part of the plan's work: the plan's family; 1F1B where the pipeline is not cut and placed
/// for that; an order by list scheduling on the same stages where the number of microbatches is none for the family.
/// @pre the plan's schedule is known
template <class OnlyWhenCalled = void>
pipeline_schedule schedule_of(plan const& p, std::size_t pipeline)
{
    auto const wanted = p.schedule;
    expects(is_known(wanted), "a plan names a schedule that is not known");
    auto const where = placement_of(p.pipelines[pipeline]);
    auto const ranks = position_count(where);
    auto const work = to_stage_work(p.work[pipeline], p.pipelines[pipeline].cuts);
    auto form = form_of(wanted, ranks);
    bool const is_wanted = form && form->where == where;
    if (is_wanted) {
        auto const shape = on_slices(wanted, {.ranks = ranks, .microbatches = static_cast<int>(work.size())}, p.slices);
        auto const fault = error_of(wanted, shape);
        if (fault == shape_error::none) {
            return {wanted, {}, with_slices(detail::restricted(make_program(wanted, shape), work), p.slices)};
        }
        form->slices = p.slices;
        return {std::nullopt, std::string{name_of(wanted)} + " cannot be made for " + std::to_string(work.size()) + " microbatches: " + message_of(fault),
                listed_program(*form, work)};
    }
    auto error = detail::stage_mismatch(wanted, where);
    if (is_one_each(where)) {
        return {one_f_one_b{}, std::move(error), with_slices(make_program(one_f_one_b{}, ranks, work), p.slices)};
    }
    return {std::nullopt, std::move(error), listed_program({where, false, p.slices}, work)};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template pipeline_schedule schedule_of<>(plan const&, std::size_t);
#endif

}  // namespace rheo::inline v0
