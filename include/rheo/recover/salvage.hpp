#pragma once
// SPDX-License-Identifier: Apache-2.0

// What to keep of a half-done step. Accumulators belong to uses, and the sets of different holders of a
// use are disjoint; so the missing part of a use is the complement of their union, wherever they are.
// A microbatch runs again only as deep as some use misses it, and contributes only where it is missed. Where sequences are cut
// into slices, each slice contributes for itself, and the sets are of items: slice j of microbatch m is m * slices + j. A
// microbatch of which one is missing runs with all of its slices, since their gradients depend on each other.
// An accumulator whose layer its rank no longer holds moves to one of the layer's new holders.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/plan/cells.hpp"
#include "rheo/plan/keepers.hpp"
#include "rheo/recover/salvage_plan.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct salvage_request {
    array_view<rank_holdings const> holdings;       ///< of all survivors, ascending by rank, of one version
    collection const* state;                        ///< of the model
    array_view<pipeline_instance const> pipelines;  ///< the new ones, of survivors only; none when there is no plan
    array_view<int const> shares;                   ///< per pipeline, its part of the microbatches
    int layers;                                     ///< of the model
    int microbatches;                               ///< of a step
    int slices = 1;                                 ///< of a microbatch: each contributes for itself
    int cells_per_layer = 1;                        ///< above 1 holdings, state and `layers` are in cells (plan/cells.hpp)
    optimizer_cells const* optimizer = nullptr;     ///< where not all holders keep moments
};

namespace detail {

constexpr bool holds_layer(rank_holdings const& holds, layer_id layer)
{
    for (auto const held : holds.layers) {
        if (held == layer) {
            return true;
        }
    }
    return false;
}

/// The layers of parameters that no survivor holds, by tensor: a tied tensor lives while one of its layers does.
template <class OnlyWhenCalled = void>
std::vector<layer_id> lost_layers(salvage_request const& of)
{
    std::vector<char> lost(static_cast<std::size_t>(of.layers), 0);
    std::vector<char> held(lost.size(), 0);
    for (auto const& holds : of.holdings) {
        for (auto const layer : holds.layers) {
            held[at(layer)] = 1;
        }
    }
    for (auto const& tensor : of.state->tensors) {
        bool lives = !tensor.is_parameter;
        for (auto const layer : tensor.layers) {
            lives = lives || held[at(layer)] != 0;
        }
        for (auto const layer : tensor.layers) {
            lost[at(layer)] |= lives ? 0 : 1;
        }
    }
    std::vector<layer_id> result;
    for (layer_id layer{0}; layer.value < of.layers; ++layer) {
        if (lost[at(layer)] != 0) {
            result.push_back(layer);
        }
    }
    return result;
}

/// Per use, what no rank has.
template <class OnlyWhenCalled = void>
std::vector<use_holding> missing_contributions(salvage_request const& of)
{
    std::vector<microbatch_set> done(of.state->uses.size());
    for (auto const& holds : of.holdings) {
        for (auto const& use : holds.uses) {
            expects(disjoint(done[at(use.use)], use.done), "a contribution is in one accumulator only");
            done[at(use.use)] |= use.done;
        }
    }
    std::vector<use_holding> result;
    for (std::size_t u = 0; u < done.size(); ++u) {
        result.push_back({use_id{static_cast<std::int32_t>(u)}, complement(done[u], of.microbatches * of.slices)});
    }
    return result;
}

/// What each rank holds when it has taken up its places, accumulators that stay included.
template <class OnlyWhenCalled = void>
std::vector<rank_holdings> holdings_after(salvage_request const& of)
{
    std::vector<rank_id> ranks;
    for (auto const& before : of.holdings) {
        ranks.push_back(before.rank);
    }
    auto cells = cells_by_rank(of.pipelines, ranks, of.cells_per_layer, of.optimizer == nullptr ? optimizer_cells{} : *of.optimizer);
    std::vector<rank_holdings> after;
    std::vector<std::vector<use_id>> uses_of(static_cast<std::size_t>(of.layers));
    for (std::size_t u = 0; u < of.state->uses.size(); ++u) {
        uses_of[at(of.state->uses[u].layer)].push_back(use_id{static_cast<std::int32_t>(u)});
    }
    after.reserve(of.holdings.size());
    std::vector<use_id> mine;
    for (auto const& before : of.holdings) {
        rank_holdings holds{before.rank, before.version, std::move(cells[after.size()]), {}};
        if (after.empty() || holds.layers != after.back().layers) {
            mine.clear();
            for (auto const layer : holds.layers) {
                mine.insert(mine.end(), uses_of[at(layer)].begin(), uses_of[at(layer)].end());
            }
            std::sort(mine.begin(), mine.end());
        }
        holds.uses.reserve(mine.size());
        auto held = before.uses.begin();
        for (auto const id : mine) {
            held = std::find_if(held, before.uses.end(), [&](use_holding const& use) { return !(use.use < id); });
            holds.uses.push_back({id, held != before.uses.end() && held->use == id ? held->done : microbatch_set{}});
        }
        after.push_back(std::move(holds));
    }
    return after;
}

/// An accumulator whose rank no longer holds its layer.
struct homeless_accumulator {
    use_holding const* of;
    std::size_t from;  ///< place of the rank
};

/// Ascending by use, then by rank.
template <class OnlyWhenCalled = void>
std::vector<homeless_accumulator> homeless_accumulators(salvage_request const& of, std::vector<rank_holdings> const& after)
{
    std::vector<homeless_accumulator> found;
    for (std::size_t from = 0; from < of.holdings.size(); ++from) {
        for (auto const& use : of.holdings[from].uses) {
            if (!use.done.empty() && !holds_layer(after[from], of.state->uses[at(use.use)].layer)) {
                found.push_back({&use, from});
            }
        }
    }
    std::stable_sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.of->use < b.of->use; });
    return found;
}

