#pragma once
// SPDX-License-Identifier: Apache-2.0

// A step whose pipelines are alike, block of ranks by block of ranks: one block is played for all. What a block sends to another one, it gets from a third at
// the same time, and links of the outermost level, which blocks do not share, are loaded alike. Slices of a unit count as equally large, and of two messages
// that reach a link at the same time the one that was sent first goes first, whatever block it comes from.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Blocks of `ranks` ranks that do the same; the first has so many pipelines.
struct step_fold {
    int blocks = 1;
    std::int32_t ranks = 0;
    std::size_t pipelines = 0;
    std::vector<std::int32_t> periods{};  ///< level -> members of a block there
};

/// The same work with other microbatches.
inline bool has_same_rows(program const& a, program const& b)
{
    auto const shift = item_range_of(b).first - item_range_of(a).first;
    auto const is_same = [&](instruction i, instruction j) { return of_later_items(i, shift) == j; };
    return a.placement == b.placement && a.copies == b.copies && a.slices == b.slices &&
           std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
                      [&](auto const& x, auto const& y) { return std::equal(x.begin(), x.end(), y.begin(), y.end(), is_same); });
}

/// The same work by ranks further on.
inline bool is_alike(modelled_pipeline const& a, modelled_pipeline const& b, std::int32_t ranks)
{
    return a.costs == b.costs && a.boundary == b.boundary &&
           std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(), [&](rank_id x, rank_id y) { return x.value + ranks == y.value; }) &&
           has_same_rows(a.program, b.program);
}

/// Whether the pipelines are blocks of so many ranks, in order, that do the same.
inline bool is_in_blocks(modelled_step const& step, std::int32_t ranks, std::size_t pipelines)
{
    if (pipelines == 0 || step.pipelines.size() % pipelines != 0 || step.pipelines.size() == pipelines) {
        return false;
    }
    for (std::size_t p = 0; p < step.pipelines.size(); ++p) {
        auto const block = static_cast<std::int32_t>(p / pipelines);
        for (auto const rank : step.pipelines[p].ranks) {
            if (rank.value / ranks != block) {
                return false;
            }
        }
        if (p >= pipelines && !is_alike(step.pipelines[p - pipelines], step.pipelines[p], ranks)) {
            return false;
        }
    }
    return true;
}

/// The smallest blocks; nothing where there are none. @pre network_fault(levels) is empty
template <class Link>
std::optional<step_fold> fold_of(modelled_step const& step, array_view<network_level<Link> const> levels)
{
    std::size_t outermost = levels.size() - 1;
    while (outermost > 0 && levels[outermost].members == 1) {
        --outermost;
    }
    std::vector<std::int32_t> periods;
    std::int32_t inside = 1;
    for (std::size_t l = 0; l < levels.size(); ++l) {
        periods.push_back(levels[l].members);
        inside *= l < outermost ? levels[l].members : 1;
    }
    auto const members = levels[outermost].members;
    for (std::int32_t period = 1; period < members; ++period) {
        auto const ranks = period * inside;
        auto const first_behind = std::find_if(step.pipelines.begin(), step.pipelines.end(), [&](auto const& p) { return p.ranks.front().value >= ranks; });
        auto const pipelines = static_cast<std::size_t>(first_behind - step.pipelines.begin());
        if (members % period != 0 || !is_in_blocks(step, ranks, pipelines)) {
            continue;
        }
        auto const blocks = static_cast<std::int32_t>(step.pipelines.size() / pipelines);
        if (levels[outermost].topology != network_topology::ring || blocks * period == members) {
            periods[outermost] = period;
            return step_fold{blocks, ranks, pipelines, periods};
        }
    }
    return std::nullopt;
}

/// Whether each holder's part in the reductions of the first block depends on nothing but how many holders there are: on no root, and on no neighbours that
/// are numbered around.
template <class Model>
bool has_alike_reductions(modelled_step const& step, step_fold const& fold, step_rules<Model> const& rules)
{
    if (rules.reduction == step_reduction::ring || rules.reduction == step_reduction::tree) {
        return false;
    }
    if (rules.reduction == step_reduction::node_first || rules.reduction == step_reduction::nccl) {
        return true;
    }
    std::vector<int> holders;
    for (std::size_t p = 0; p < fold.pipelines; ++p) {
        for (auto const& row : step.pipelines[p].program.rows) {
            for (auto const& i : row) {
                if (i.kind == instruction_kind::post_reduction) {
                    holders.resize(std::max(holders.size(), static_cast<std::size_t>(i.item) + 1));
                    holders[static_cast<std::size_t>(i.item)] += fold.blocks;
                }
            }
        }
    }
    return std::none_of(holders.begin(), holders.end(), [&](int n) { return n > 0 && n <= rules.most_exact_holders; });
}

/// The first block alone.
template <class OnlyWhenCalled = void>
modelled_step first_block(modelled_step const& step, step_fold const& fold)
{
    modelled_step block{{}, step.reductions, step.decide, step.update, step.generation, step.step, step.attempt, step.begin, step.sums};
    block.pipelines.assign(step.pipelines.begin(), step.pipelines.begin() + static_cast<std::ptrdiff_t>(fold.pipelines));
    return block;
}

/// The rows of all blocks.
template <class Time>
played_step<Time> unfolded(played_step<Time> played, step_fold const& fold)
{
    auto const rows = played.rows.size();
    played.rows.reserve(rows * static_cast<std::size_t>(fold.blocks));
    for (std::int32_t block = 1; block < fold.blocks; ++block) {
        for (std::size_t r = 0; r < rows; ++r) {
            auto row = played.rows[r];
            row.pipeline.value += block * static_cast<std::int32_t>(fold.pipelines);
            row.rank.value += block * fold.ranks;
            played.rows.push_back(row);
        }
    }
    return played;
}

}  // namespace detail
}  // namespace rheo::inline v0
