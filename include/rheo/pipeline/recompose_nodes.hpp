#pragma once
// SPDX-License-Identifier: Apache-2.0

// New pipelines of whole nodes: no node is in two of them, so the loss of a node is the loss of one copy of a layer at most, and
// f + 1 pipelines survive the loss of any f nodes. Each node takes consecutive positions, one per device. Which node takes
// which place, and which of its devices which position, are two assignment problems, one inside the other; both are solved exactly.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/pipeline/detail/choose_sizes.hpp"
#include "rheo/pipeline/detail/place_costs.hpp"
#include "rheo/pipeline/recompose.hpp"
#include "rheo/pipeline/recomposition.hpp"
#include "rheo/reshard/assignment.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The devices of each node that lost none, as places in the list of survivors, nodes by their lowest rank.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<std::size_t>> whole_nodes(array_view<rank_holdings const* const> by_rank, array_view<node_id const> node_of,
                                                            int devices_per_node)
{
    std::vector<std::vector<std::size_t>> nodes;
    std::size_t node = 0;
    for (std::size_t i = 0; i < by_rank.size(); ++i) {
        if (nodes.empty() || node_of[nodes[node].front()] != node_of[i]) {  // most ranks are on the node of the rank before
            for (node = 0; node < nodes.size() && node_of[nodes[node].front()] != node_of[i]; ++node) {
            }
        }
        if (node == nodes.size()) {
            nodes.push_back({});
        }
        nodes[node].push_back(i);
    }
    std::erase_if(nodes, [&](auto const& devices) { return devices.size() != static_cast<std::size_t>(devices_per_node); });
    return nodes;
}

/// What each device of a node misses for each of the places from `first` on. In a matrix that may have had others before.
template <class OnlyWhenCalled = void>
constexpr void costs_of_node(assignment_costs& matrix, place_costs const& costs, std::vector<std::size_t> const& devices,
                             array_view<std::vector<layer_span> const> places, int first)
{
    auto const n = static_cast<int>(devices.size());
    matrix.rows = n;
    matrix.columns = n;
    matrix.values.clear();
    for (int s = 0; s < n; ++s) {
        for (auto const i : devices) {
            matrix.values.push_back(costs.of(i, places[static_cast<std::size_t>(first + s)]));
        }
    }
}

/// The costs of the places of one pipeline: place by place, node by node.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int64_t> costs_of_node_places(place_costs const& costs, std::vector<std::vector<std::size_t>> const& nodes,
                                                         array_view<std::vector<layer_span> const> places, int devices_per_node)
{
    std::vector<std::int64_t> values;
    assignment_costs matrix{};
    for (int first = 0; first < static_cast<int>(places.size()); first += devices_per_node) {
        for (auto const& devices : nodes) {
            costs_of_node(matrix, costs, devices, places, first);
            values.push_back(cheapest_assignment_cost(matrix));
        }
    }
    return values;
}

/// The templates that fill whole nodes, counted in nodes.
template <class OnlyWhenCalled = void>
constexpr size_problem make_node_problem(template_set_value const& ready, int nodes, int devices_per_node, recomposition_request request)
{
    size_problem problem{.ranks = nodes, .microbatches = request.microbatches};
    for (auto const& shape : ready.templates) {
        if (size(shape) % devices_per_node == 0) {
            problem.sizes.push_back(size(shape) / devices_per_node);
            problem.costs.push_back(in_nanoseconds(shape.cost));
        }
    }
    if (!problem.sizes.empty()) {
        problem.fewest = std::min(request.failures + 1, nodes / problem.sizes.front());
        problem.most = std::max(problem.fewest, request.microbatches);
        problem.idle_allowed = request.microbatches < problem.fewest;
    }
    return problem;
}

/// Sizes of pipelines in nodes, and which node takes which of their places.
struct node_choice {
    std::vector<int> sizes;
    assignment places;
};