/// Moves what cannot stay, each to the new holder that has received least so far, and books it there.
template <class OnlyWhenCalled = void>
std::vector<accumulator_move> move_accumulators(salvage_request const& of, std::vector<rank_holdings>& after)
{
    std::vector<accumulator_move> moves;
    std::vector<std::int64_t> load(after.size(), 0);
    std::vector<std::vector<std::size_t>> holders(static_cast<std::size_t>(of.layers));  // of layers that something moves of
    for (auto const& [use, from] : homeless_accumulators(of, after)) {
        auto const& described = of.state->uses[at(use->use)];
        auto& of_layer = holders[at(described.layer)];
        for (std::size_t to = 0, known = of_layer.size(); known == 0 && to < after.size(); ++to) {
            if (holds_layer(after[to], described.layer)) {
                of_layer.push_back(to);
            }
        }
        expects(!of_layer.empty(), "each layer has a new holder");
        auto const best = *std::min_element(of_layer.begin(), of_layer.end(), [&](std::size_t a, std::size_t b) { return load[a] < load[b]; });
        load[best] += elements(of.state->tensors[at(described.tensor)].shape);
        for (auto& target : after[best].uses) {
            if (target.use == use->use) {
                target.done |= use->done;
            }
        }
        moves.push_back({use->use, of.holdings[from].rank, after[best].rank, use->done});
    }
    return moves;
}

/// True when some slice of the microbatch is in the set.
constexpr bool contains_any_slice(microbatch_set const& items, microbatch_id m, int slices)
{
    for (int slice = 0; slice < slices; ++slice) {
        if (items.contains(microbatch_id{m.value * slices + slice})) {
            return true;
        }
    }
    return false;
}

