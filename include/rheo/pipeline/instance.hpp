#pragma once
// SPDX-License-Identifier: Apache-2.0

// A pipeline that exists: cuts and the ranks that run each stage. Stages are numbered as programs number them: chunks make
// several stages of a rank, and where the model is there twice stage s of the second copy comes after all of the first. Who
// stands where, and who holds which layers, is read off in one place, here.

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/schedule/core/stage_placement.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct pipeline_instance {
    std::vector<layer_id> cuts;                ///< of one copy of the model
    std::vector<std::vector<rank_id>> stages;  ///< stage -> its group: the ranks that run it together, each with a run of its shards
    std::vector<std::vector<int>> shares{};    ///< stage -> how many shards each rank of its group has; none: as even as can be (pipeline/shares.hpp)

    friend constexpr bool operator==(pipeline_instance const&, pipeline_instance const&) = default;
};

/// Its fields, with their names in plan.json, and a value that is left out.
template <class Pipeline, class Visit>
    requires std::same_as<std::remove_const_t<Pipeline>, pipeline_instance>
constexpr void for_each_field(Pipeline& pipeline, Visit&& visit)
{
    visit("cuts", pipeline.cuts);
    visit("ranks", pipeline.stages);
    visit("shares", pipeline.shares, std::vector<std::vector<int>>{});
}

/// The layers of a stage, of whichever copy. @pre the pipeline has the stage
template <class OnlyWhenCalled = void>
constexpr layer_span layers_of(pipeline_instance const& pipeline, stage_id stage)
{
    return layers_of(pipeline.cuts, stage_id{stage.value % stage_count(pipeline.cuts)});
}

/// Whether an earlier stage has the same group.
template <class OnlyWhenCalled = void>
constexpr bool is_further_stage(pipeline_instance const& pipeline, std::size_t stage)
{
    auto const first = pipeline.stages.begin();
    auto const same = [&](std::vector<rank_id> const& group) { return group.front() == pipeline.stages[stage].front(); };
    return std::any_of(first, first + static_cast<std::ptrdiff_t>(stage), same);
}

/// The groups of the pipeline by their position: in the order in which its stages first name them. A position has one group for all of its stages.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<rank_id>> groups_of(pipeline_instance const& pipeline)
{
    std::vector<std::vector<rank_id>> groups;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        if (!is_further_stage(pipeline, s)) {
            groups.push_back(pipeline.stages[s]);
        }
    }
    return groups;
}

/// The ranks of the pipeline, group after group.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_id> ranks_of(pipeline_instance const& pipeline)
{
    std::vector<rank_id> ranks;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        if (!is_further_stage(pipeline, s)) {
            ranks.insert(ranks.end(), pipeline.stages[s].begin(), pipeline.stages[s].end());
        }
    }
    return ranks;
}

/// Where its stages live. @pre the stages are those of whole copies of the model
template <class OnlyWhenCalled = void>
constexpr stage_placement placement_of(pipeline_instance const& pipeline)
{
    auto const groups = groups_of(pipeline);
    stage_placement where{.copies = static_cast<int>(pipeline.stages.size()) / stage_count(pipeline.cuts)};
    for (auto const& stage : pipeline.stages) {
        std::size_t position = 0;
        while (groups[position].front() != stage.front()) {
            ++position;
        }
        where.positions.push_back(static_cast<int>(position));
    }
    return where;
}

/// The layers of the stages that are here, of whichever copy, ascending, each once. @param is_here of a stage of the pipeline, of which there are `stages`
template <class IsHere>
constexpr std::vector<layer_span> layers_where(array_view<layer_id const> cuts, std::size_t stages, IsHere const& is_here)
{
    auto const chain = stage_count(cuts);
    std::vector<layer_span> spans;
    for (int stage = 0; stage < chain; ++stage) {
        bool here = false;
        for (auto s = static_cast<std::size_t>(stage); s < stages; s += static_cast<std::size_t>(chain)) {
            here = here || is_here(s);
        }
        auto const span = layers_of(cuts, stage_id{stage});
        if (here && !spans.empty() && spans.back().end == span.begin) {
            spans.back().end = span.end;
        } else if (here) {
            spans.push_back(span);
        }
    }
    return spans;
}