/// Of the choices of sizes that are fastest, the one that moves the fewest bytes; how many are tried falls with the cube of the nodes.
template <class OnlyWhenCalled = void>
constexpr node_choice cheapest_node_choice(size_problem const& problem, size_optimum const& optimum, std::vector<std::vector<std::size_t>> const& nodes,
                                           place_costs const& costs, template_set_value const& ready, int devices_per_node)
{
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
        order.push_back(i);
    }
    node_choice best;
    std::vector<std::vector<std::int64_t>> rows(problem.sizes.size());  // size -> the costs of its places, place by place, when asked for
    constexpr std::int64_t most_work = 1 << 19;
    auto const one_assignment = static_cast<std::int64_t>(nodes.size() * nodes.size() * nodes.size());
    std::int64_t work = 0;
    std::vector<std::int64_t> column_prices;  // choices have most places in common
    for (auto const& choice : list_choices(problem, optimum, order, 64, 4096)) {
        if (!best.sizes.empty() && work >= most_work) {
            break;
        }
        assignment_costs matrix{0, static_cast<int>(nodes.size()), {}};
        for (auto const n : choice) {
            auto& row = rows[static_cast<std::size_t>(std::lower_bound(problem.sizes.begin(), problem.sizes.end(), n) - problem.sizes.begin())];
            if (row.empty()) {
                row = costs_of_node_places(costs, nodes, layers_by_position(template_of_size(ready, n * devices_per_node)), devices_per_node);
            }
            matrix.values.insert(matrix.values.end(), row.begin(), row.end());
            matrix.rows += n;
        }
        auto found = cheapest_assignment(matrix, column_prices);
        work += one_assignment;
        if (best.sizes.empty() || found.cost < best.places.cost) {
            best = {choice, std::move(found)};
        }
    }
    return best;
}

}  // namespace detail

/// Pipelines of the nodes that have all of their devices; devices of others are spares. Sizes as recompose chooses them, templates that do not
/// fill whole nodes left out; of equal choices the one that moves the fewest bytes (how many are tried
/// falls with the cube of the nodes).
/// @param node_of of each survivor, in the order of `survivors`
/// @pre as recompose; a node for each survivor, devices_per_node >= 1, and no node has more
/// Cost: that of recompose, and an assignment of a node's devices for each node and place of a size.
template <class OnlyWhenCalled = void>
constexpr result<recomposition> recompose_nodes(array_view<rank_holdings const> survivors, array_view<node_id const> node_of, int devices_per_node,
                                                template_set_value const& ready, array_view<tensor_bytes const> tensors, recomposition_request request)
{
    expects(devices_per_node >= 1, "a node has at least one device");
    expects(node_of.size() == survivors.size(), "every rank has a node");
    expects(request.failures >= 0, "the number of failures to survive cannot be negative");
    expects(request.microbatches >= 1, "a step needs at least one microbatch");
    auto const by_rank = detail::ascending(survivors);
    std::vector<node_id> nodes_by_rank;
    for (auto const* survivor : by_rank) {
        nodes_by_rank.push_back(node_of[static_cast<std::size_t>(survivor - survivors.data())]);
    }
    auto const nodes = detail::whole_nodes(by_rank, nodes_by_rank, devices_per_node);
    auto const problem = detail::make_node_problem(ready, static_cast<int>(nodes.size()), devices_per_node, request);
    if (problem.sizes.empty()) {
        return failure{"there is no pipeline template that fills whole nodes"};
    }
    if (problem.fewest < 1) {
        return failure{detail::decimal(static_cast<std::int64_t>(nodes.size())) + " whole nodes are too few: the smallest pipeline template takes " +
                       detail::decimal(problem.sizes.front())};
    }
    auto const optimum = detail::least_deadline(problem);
    if (optimum.used == 0) {
        return failure{detail::no_room_for(request.microbatches)};
    }
    recomposition answer{.rebuilt = true};
    std::vector<char> placed(by_rank.size(), 0);
    auto const costs = detail::make_place_costs(by_rank, tensors, ready.templates.front().cuts.back().value);
    auto const [sizes, best] = detail::cheapest_node_choice(problem, optimum, nodes, costs, ready, devices_per_node);
    std::vector<pipeline_cost> prices;
    std::size_t row = 0;
    assignment_costs inside{};
    for (auto const n : sizes) {
        auto const& shape = template_of_size(ready, n * devices_per_node);
        prices.push_back(shape.cost);
        auto const layers = layers_by_position(shape);
        std::vector<rank_id> ranks;
        for (int place = 0; place < n; ++place, ++row) {
            auto const& devices = nodes[static_cast<std::size_t>(best.column_of[row])];
            detail::costs_of_node(inside, costs, devices, layers, place * devices_per_node);
            for (auto const column : cheapest_assignment(inside).column_of) {
                auto const i = devices[static_cast<std::size_t>(column)];
                placed[i] = 1;
                ranks.push_back(by_rank[i]->rank);
            }
        }
        answer.pipelines.push_back(make_instance(shape, ranks));
    }
    for (std::size_t i = 0; i < by_rank.size(); ++i) {
        if (placed[i] == 0) {
            answer.spares.push_back(by_rank[i]->rank);
        }
    }
    auto const split = split_batch(prices, request.microbatches);
    answer.shares = split.shares;
    answer.time = split.time;
    answer.moved = {best.cost};
    answer.degraded = problem.fewest < request.failures + 1;
    return answer;
}

}  // namespace rheo::inline v0
