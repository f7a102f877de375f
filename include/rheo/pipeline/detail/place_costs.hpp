#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many bytes a survivor misses for a place: the tensors of its layers that it does not hold. Tensors
// of one layer are summed up in advance, so that a place is a few differences; the few that layers share are
// looked at one by one.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::detail {

struct shared_tensor {
    std::vector<layer_id> layers;
    std::int64_t size;
    std::vector<char> held_by;  ///< survivor -> whether
};

struct place_costs {
    std::size_t survivors = 0;
    std::size_t bounds = 0;                      ///< layers + 1
    std::vector<std::int64_t> missing_before{};  ///< survivor by survivor: bound of layers -> the bytes of the layers before it
    std::vector<shared_tensor> shared{};

    /// @pre the spans have no layer in common
    constexpr std::int64_t of(std::size_t survivor, array_view<layer_span const> spans) const
    {
        array_view const before{missing_before.data() + survivor * bounds, bounds};
        std::int64_t cost = 0;
        for (auto const span : spans) {
            cost += before[at(span.end)] - before[at(span.begin)];
        }
        for (auto const& tensor : shared) {
            bool needed = false;
            for (auto const l : tensor.layers) {
                needed = needed || contains(spans, l);
            }
            if (needed && tensor.held_by[survivor] == 0) {
                cost += tensor.size;
            }
        }
        return cost;
    }
};

/// @pre no tensor has a layer that the model has not
template <class OnlyWhenCalled = void>
constexpr place_costs make_place_costs(array_view<rank_holdings const* const> survivors, array_view<tensor_bytes const> tensors, int layers)
{
    place_costs costs{.survivors = survivors.size(), .bounds = static_cast<std::size_t>(layers) + 1};
    std::vector<std::int64_t> own(static_cast<std::size_t>(layers), 0);  // of each layer, what no other has
    for (auto const& tensor : tensors) {
        for (auto const l : tensor.layers) {
            expects(l.value >= 0 && l.value < layers, "a tensor names a layer that the templates do not have");
        }
        if (tensor.layers.size() > 1) {
            costs.shared.push_back({tensor.layers, tensor.size.count, {}});
        } else if (tensor.layers.size() == 1) {
            own[at(tensor.layers[0])] += tensor.size.count;
        }
    }
    costs.missing_before.reserve(costs.survivors * costs.bounds);
    std::vector<char> holds(static_cast<std::size_t>(layers), 0);
    for (auto const* survivor : survivors) {
        holds.assign(holds.size(), 0);
        for (auto const l : survivor->layers) {
            expects(l.value >= 0 && l.value < layers, "a rank holds a layer that the templates do not have");
            holds[at(l)] = 1;
        }
        std::int64_t before = 0;
        costs.missing_before.push_back(before);
        for (std::size_t l = 0; l < holds.size(); ++l) {
            before += holds[l] == 0 ? own[l] : 0;
            costs.missing_before.push_back(before);
        }
        for (auto& tensor : costs.shared) {
            char held = 0;
            for (auto const l : tensor.layers) {
                held = holds[at(l)] != 0 ? 1 : held;
            }
            tensor.held_by.push_back(held);
        }
    }
    return costs;
}

/// For one size of pipeline: what the k cheapest survivors for each place miss at least, summed over the
/// places, for k = 0, 1, ... A bound from below for k pipelines of that size.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int64_t> least_missing(place_costs const& costs, array_view<std::vector<layer_span> const> places, int most_pipelines)
{
    auto const survivors = costs.survivors;
    auto const most = static_cast<std::size_t>(most_pipelines);
    std::vector<std::int64_t> least(most + 1, 0);
    std::vector<std::int64_t> cheapest;  // ascending
    for (auto const& place_layers : places) {
        cheapest.clear();
        for (std::size_t r = 0; r < survivors; ++r) {
            auto const cost = costs.of(r, place_layers);
            if (cheapest.size() == most && cost >= cheapest.back()) {
                continue;
            }
            if (cheapest.size() == most) {
                cheapest.pop_back();
            }
            auto place = cheapest.size();
            cheapest.push_back(cost);
            for (; place > 0 && cheapest[place - 1] > cost; --place) {
                cheapest[place] = cheapest[place - 1];
            }
            cheapest[place] = cost;
        }
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < cheapest.size(); ++k) {
            sum += cheapest[k];
            least[k + 1] += sum;
        }
    }
    return least;
}

}  // namespace rheo::inline v0::detail
