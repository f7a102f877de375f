#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether a program does its work: every forward, and every backward that is needed, once and where
// the placement says, and no other. A backward may be whole (B) or in two parts (I and W).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/stage_work.hpp"
#include "rheo/schedule/core/verdict.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The part of a microbatch's work on a stage that is not done, as the kind to name; `await_reduction` when all is.
constexpr instruction_kind undone(std::uint8_t done, bool with_backward)
{
    if ((done & forward_done) == 0) {
        return instruction_kind::forward;
    }
    if (with_backward && (done & gradient_done) == 0) {
        return instruction_kind::backward;
    }
    if (with_backward && (done & weight_done) == 0) {
        return instruction_kind::weight_gradient;
    }
    return instruction_kind::await_reduction;
}

/// The work per item: each slice of each microbatch as deep as the microbatch.
template <class OnlyWhenCalled = void>
constexpr std::vector<stage_work> items_of(program const& p, array_view<stage_work const> work)
{
    std::vector<stage_work> items;
    for (auto const& w : work) {
        for (int slice = 0; slice < p.slices; ++slice) {
            items.push_back({microbatch_id{w.microbatch.value * p.slices + slice}, w.deepest});
        }
    }
    return items;
}

/// The copy of the model whose first stage runs the item; 0 when none does.
constexpr int copy_of(program const& p, microbatch_id item)
{
    for (int copy = 1; copy < p.copies; ++copy) {
        auto const first = copy * stages_per_copy(p);
        for (auto const& i : p.rows[static_cast<std::size_t>(p.placement[static_cast<std::size_t>(first)])]) {
            if (i == make_instruction(instruction_kind::forward, stage_id{first}, item)) {
                return copy;
            }
        }
    }
    return 0;
}

}  // namespace detail

/// Whether the program's computations are exactly those of `work`; if not, an instruction that is
/// missing, there twice (or unasked for), or not on its rank. Transfers and reductions are not looked at.
template <class OnlyWhenCalled = void>
constexpr verdict complete(program const& p, array_view<stage_work const> work)
{
    auto done = detail::facts_of(p, 0);
    auto const stages = static_cast<int>(done.stages);
    auto const chain = stages_per_copy(p);
    auto const items = detail::items_of(p, work);
    auto asked = done;  // bit forward_done: wanted; bit gradient_done: its backward as well
    for (auto const& w : items) {
        auto const first = detail::copy_of(p, w.microbatch) * chain;
        for (int stage = first; stage < first + chain; ++stage) {
            if (!done.items.contains(w.microbatch.value)) {
                return refused(program_error::missing,
                               {pipeline_id{0}, p.placement[0], make_instruction(instruction_kind::forward, stage_id{0}, w.microbatch)});
            }
            asked.of(stage, w.microbatch.value) = detail::forward_done | (stage - first >= w.deepest.value ? detail::gradient_done | detail::weight_done : 0);
        }
    }
    for (std::size_t row = 0; row < p.rows.size(); ++row) {
        for (auto const& i : p.rows[row]) {
            if (!is_compute(i.kind)) {
                continue;
            }
            waiting_row const culprit{pipeline_id{0}, static_cast<int>(row), i};
            if (i.stage < 0 || i.stage >= stages || p.placement[static_cast<std::size_t>(i.stage)] != culprit.position) {
                return refused(program_error::misplaced, culprit);
            }
            constexpr std::uint8_t adds[] = {detail::forward_done, detail::gradient_done | detail::weight_done, detail::gradient_done, detail::weight_done};
            auto const bits = adds[static_cast<std::size_t>(i.kind)];
            auto& known = done.of(i.stage, i.item);
            if ((known & bits) != 0 || !asked.holds(i.stage, i.item, bits)) {
                return refused(program_error::repeated, culprit);
            }
            known = static_cast<std::uint8_t>(known | bits);
        }
    }
    for (auto const& w : items) {
        auto const first = detail::copy_of(p, w.microbatch) * chain;
        for (int stage = first; stage < first + chain; ++stage) {
            auto const kind = detail::undone(done.of(stage, w.microbatch.value), stage - first >= w.deepest.value);
            if (kind != instruction_kind::await_reduction) {
                return refused(program_error::missing,
                               {pipeline_id{0}, p.placement[static_cast<std::size_t>(stage)], make_instruction(kind, stage_id{stage}, w.microbatch)});
            }
        }
    }
    return {};
}

/// The same for a whole step of microbatches 0 .. microbatches-1.
template <class OnlyWhenCalled = void>
constexpr verdict complete(program const& p, int microbatches)
{
    auto const work = whole_step(microbatches);
    return complete(p, work);
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template verdict complete<>(program const&, array_view<stage_work const>);
extern template verdict complete<>(program const&, int);
#endif

}  // namespace rheo::inline v0
