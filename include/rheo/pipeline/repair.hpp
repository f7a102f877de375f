#pragma once
// SPDX-License-Identifier: Apache-2.0

// What pipelines do when ranks are lost or leave, or when ranks wait: the cheapest choice by the rule of recovery_price.hpp among those that keep f + 1 pipelines
// (as many as fit, where fewer do) and leave no rank idle that has a place, unless the quickest choice does. One of them is the repair by local
// rules: pipelines that were not hit stay as they are, a rank that waits takes the place of one that is gone before any pipeline gives a rank away.
// The others are all choices of sizes with the best places for the survivors; among equal prices the local repair is taken, so what was not
// hit moves only where that pays. (Alone, the local rules would leave fewer than f + 1 pipelines although f + 1 fit in 785 of the 10,963
// small cases, and know nothing of time.)

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/pipeline/detail/place_search.hpp"
#include "rheo/pipeline/detail/repair_problem.hpp"
#include "rheo/pipeline/local_rules.hpp"
#include "rheo/pipeline/recompose.hpp"
#include "rheo/pipeline/recovery_price.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// What a repair depends on besides.
struct repair_terms {
    bool redo_step = true;  ///< something of the step is lost, so a step is redone
    int reserved_spares =
        0;  ///< so many of the ranks that wait, the last ones, take the place of a lost one or make f + 1 pipelines, but do not make a step shorter
};

namespace detail {

/// The repair by local rules; none where they leave fewer pipelines than fit, sizes without a template, or no memory for all microbatches.
template <class OnlyWhenCalled = void>
constexpr result<recomposition> repaired_locally(repair_problem const& p, array_view<pipeline_instance const> before, template_set_value const& ready)
{
    auto const smallest = p.sizes.sizes.front();
    if (p.in_places < smallest) {
        return failure{"local rules: too few ranks have a place"};
    }
    auto groups = apply_local_rules(p.groups, smallest);
    if (groups.size() < static_cast<std::size_t>(p.fewest) || groups.size() > static_cast<std::size_t>(p.sizes.most)) {
        return failure{"local rules leave fewer pipelines than fit, or more than there are microbatches"};
    }
    std::vector<pipeline_cost> prices;
    for (auto const& group : groups) {
        if (!has_size(ready, group.size())) {
            return failure{"local rules leave a size without a template"};
        }
        prices.push_back(template_of_size(ready, static_cast<int>(group.size())).cost);
    }
    if (split_batch(prices, p.sizes.microbatches).unplaced > 0) {
        return failure{"local rules leave no memory for all microbatches"};
    }
    std::sort(groups.begin(), groups.end(), [](auto const& a, auto const& b) { return a.size() != b.size() ? a.size() < b.size() : a.front() < b.front(); });
    recomposition answer;
    auto const places = places_in(before);
    for (auto const& group : groups) {
        auto const* const kept = find_pipeline(before, places, group);
        answer.pipelines.push_back(kept != nullptr ? *kept : placed(group, p.usable, p.costs, template_of_size(ready, static_cast<int>(group.size()))));
        answer.moved += missing_in(answer.pipelines.back(), p.usable, p.costs);
    }
    complete(answer, p.survivors, ready, p.sizes.microbatches);
    return answer;
}

/// The pipelines that all of their ranks survived, by size.
template <class OnlyWhenCalled = void>
constexpr std::vector<whole_pipeline> whole_pipelines(array_view<pipeline_instance const> before, array_view<rank_holdings const* const> by_rank,
                                                      template_set_value const& ready)
{
    std::vector<whole_pipeline> whole;
    for (auto const& pipeline : before) {
        auto const ranks = ranks_of(pipeline);
        auto const size = static_cast<int>(ranks.size());
        whole_pipeline all{size, {}};
        for (auto const rank : ranks) {
            if (auto const survivor = index_of(by_rank, rank); survivor < by_rank.size()) {
                all.survivors.push_back(survivor);
            }
        }
        if (all.survivors.size() == ranks.size() && has_size(ready, ranks.size()) && make_instance(template_of_size(ready, size), ranks) == pipeline) {
            whole.push_back(std::move(all));
        }
    }
    std::sort(whole.begin(), whole.end(),
              [](auto const& a, auto const& b) { return a.size != b.size ? a.size < b.size : a.survivors.front() < b.survivors.front(); });
    return whole;
}

/// Exchanges ranks that stand at the same position of pipelines of one size, which moves nothing, so that pipelines there were before are there again.
template <class OnlyWhenCalled = void>
constexpr void reassemble(std::vector<pipeline_instance>& pipelines, array_view<pipeline_instance const> before, template_set_value const& ready)
{
    struct place {
        rank_id rank;
        std::size_t pipeline;
        std::size_t position;
    };
    std::vector<std::vector<rank_id>> ranks;
    std::vector<place> places;  // by rank
    for (auto const& pipeline : pipelines) {
        ranks.push_back(ranks_of(pipeline));
        for (std::size_t p = 0; p < ranks.back().size(); ++p) {
            places.push_back({ranks.back()[p], ranks.size() - 1, p});
        }
    }
    std::sort(places.begin(), places.end(), [](place const& a, place const& b) { return a.rank < b.rank; });
    auto const find = [&](rank_id rank) { return std::lower_bound(places.begin(), places.end(), rank, [](place const& a, rank_id r) { return a.rank < r; }); };
    std::vector<char> whole(pipelines.size(), 0);
    for (auto const& old : before) {
        auto const wanted = ranks_of(old);
        if (!has_size(ready, wanted.size()) || make_instance(template_of_size(ready, static_cast<int>(wanted.size())), wanted) != old) {
            continue;
        }
        bool possible = true;
        for (std::size_t p = 0; p < wanted.size() && possible; ++p) {
            auto const found = find(wanted[p]);
            possible = found != places.end() && found->rank == wanted[p] && found->position == p && ranks[found->pipeline].size() == wanted.size() &&
                       whole[found->pipeline] == 0;
        }
        if (!possible) {
            continue;
        }
        auto const home = find(wanted.front())->pipeline;
        for (std::size_t p = 1; p < wanted.size(); ++p) {
            auto const here = find(wanted[p]);
            auto const there = find(ranks[home][p]);
            std::swap(ranks[here->pipeline][p], ranks[home][p]);
            std::swap(here->pipeline, there->pipeline);
        }
        whole[home] = 1;
    }
    for (std::size_t i = 0; i < pipelines.size(); ++i) {
        pipelines[i] = make_instance(template_of_size(ready, static_cast<int>(ranks[i].size())), ranks[i]);
    }
}

}  // namespace detail

