#pragma once
// SPDX-License-Identifier: Apache-2.0

// New pipelines from any ranks, whatever they were before. First the sizes, so that f + 1 pipelines are kept whenever
// they fit and the iteration is as short as it can be; then who takes which place, as an assignment
// problem solved exactly. (Repairs of single pipelines, which touch fewer ranks, are in repair.hpp.) Everything is computed
// in whole numbers from the arguments, so each survivor finds the same answer alone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/pipeline/detail/choose_sizes.hpp"
#include "rheo/pipeline/detail/place_costs.hpp"
#include "rheo/pipeline/detail/place_search.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/recomposition.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/reshard/assignment.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The survivors by their ranks. @pre no rank is named twice
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_holdings const*> ascending(array_view<rank_holdings const> survivors)
{
    std::vector<rank_holdings const*> by_rank;
    for (auto const& survivor : survivors) {
        by_rank.push_back(&survivor);
    }
    std::sort(by_rank.begin(), by_rank.end(), [](auto const* a, auto const* b) { return a->rank < b->rank; });
    for (std::size_t i = 1; i < by_rank.size(); ++i) {
        expects(by_rank[i - 1]->rank != by_rank[i]->rank, "a rank is named twice among the survivors");
    }
    return by_rank;
}

/// The pipelines of a choice.
template <class OnlyWhenCalled = void>
constexpr void fill_places(recomposition& answer, chosen_places const& chosen, array_view<rank_holdings const* const> by_rank, template_set_value const& ready)
{
    auto const add = [&](int size, auto const& survivor_at) {
        std::vector<rank_id> by_position;
        for (std::size_t position = 0; position < static_cast<std::size_t>(size); ++position) {
            by_position.push_back(by_rank[survivor_at(position)]->rank);
        }
        answer.pipelines.push_back(make_instance(template_of_size(ready, size), by_position));
    };
    std::size_t place = 0;
    auto kept = chosen.kept.begin();
    auto placed = chosen.placed.begin();
    for (auto const size : chosen.sizes) {  // of one size, those that are kept come first
        if (placed == chosen.placed.end() || *placed != size || (kept != chosen.kept.end() && kept->size == size)) {
            add(size, [&](std::size_t position) { return kept->survivors[position]; });
            ++kept;
        } else {
            add(size, [&](std::size_t) { return chosen.survivors[chosen.places.column_of[place++]]; });
            ++placed;
        }
    }
    answer.moved = chosen.moved;
}

/// Shares, time and the ranks that wait, of pipelines that have their ranks. @param by_rank all that survive
template <class OnlyWhenCalled = void>
constexpr void complete(recomposition& answer, array_view<rank_holdings const* const> by_rank, template_set_value const& ready, int microbatches)
{
    std::vector<rank_id> placed;
    std::vector<int> sizes;
    for (auto const& pipeline : answer.pipelines) {
        auto const ranks = ranks_of(pipeline);
        placed.insert(placed.end(), ranks.begin(), ranks.end());
        sizes.push_back(static_cast<int>(ranks.size()));
    }
    std::sort(placed.begin(), placed.end());
    for (auto const* survivor : by_rank) {
        if (!std::binary_search(placed.begin(), placed.end(), survivor->rank)) {
            answer.spares.push_back(survivor->rank);
        }
    }
    auto const split = split_batch(costs_of_sizes(ready, sizes), microbatches);
    answer.shares = split.shares;
    answer.time = split.time;
}

}  // namespace detail

/// Pipelines from the survivors: sizes as instantiate chooses them, except that ties in time and spares go
/// to the fewest moved bytes; then the cheapest assignment of survivors to places, exactly, ties to the lowest
/// ranks in the order of the places. A survivor that holds nothing is taken like any other, so a spare
/// enters here; for the first plan of a job give no tensors, for nothing is moved then.
/// That state is lost (a tensor without a holder) is for plan_reshard to say.
/// @pre the survivors' ranks are distinct and hold layers of the model; failures >= 0, microbatches >= 1
/// Cost: that of instantiate and a few assignments; how many ties are tried falls with the cube of the ranks.
template <class OnlyWhenCalled = void>
constexpr result<recomposition> recompose(array_view<rank_holdings const> survivors, template_set_value const& ready, array_view<tensor_bytes const> tensors,
                                          recomposition_request request)
{
    expects(request.failures >= 0, "the number of failures to survive cannot be negative");
    expects(request.microbatches >= 1, "a step needs at least one microbatch");
    auto const by_rank = detail::ascending(survivors);
    auto const ranks = static_cast<int>(by_rank.size());
    if (auto error = detail::too_few_ranks(ready, ranks); !error.empty()) {
        return failure{std::move(error)};
    }
    auto const problem = detail::make_size_problem(ready, ranks, request.failures, request.microbatches);
    auto const optimum = detail::least_deadline(problem);
    if (optimum.used == 0) {
        return failure{detail::no_room_for(request.microbatches)};
    }
    auto const costs = detail::make_place_costs(by_rank, tensors, ready.templates.front().cuts.back().value);
    auto const by_bytes = [](seconds, bytes moved) { return seconds{static_cast<double>(moved.count)}; };
    detail::place_search<decltype(by_bytes)> search{
        .problem = &problem, .costs = &costs, .ready = &ready, .price = by_bytes, .quickest = nanoseconds(static_cast<double>(optimum.deadline))};
    search.search(optimum, optimum.used, detail::most_choices);
    detail::take_lowest_columns(search.best.places, search.best.matrix);
    recomposition answer{.rebuilt = true};
    detail::fill_places(answer, search.best, by_rank, ready);
    detail::complete(answer, by_rank, ready, request.microbatches);
    answer.degraded = problem.fewest < request.failures + 1;
    return answer;
}

}  // namespace rheo::inline v0
