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
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/recomposition.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/reshard/assignment.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The survivors by their ranks. @pre no rank is named twice
template <class = void>
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

/// The costs of all places of pipelines of these sizes: rows are places, pipeline by pipeline, columns survivors.
template <class = void>
constexpr assignment_costs costs_of_places(place_costs const& costs, template_set_value const& ready, std::vector<int> const& sizes)
{
    auto const survivors = costs.survivors;
    assignment_costs matrix{0, static_cast<int>(survivors), {}};
    for (auto const n : sizes) {
        for (auto const& layers : layers_by_position(template_of_size(ready, n))) {
            for (std::size_t r = 0; r < survivors; ++r) {
                matrix.values.push_back(costs.of(r, layers));
            }
        }
        matrix.rows += n;
    }
    return matrix;
}

struct ranked_choice {
    std::int64_t least_moved;
    std::vector<int> sizes;
};

/// Choices of sizes that tie in time and spares, those that can move the fewest bytes first. All of them
/// are listed when there are at most 64; beyond that the search begins with sizes that fit what is held.
template <class = void>
constexpr std::vector<ranked_choice> rank_choices(size_problem const& problem, place_costs const& costs, template_set_value const& ready)
{
    constexpr std::size_t most_choices = 64;
    constexpr int most_steps = 4096;
    auto const optimum = least_deadline(problem);
    std::vector<ranked_choice> ranked;
    if (optimum.used == 0) {
        return ranked;
    }
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
        order.push_back(i);
    }
    auto choices = list_choices(problem, optimum, order, 2, most_steps);
    if (choices.size() == 1) {
        ranked.push_back({0, std::move(choices.front())});
        return ranked;
    }
    std::vector<std::vector<std::int64_t>> least;  // by size: what so many pipelines miss at least
    for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
        auto const pipelines = problem.ranks / problem.sizes[i];
        least.push_back(least_missing(costs, layers_by_position(ready.templates[i]), std::max(1, pipelines)));
    }
    for (std::size_t i = 1; i < order.size(); ++i) {  // ascending by bytes missed per rank
        auto const moved = order[i];
        auto place = i;
        for (; place > 0 && least[moved][1] * problem.sizes[order[place - 1]] < least[order[place - 1]][1] * problem.sizes[moved]; --place) {
            order[place] = order[place - 1];
        }
        order[place] = moved;
    }
    for (auto& sizes : list_choices(problem, optimum, order, most_choices, most_steps)) {
        std::int64_t bound = 0;
        for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
            std::size_t pipelines = 0;
            for (auto const n : sizes) {
                pipelines += n == problem.sizes[i] ? 1 : 0;
            }
            bound += least[i][pipelines];
        }
        ranked.push_back({bound, std::move(sizes)});
    }
    std::sort(ranked.begin(), ranked.end(), [](ranked_choice const& a, ranked_choice const& b) {
        return a.least_moved != b.least_moved ? a.least_moved < b.least_moved : a.sizes < b.sizes;
    });
    return ranked;
}

}  // namespace detail

/// Pipelines from the survivors: sizes as instantiate chooses them, except that ties in time and spares go
/// to the fewest moved bytes; then the cheapest assignment of survivors to places, exactly, ties to the lowest
/// ranks in the order of the places. A survivor that holds nothing is taken like any other, so a spare
/// enters here; for the first plan of a job give no tensors, for nothing is moved then.
/// That state is lost (a tensor that nobody holds) is for copy_plan to say.
/// @pre the survivors' ranks are distinct and hold layers of the model; failures >= 0, microbatches >= 1
/// Cost: that of instantiate and a few assignments; how many ties are tried falls with the cube of the ranks.
template <class = void>
constexpr recomposition recompose(array_view<rank_holdings const> survivors, template_set_value const& ready,
                                  array_view<tensor_bytes const> tensors, recomposition_request request)
{
    expects(request.failures >= 0, "the number of failures to survive cannot be negative");
    expects(request.microbatches >= 1, "a step needs at least one microbatch");
    auto const by_rank = detail::ascending(survivors);
    auto const ranks = static_cast<int>(by_rank.size());
    recomposition answer{.anew = true, .cannot = detail::why_no_pipeline(ready, ranks)};
    auto const nothing = [&] {
        for (auto const* survivor : by_rank) {
            answer.spares.push_back(survivor->rank);
        }
        return answer;
    };
    if (!answer) {
        return nothing();
    }

    auto const problem = detail::make_size_problem(ready, ranks, request.failures, request.microbatches);
    auto const costs = detail::make_place_costs(by_rank, tensors, ready.templates.front().cuts.back().value);
    auto const choices = detail::rank_choices(problem, costs, ready);
    if (choices.empty()) {
        answer.cannot = detail::no_room_for(request.microbatches);
        return nothing();
    }
    constexpr std::int64_t most_work = 1 << 19;
    auto const one_assignment = std::int64_t{ranks} * ranks * ranks;
    std::int64_t work = 0;
    std::int64_t fewest_moved = 0;
    std::vector<int> const* sizes = nullptr;
    detail::matching matching{};
    assignment_costs matrix{};
    for (auto const& choice : choices) {
        if (sizes != nullptr && (choice.least_moved >= fewest_moved || work >= most_work)) {
            break;
        }
        auto places = detail::costs_of_places(costs, ready, choice.sizes);
        auto found = detail::cheapest_matching(places);
        auto const moved = detail::to_assignment(found, places).cost;
        work += one_assignment;
        if (sizes == nullptr || moved < fewest_moved) {
            sizes = &choice.sizes;
            fewest_moved = moved;
            matching = std::move(found);
            matrix = std::move(places);
        }
    }
    detail::take_lowest_columns(matching, matrix);

    std::vector<char> placed(by_rank.size(), 0);
    std::size_t place = 0;
    for (auto const n : *sizes) {
        std::vector<rank_id> by_position;
        for (int position = 0; position < n; ++position) {
            auto const survivor = matching.column_of[place++];
            placed[survivor] = 1;
            by_position.push_back(by_rank[survivor]->rank);
        }
        answer.pipelines.push_back(make_instance(template_of_size(ready, n), by_position));
    }
    for (std::size_t i = 0; i < by_rank.size(); ++i) {
        if (placed[i] == 0) {
            answer.spares.push_back(by_rank[i]->rank);
        }
    }
    auto const split = split_batch(costs_of_sizes(ready, *sizes), request.microbatches);
    answer.shares = split.shares;
    answer.time = split.time;
    answer.moved = {fewest_moved};
    answer.degraded = problem.fewest < request.failures + 1;
    return answer;
}

}  // namespace rheo::inline v0
