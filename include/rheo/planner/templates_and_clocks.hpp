#pragma once
// SPDX-License-Identifier: Apache-2.0

// For every number of ranks that may survive, ahead of time: which templates, how many microbatches each, and what that
// draws once clocks are chosen as well. One after the other, as recovery does it without a profile: `instantiate` takes
// the pipelines that it estimates to be done first, then clocks are set for the time of the slowest. Together: of all
// sets that are done by then, with as many pipelines, the one of least energy.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/energy/frontier/event_network.hpp"
#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/energy/profile/profile.hpp"
#include "rheo/energy/profile/stage_profile.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/planner/pipelines_and_clocks.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The frontiers of the instances of a set of templates, each made when it is first asked for.
/// @tparam ProgramOf program(int ranks, int microbatches): how a pipeline of so many ranks runs so many microbatches, a stage per rank
template <class ProgramOf>
class template_frontiers {
public:
    /// @pre the templates are cut from the layers of the profile, which is not by rank
    template_frontiers(template_set_value const& ready, profile const& layers, ProgramOf schedule, frontier_request request)
        : schedule_{std::move(schedule)}, request_{request}
    {
        for (auto const& shape : ready.templates) {
            if (place_of(size(shape)) == sizes_.size()) {
                sizes_.push_back({size(shape), profile_of_stages(layers, shape.cuts), {}});
            }
        }
    }

    /// Why there are no frontiers; empty when there are.
    std::string error() const
    {
        for (auto const& each : sizes_) {
            if (!each.stages) {
                return each.stages.error();
            }
        }
        return {};
    }

    /// @pre there is a template of that size, microbatches >= 1, reason() is empty
    frontier const& operator()(int ranks, int microbatches)
    {
        auto& here = instance_of(ranks, microbatches);
        if (here.whole < 0) {
            // ranks that wait for a slower pipeline draw power until then: it pays to be slower than alone
            made_.push_back(make_frontier(network_of(ranks, microbatches), request_.blocking * static_cast<double>(ranks), frontier_begin::slowest));
            here.whole = static_cast<int>(made_.size()) - 1;
        }
        return made_[static_cast<std::size_t>(here.whole)];
    }

    /// The fastest time alone, for which no frontier is needed.
    seconds fastest(int ranks, int microbatches)
    {
        auto& here = instance_of(ranks, microbatches);
        if (here.fastest < seconds{}) {
            auto const p = network_of(ranks, microbatches);
            here.fastest = static_cast<double>(length_at(p, curve_end::fastest)) * p.unit;
        }
        return here.fastest;
    }

private:
    /// So many microbatches on a template.
    struct instance {
        int whole = -1;         ///< where its frontier is in made_; -1: not made
        seconds fastest{-1.0};  ///< below 0: not asked for
    };

    struct template_of_size {
        int ranks;
        result<profile> stages;
        std::vector<instance> by_microbatches;
    };

    std::size_t place_of(int ranks) const
    {
        std::size_t place = 0;
        while (place < sizes_.size() && sizes_[place].ranks != ranks) {
            ++place;
        }
        return place;
    }

    instance& instance_of(int ranks, int microbatches)
    {
        auto const place = place_of(ranks);
        expects(place < sizes_.size() && microbatches >= 1, "a frontier is of a template and at least one microbatch");
        auto& all = sizes_[place].by_microbatches;
        if (all.size() <= static_cast<std::size_t>(microbatches)) {
            all.resize(static_cast<std::size_t>(microbatches) + 1);
        }
        return all[static_cast<std::size_t>(microbatches)];
    }

    activity_network network_of(int ranks, int microbatches) const
    {
        auto const& stages = *sizes_[place_of(ranks)].stages;
        auto const p = schedule_(ranks, microbatches);
        auto made = make_activity_network(make_event_network(array_view{&p, 1}, {{transfer_times(stages, p)}, {}}).network, stages, request_);
        expects(static_cast<bool>(made), "a template's program computes what its profile was measured for");
        return std::move(made->activities);
    }

    ProgramOf schedule_;
    frontier_request request_;
    std::vector<template_of_size> sizes_;
    std::deque<frontier> made_;  // references to them stay valid
};

/// Both answers for one number of ranks.
struct survivors_choice {
    int ranks;
    result<joint_choice> apart;     ///< templates first, then clocks
    result<joint_choice> together;  ///< never of more energy, never later

    friend constexpr bool operator==(survivors_choice const&, survivors_choice const&) = default;
};

/// What so many ranks do: by `deadline` where a straggler is that late, else when one after the other is done. Ranks that
/// are left over wait. @pre ranks >= 0, microbatches > failures >= 0
/// @return a reason in both answers when the ranks make no pipeline. Cost: frontiers for the sizes and shares that are in time.
template <class ProgramOf>
survivors_choice choose_for_survivors(template_set_value const& ready, instantiation_request request, watts blocking, template_frontiers<ProgramOf>& frontiers,
                                      seconds deadline = {0.0})
{
    expects(request.microbatches > request.failures, "each of f + 1 pipelines needs a microbatch");
    auto const chosen = instantiate(ready, request);
    if (!chosen) {
        return {request.ranks, failure{chosen.error()}, failure{chosen.error()}};
    }
    joint_choice apart;
    auto const sizes = sizes_of(ready);
    joint_request const wanted{.ranks = request.ranks,
                               .microbatches = request.microbatches,
                               .pipelines = std::min(request.failures + 1, request.ranks / sizes.front()),
                               .spares = true,
                               .waiting = blocking};
    for (std::size_t k = 0; k < chosen->sizes.size(); ++k) {
        apart.pipelines.push_back({chosen->sizes[k], chosen->shares[k]});
        apart.time = std::max(apart.time, frontiers.fastest(chosen->sizes[k], chosen->shares[k]));
    }
    detail::largest_first(apart.pipelines);
    apart.time = std::max(apart.time, deadline);
    apart.energy = detail::energy_of(apart, wanted, frontiers);
    auto together =
        least_energy_within(sizes, wanted, apart.time, frontiers, [&](int ranks, int microbatches) { return frontiers.fastest(ranks, microbatches); });
    return {request.ranks, apart, together && together->energy < apart.energy ? std::move(together) : apart};
}

}  // namespace rheo::inline v0
