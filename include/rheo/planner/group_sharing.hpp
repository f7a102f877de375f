#pragma once
// SPDX-License-Identifier: Apache-2.0

// Times and energies of stages that several ranks share, from a profile of layers on one device: the computing of a layer is dealt to the members by their
// shards, and what a layer exchanges takes the same time at every clock, in which a device draws what it draws while it waits. A group has one clock: its
// members wait for each other in every exchange.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/energy/profile/profile.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/planner/group_prices.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// How long the layers of a model exchange in groups.
struct group_exchanges {
    int grid = 1;                                  ///< shards of a layer
    std::vector<std::vector<seconds>> by_layer{};  ///< [layer][ranks - 2], in a forward, and in a backward or its input gradient

    friend bool operator==(group_exchanges const&, group_exchanges const&) = default;
};

/// As plans are priced (planner/group_prices.hpp), with shares as even as can be.
template <class OnlyWhenCalled = void>
group_exchanges make_group_exchanges(model_description const& model, planning_request const& request)
{
    group_exchanges exchanges{grid_of(model), {}};
    auto const planned = exchanges.grid > 1 ? planned_layers(model, request) : std::vector<layer_profile>{};
    for (std::size_t l = 0; l < planned.size(); ++l) {
        auto& times = exchanges.by_layer.emplace_back();
        for (int ranks = 2; ranks <= exchanges.grid; ++ranks) {
            times.push_back(exchange_time(model.layers[l], planned[l], request, even_group(exchanges.grid, ranks, ranks - 1)));
        }
    }
    return exchanges;
}

/// How a stage is shared.
struct stage_sharing {
    double part = 1.0;    ///< of its shards: of the member that is meant
    seconds exchanges{};  ///< in a forward, and in a backward or its input gradient
};

/// @param member of the stage's group; largest_member: the one with the most shards  @pre the exchanges are those of the pipeline's model
template <class OnlyWhenCalled = void>
stage_sharing sharing_of(pipeline_instance const& pipeline, stage_id stage, group_exchanges const& exchanges, int member = largest_member)
{
    auto const ranks = pipeline.stages[at(stage)].size();
    if (ranks == 1) {
        return {};
    }
    auto const& grid = exchanges.grid;
    expects(static_cast<int>(ranks) <= grid && at(pipeline.cuts.back()) == exchanges.by_layer.size(), "clocks of groups need the exchanges of their model");
    stage_sharing sharing{static_cast<double>(group_of(pipeline, stage, grid, member).run(grid).count()) / grid};
    auto const span = layers_of(pipeline, stage);
    for (auto l = span.begin; l < span.end; ++l) {
        sharing.exchanges += exchanges.by_layer[at(l)][ranks - 2];
    }
    return sharing;
}

namespace detail {

constexpr seconds exchanges_in(instruction_kind kind, stage_sharing const& sharing)
{
    return kind == instruction_kind::weight_gradient ? seconds{} : sharing.exchanges;
}

}  // namespace detail

/// The row of one member.
constexpr profile_row shared_by_member(profile_row row, stage_sharing const& sharing, watts blocking)
{
    auto const exchanges = detail::exchanges_in(row.kind, sharing);
    row.time = row.time * sharing.part + exchanges;
    row.energy = row.energy * sharing.part + blocking * exchanges;
    return row;
}

/// The row of a group, as one device that draws for all of them, without what the others draw while they wait: what a group of n ranks draws is that of the
/// row and (n - 1) times what one draws that waits all the time. So frontiers of groups are made as those of ranks, with more that waits.
constexpr profile_row shared_by_group(profile_row row, stage_sharing const& largest, watts blocking)
{
    auto const alone = row.time;
    row.time = alone * largest.part + detail::exchanges_in(row.kind, largest);
    row.energy += blocking * (row.time - alone);
    return row;
}

}  // namespace rheo::inline v0