/// Layer -> the microbatches of which some use of it misses a slice.
template <class OnlyWhenCalled = void>
std::vector<microbatch_set> missing_by_layer(salvage_request const& of, std::vector<use_holding> const& missing)
{
    std::vector<microbatch_set> items(static_cast<std::size_t>(of.layers));
    for (auto const& use : missing) {
        auto& of_layer = items[at(of.state->uses[at(use.use)].layer)];
        of_layer |= use.done;
    }
    for (auto& of_layer : items) {
        if (of.slices == 1) {
            continue;
        }
        microbatch_set whole;
        for (microbatch_id m{0}; m.value < of.microbatches; ++m) {
            if (contains_any_slice(of_layer, m, of.slices)) {
                whole.insert(m);
            }
        }
        of_layer = std::move(whole);
    }
    return items;
}

/// Deals microbatches to the pipelines: the largest work first, to the one that it delays least for its
/// share (d'Hondt's rule: a step of which all is missing is dealt exactly by the shares).
template <class OnlyWhenCalled = void>
std::vector<std::vector<microbatch_work>> deal_work(salvage_request const& of, std::vector<use_holding> const& missing)
{
    std::vector<std::vector<microbatch_work>> work(of.pipelines.size());
    std::vector<std::int64_t> load(of.pipelines.size(), 0);
    microbatch_set dealt;
    auto const items = missing_by_layer(of, missing);
    std::vector<std::size_t> next(work.size());  // a heap: the pipeline that the next microbatch delays least is the first
    for (std::size_t p = 0; p < next.size(); ++p) {
        next[p] = p;
    }
    for (layer_id deepest{0}; deepest.value < of.layers; ++deepest) {
        if (items[at(deepest)].empty()) {
            continue;
        }
        std::int64_t const cost = 3 * std::int64_t{of.layers} - 2 * std::int64_t{deepest.value};  // forward 1, backward 2 per layer
        auto const later = [&](std::size_t a, std::size_t b) {
            auto const of_a = (load[a] + cost) * of.shares[b];
            auto const of_b = (load[b] + cost) * of.shares[a];
            return of_a != of_b ? of_a > of_b : a > b;
        };
        std::make_heap(next.begin(), next.end(), later);
        for (microbatch_id m{0}; m.value < of.microbatches; ++m) {
            if (!items[at(deepest)].contains(m) || dealt.contains(m)) {
                continue;
            }
            dealt.insert(m);
            std::pop_heap(next.begin(), next.end(), later);
            auto const best = next.back();
            load[best] += cost;
            std::push_heap(next.begin(), next.end(), later);
            auto place = work[best].end();
            while (place != work[best].begin() && m < (place - 1)->microbatch) {
                --place;
            }
            work[best].insert(place, microbatch_work{m, layer_of_cell(deepest, of.cells_per_layer)});
        }
    }
    return work;
}

}  // namespace detail

/// The salvage of a step: what stays, what moves, what is missing and who makes it. When layers are lost
/// only `lost` is filled; without pipelines `missing` besides.
/// @pre sets of different holders of a use are disjoint; each pipeline has all layers, no rank is in two; with groups holdings are in cells;
///      a share per pipeline, one of them positive. Cost: O(uses that ranks hold + moves x holders of a layer + uses x microbatches + microbatches x layers + microbatches x log pipelines)
template <class OnlyWhenCalled = void>
salvage_plan salvage(salvage_request const& of)
{
    expects(of.pipelines.size() == of.shares.size(), "each pipeline has a share of the microbatches");
    salvage_plan plan;
    plan.lost = detail::lost_layers(of);
    if (!plan.lost.empty()) {
        return plan;
    }
    plan.missing = detail::missing_contributions(of);
    if (of.pipelines.empty()) {
        return plan;
    }
    plan.after = detail::holdings_after(of);
    plan.moves = detail::move_accumulators(of, plan.after);
    plan.work = detail::deal_work(of, plan.missing);
    return plan;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template salvage_plan salvage<>(salvage_request const&);
#endif

}  // namespace rheo::inline v0