/// The layers of a position under cuts, ascending, each once: the union of its stages, of all copies.
/// @pre the cuts are those of the placement's stages
template <class OnlyWhenCalled = void>
constexpr std::vector<layer_span> layers_at(array_view<layer_id const> cuts, stage_placement const& where, int position)
{
    return layers_where(cuts, where.positions.size(), [&](std::size_t stage) { return where.positions[stage] == position; });
}

/// The layers that a rank holds in the pipeline, ascending, each once; none when it has no place there.
template <class OnlyWhenCalled = void>
constexpr std::vector<layer_span> layers_of(pipeline_instance const& pipeline, rank_id rank)
{
    for (auto const& group : pipeline.stages) {
        if (std::find(group.begin(), group.end(), rank) != group.end()) {
            return layers_where(pipeline.cuts, pipeline.stages.size(), [&](std::size_t stage) { return pipeline.stages[stage].front() == group.front(); });
        }
    }
    return {};
}

/// That a rank has a place in a pipeline of a list.
struct rank_place {
    rank_id rank;
    std::size_t pipeline;

    friend constexpr auto operator<=>(rank_place const&, rank_place const&) = default;
};

/// The ranks of all pipelines, ascending. Cost: that of sorting them.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_place> places_in(array_view<pipeline_instance const> pipelines)
{
    std::vector<rank_place> places;
    for (std::size_t p = 0; p < pipelines.size(); ++p) {
        for (auto const rank : ranks_of(pipelines[p])) {
            places.push_back({rank, p});
        }
    }
    std::sort(places.begin(), places.end());
    return places;
}

/// Those of one rank. @param places as places_in returns them
constexpr array_view<rank_place const> places_of(array_view<rank_place const> places, rank_id rank)
{
    auto const first = std::partition_point(places.begin(), places.end(), [&](rank_place const& place) { return place.rank < rank; });
    auto const last = std::find_if(first, places.end(), [&](rank_place const& place) { return place.rank != rank; });
    return places.subspan(static_cast<std::size_t>(first - places.begin()), static_cast<std::size_t>(last - first));
}

/// Equal for pipelines that differ by the numbers of their ranks alone, all by as many.
template <class OnlyWhenCalled = void>
constexpr std::vector<int> kind_of(pipeline_instance const& pipeline)
{
    std::vector<int> kind{static_cast<int>(pipeline.cuts.size()), static_cast<int>(pipeline.stages.size())};
    auto const first = pipeline.stages.front().front().value;
    for (auto const cut : pipeline.cuts) {
        kind.push_back(cut.value);
    }
    for (auto const& group : pipeline.stages) {
        kind.push_back(static_cast<int>(group.size()));
        for (auto const rank : group) {
            kind.push_back(rank.value - first);
        }
    }
    for (auto const& shares : pipeline.shares) {
        kind.insert(kind.end(), shares.begin(), shares.end());
    }
    return kind;
}

/// How many layers the spans have together.
constexpr int layer_count(array_view<layer_span const> spans)
{
    int count = 0;
    for (auto const span : spans) {
        count += size(span);
    }
    return count;
}

/// All layers of the spans, in their order.
template <class OnlyWhenCalled = void>
constexpr std::vector<layer_id> layers_in(array_view<layer_span const> spans)
{
    std::vector<layer_id> layers;
    for (auto const span : spans) {
        for (auto l = span.begin; l < span.end; ++l) {
            layers.push_back(l);
        }
    }
    return layers;
}

/// The ranks of the pipeline that hold one of the layers, or shards of it, by their position: one group per copy of the model at most for one layer.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_id> holders_of(pipeline_instance const& pipeline, array_view<layer_id const> layers)
{
    auto const ranks = ranks_of(pipeline);
    std::vector<char> holds(ranks.size(), 0);
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        auto const span = layers_of(pipeline, stage_id{static_cast<int>(s)});
        for (auto const layer : layers) {
            for (auto const rank : pipeline.stages[s]) {
                if (contains(span, layer)) {
                    holds[static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin())] = 1;
                }
            }
        }
    }
    std::vector<rank_id> holders;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (holds[r] != 0) {
            holders.push_back(ranks[r]);
        }
    }
    return holders;
}

}  // namespace rheo::inline v0