/// The repair by local rules alone, at whatever price; none where they leave fewer than f + 1 pipelines although those fit, sizes without a template, or no memory
/// for all microbatches. @pre as repair
template <class OnlyWhenCalled = void>
constexpr result<recomposition> repair_locally(array_view<pipeline_instance const> before, array_view<rank_holdings const> survivors,
                                               template_set_value const& ready, array_view<tensor_bytes const> tensors, recomposition_request request,
                                               repair_terms terms = {})
{
    if (auto error = detail::too_few_ranks(ready, static_cast<int>(survivors.size())); !error.empty()) {
        return failure{std::move(error)};
    }
    auto const p = detail::make_repair_problem(before, survivors, ready, tensors, request, terms.reserved_spares);
    if (p.optimum.used == 0) {
        return failure{detail::no_room_for(request.microbatches)};
    }
    auto answer = detail::repaired_locally(p, before, ready);
    if (answer) {
        answer->degraded = p.fewest < request.failures + 1;
    }
    return answer;
}

/// The cheapest pipelines for the survivors of `before`, ranks that wait included.
/// @pre as recompose; the pipelines before have one rank per stage and no rank in two of them
/// Cost: that of instantiate, a small assignment per pipeline that was hit, and, where the local repair is not the quickest choice or moves any bytes, that of
/// recompose. Above 80 ranks a local repair that is as quick as any is taken without a look at its bytes; above 512, pipelines that lost no rank keep their
/// places wherever the chosen sizes have room for them, and only the other ranks are assigned.
template <class OnlyWhenCalled = void>
constexpr result<recomposition> repair(array_view<pipeline_instance const> before, array_view<rank_holdings const> survivors, template_set_value const& ready,
                                       array_view<tensor_bytes const> tensors, recomposition_request request, repair_terms terms = {})
{
    auto const ranks = static_cast<int>(survivors.size());
    if (!detail::too_few_ranks(ready, ranks).empty()) {
        return recompose(survivors, ready, tensors, request);  // which says why
    }
    auto const p = detail::make_repair_problem(before, survivors, ready, tensors, request, terms.reserved_spares);
    if (p.optimum.used == 0) {
        return recompose(survivors, ready, tensors, request);
    }
    auto const quickest = nanoseconds(static_cast<double>(p.optimum.deadline));
    detail::place_search<recovery_price> search{.problem = &p.sizes,
                                                .costs = &p.costs,
                                                .ready = &ready,
                                                .price = {time_to_next_loss(request.losses, ranks), request.losses.copy_rate, quickest, terms.redo_step},
                                                .quickest = quickest};
    if (ranks > detail::most_ranks_placed_at_once) {
        search.whole = detail::whole_pipelines(before, p.usable, ready);
    }
    auto local = detail::repaired_locally(p, before, ready);
    bool sought = true;
    if (local) {
        search.to_beat = search.price(local->time, local->moved);
        bool const few = std::int64_t{ranks} * ranks * ranks <= search.most_work;
        sought = local->time > quickest || (few && local->moved > bytes{});
    }
    if (sought) {
        auto const fewest_used = std::min(p.in_places, p.optimum.used);
        search.search(p.optimum, fewest_used, detail::most_choices);
        auto const deadline = search.price.longest_step_below(search.to_beat, bytes{}, detail::longest_step(p.sizes));
        if (deadline > p.optimum.deadline) {
            search.work = 0;
            search.search({deadline, p.sizes.ranks, detail::tabulate(p.sizes, deadline, p.optimum.table.open)}, fewest_used, 4 * detail::most_choices);
        }
    }
    recomposition answer{.rebuilt = true};
    if (search.best.sizes.empty()) {
        answer = std::move(*local);
    } else {
        detail::take_lowest_columns(search.best.places, search.best.matrix);
        detail::fill_places(answer, search.best, p.usable, ready);
        detail::reassemble(answer.pipelines, before, ready);
        detail::complete(answer, p.survivors, ready, request.microbatches);
    }
    answer.degraded = p.fewest < request.failures + 1;
    return answer;
}

}  // namespace rheo::inline v0
