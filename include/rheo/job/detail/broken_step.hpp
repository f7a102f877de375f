#pragma once
// SPDX-License-Identifier: Apache-2.0

// A step that lost ranks: what the survivors hold of it.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/job/detail/plan_steps.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/plan/cells.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/recover/replan.hpp"
#include "rheo/recover/salvage_plan.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/topology/microbatch_set.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The items whose gradients a stage has, by stage, from the instructions that its row has ended.
template <class OnlyWhenCalled = void>
std::vector<microbatch_set> finished_items(program const& p, std::size_t position, std::size_t done)
{
    std::vector<microbatch_set> items(p.placement.size());
    for (std::size_t k = 0; k < done; ++k) {
        auto const i = p.rows[position][k];
        if (i.kind == instruction_kind::backward || i.kind == instruction_kind::weight_gradient) {
            items[static_cast<std::size_t>(i.stage)].insert(microbatch_of(i));
        }
    }
    return items;
}

/// Adds what a rank has finished to what it holds. @param only if not null, only contributions that were missing count; others were recomputed on the way
template <class OnlyWhenCalled = void>
void add_finished(rank_holdings& holds, pipeline_instance const& pipeline, std::vector<microbatch_set> const& items, replanning const& known,
                  salvage_plan const* only)
{
    for (auto& use : holds.uses) {
        auto const cell = known.state.uses[at(use.use)].layer;
        auto const layer = layer_of_cell(cell, known.cells_per_layer);
        for (std::size_t stage = 0; stage < items.size(); ++stage) {
            if (items[stage].empty() || !contains(layers_of(pipeline, stage_id{static_cast<int>(stage)}), layer)) {
                continue;
            }
            if (only == nullptr) {
                use.done |= items[stage];
                continue;
            }
            for (std::size_t item = items[stage].first_word * 64; item < items[stage].end_word() * 64; ++item) {
                microbatch_id const m{static_cast<std::int32_t>(item)};
                if (items[stage].contains(m) && misses(*only, use.use, m)) {
                    use.done.insert(m);
                }
            }
        }
    }
}

template <class OnlyWhenCalled = void>
std::vector<rank_holdings> without_ranks(std::vector<rank_holdings> holdings, std::vector<rank_id> const& gone)
{
    std::erase_if(holdings, [&](auto const& h) { return std::find(gone.begin(), gone.end(), h.rank) != gone.end(); });
    return holdings;
}

/// What the survivors hold. @param merged what all members held when the part began, ascending by rank  @param keeps false: nothing of the step
template <class OnlyWhenCalled = void>
std::vector<rank_holdings> holdings_of_survivors(std::vector<rank_holdings> merged, std::vector<rank_id> const& lost, step_part const& part,
                                                 played_step<> const& played, replanning const& known, bool keeps)
{
    auto holdings = without_ranks(std::move(merged), lost);
    for (auto& holds : holdings) {
        for (auto& use : holds.uses) {
            use.done = keeps ? std::move(use.done) : microbatch_set{};
        }
    }
    for (auto const& row : played.rows) {
        auto const& pipeline = part.of.pipelines[at(row.pipeline)];
        auto const position = static_cast<std::size_t>(row.position);
        auto const groups = groups_of(pipeline);
        std::vector<microbatch_set> items;
        for (auto const rank : groups[position]) {
            auto const mine = std::lower_bound(holdings.begin(), holdings.end(), rank, [](auto const& h, rank_id r) { return h.rank < r; });
            if (!keeps || mine == holdings.end() || mine->rank != rank) {
                continue;
            }
            if (items.empty()) {
                items = finished_items(part.step.pipelines[at(row.pipeline)].program, position, row.done);
            }
            add_finished(*mine, pipeline, items, known, part.only);
        }
    }
    return holdings;
}

}  // namespace detail
}  // namespace rheo::inline v0
