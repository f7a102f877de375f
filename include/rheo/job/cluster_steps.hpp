#pragma once
// SPDX-License-Identifier: Apache-2.0

// Steps of plans on a described cluster: programs as the workers run them, computations as the planner prices them on each rank's own device.

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "rheo/job/rank_slowness.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/partition/split_makespan.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/plan/evaluation_plan.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/planner/group_prices.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/simulate/cluster/cluster_links.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Measured times of layers on another device: they change as modelled times do.
template <class OnlyWhenCalled = void>
std::vector<layer_profile> as_modelled(std::vector<layer_profile> measured, std::vector<layer_profile> const& before, std::vector<layer_profile> const& after)
{
    for (std::size_t l = 0; l < measured.size(); ++l) {
        measured[l].forward = measured[l].forward * (after[l].forward / before[l].forward);
        measured[l].backward = measured[l].backward * (after[l].backward / before[l].backward);
    }
    return measured;
}

}  // namespace detail

template <class OnlyWhenCalled = void>
class cluster_steps {
public:
    /// @pre the request's machine is the cluster's (cluster_request.hpp), cluster_fault is empty
    cluster_steps(model_description const& model, planning_request const& request, cluster_model const& cluster)
        : model_{&model}, request_{&request}, cluster_{&cluster}, state_{state_of(model)}, units_{reduction_units(state_, layers())}
    {
        add_kinds();
    }

    /// Of the same model on another cluster. @pre as above
    cluster_steps(cluster_steps const& like, planning_request const& request, cluster_model const& cluster) : cluster_steps{like}
    {
        request_ = &request;
        cluster_ = &cluster;
        kinds_.clear();
        add_kinds();
    }

    /// The work of the plan from time 0 on: of a whole step, or of the rest of one. Cost: linear in its instructions.
    /// @pre the plan's cuts belong to the model, its ranks are devices of the cluster
    modelled_step step_of(plan const& p, rank_slowness const& slow = {}) const
    {
        auto step = computations_of(p, units_, slow);
        step.update = update_time(p);
        for (auto const& unit : units_) {
            step.sums.push_back({sum_bytes(unit, state_, request_->policy).count / largest_group(p)});  // the members of a group sum their shards
        }
        return step;
    }

    /// The step of the same plan, which was made for another cluster, on this one.
    modelled_step repriced(modelled_step step, plan const& p) const
    {
        auto const most = largest_group(p);
        std::map<priced_on, stage_prices> even;
        for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
            step.pipelines[i].costs = costs_of(p, i, step.pipelines[i].program, most, even, {});
        }
        step.decide = vote_time(step);
        step.update = update_time(p);
        return step;
    }

    /// The work of an evaluation, which ends with a sum of its loss. @param whole plan of a step
    modelled_step evaluation_of(plan const& whole, int microbatches, rank_slowness const& slow = {}) const
    {
        return computations_of(evaluation_plan(whole, microbatches), {}, slow);
    }

private:
    modelled_step computations_of(plan const& p, std::vector<reduction_unit> const& units, rank_slowness const& slow) const
    {
        auto programs = programs_of(p, units, units.empty() ? 0 : layers());
        auto const most = largest_group(p);
        std::map<priced_on, stage_prices> even;
        modelled_step step{};
        for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
            auto const& pipeline = p.pipelines[i];
            auto costs = costs_of(p, i, programs[i], most, even, slow);
            auto boundary = boundaries_of_copies(*model_, request_->microbatch, pipeline.cuts, programs[i].copies, request_->policy);
            step.pipelines.push_back({std::move(programs[i]), first_ranks_of(pipeline), std::move(costs), std::move(boundary)});
        }
        step.decide = vote_time(step);
        return step;
    }

    static constexpr std::int32_t no_node = -1;

    struct node_links {
        modelled_link in_node;
        modelled_link between;

        friend constexpr bool operator==(node_links, node_links) = default;
    };
    /// Ranks that are alike.
    struct device_kind {
        device_description device;
        node_links links;
        std::vector<layer_profile> layers;
    };
    /// What prices of stages depend on.
    struct priced_on {
        std::size_t kind;
        double slow_links;  ///< factor on what a byte takes in the exchanges of a group

        friend constexpr auto operator<=>(priced_on, priced_on) = default;
    };

    void add_kinds()
    {
        kinds_.push_back({cluster_->device.description, links_at(no_node), planned_layers(*model_, *request_)});
        for (auto const& d : cluster_->different) {
            if (auto const links = links_at(d.first); kind_of(d.device.description, links) == kinds_.size()) {
                bool const is_like_others = d.device.description == cluster_->device.description;
                kinds_.push_back({d.device.description, links, is_like_others ? kinds_.front().layers : layers_on(d.device.description)});
            }
        }
    }

    /// Inside a node and outermost.
    node_links links_at(std::int32_t node) const { return {link_of(*cluster_, 0, node), link_of(*cluster_, cluster_->levels.size() - 1, node)}; }

    int layers() const { return static_cast<int>(model_->layers.size()); }

    /// Layers on another device.
    std::vector<layer_profile> layers_on(device_description device) const
    {
        auto other = *request_;
        other.machine.device = device;
        other.profile.clear();
        auto layers = planned_layers(*model_, other);
        if (!request_->profile.empty()) {
            auto same = *request_;
            same.profile.clear();
            return detail::as_modelled(request_->profile, planned_layers(*model_, same), layers);
        }
        return layers;
    }

    std::size_t kind_of(device_description device, node_links links) const
    {
        auto const found = std::find_if(kinds_.begin(), kinds_.end(), [&](auto const& kind) { return kind.device == device && kind.links == links; });
        return static_cast<std::size_t>(found - kinds_.begin());
    }

    std::size_t kind_of(rank_id rank) const
    {
        auto const node = rank.value / cluster_->levels.front().network.members;
        return kinds_.size() == 1 ? 0 : kind_of(device_of(*cluster_, rank).description, links_at(node));
    }

    /// The stages of all copies, each on its rank's device. @param even prices for pipelines without prices of their own, filled on demand
    stage_costs costs_of(plan const& p, std::size_t i, program const& program, int most, std::map<priced_on, stage_prices>& even,
                         rank_slowness const& slow) const
    {
        auto const& pipeline = p.pipelines[i];
        bool const is_own = detail::has_own_prices(p, i);
        auto const devices = detail::degrees_of(pipeline);
        std::map<priced_on, stage_costs> known;
        auto const costs_on = [&](priced_on on) -> stage_costs const& {
            auto const [place, is_new] = known.try_emplace(on);
            if (is_new) {
                place->second = is_own ? costs_of_split(own_prices(on, p, i, most), program, pipeline.cuts, devices)
                                       : costs_of_split(even_prices(on, most, even), program, pipeline.cuts, devices);
            }
            return place->second;
        };
        stage_costs costs;
        for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
            double factor = 1.0;  // a group waits for its slowest member
            double slow_links = 1.0;
            auto slowest = kind_of(pipeline.stages[s].front());
            for (auto const rank : pipeline.stages[s]) {
                factor = std::max(factor, factor_of(slow.computing, rank));
                slow_links = std::max(slow_links, pipeline.stages[s].size() > 1 ? factor_of(slow.links, rank) : 1.0);
            }
            for (auto const rank : pipeline.stages[s]) {
                slowest = std::max(slowest, kind_of(rank), [&](std::size_t a, std::size_t b) {
                    return a != b && costs_on({a, slow_links})[s].forward < costs_on({b, slow_links})[s].forward;
                });
            }
            auto cost = costs_on({slowest, slow_links})[s];
            for (auto* time : {&cost.forward, &cost.backward, &cost.input_gradient, &cost.weight_gradient}) {
                *time = *time * factor;
            }
            costs.push_back(cost);
        }
        return costs;
    }

    /// The request on the links of some ranks.
    planning_request request_on(priced_on on) const
    {
        auto request = *request_;
        auto const& links = kinds_[on.kind].links;
        if (on.kind > 0 || on.slow_links != 1.0) {
            request.machine.in_node = slowed_link(links.in_node, on.slow_links);
            request.machine.between_nodes = slowed_link(links.between, on.slow_links);
        }
        return request;
    }

    stage_prices const& even_prices(priced_on on, int most, std::map<priced_on, stage_prices>& known) const
    {
        auto found = known.find(on);
        if (found == known.end()) {
            auto const request = request_on(on);
            auto const layers = with_group_prices(kinds_[on.kind].layers, *model_, request, most);
            found = known.emplace(on, make_stage_prices(layers, request.machine.between_nodes, most)).first;
        }
        return found->second;
    }

    stage_prices own_prices(priced_on on, plan const& p, std::size_t i, int most) const
    {
        auto const request = request_on(on);
        auto const& planned = kinds_[on.kind].layers;
        auto even = with_group_prices(planned, *model_, request, most);
        return make_stage_prices(detail::own_layers(p, i, std::move(even), planned, *model_, request), request.machine.between_nodes, most);
    }

    seconds update_time(plan const& p) const
    {
        seconds longest{};
        for (auto const& pipeline : p.pipelines) {
            longest = std::max(longest, update_time(pipeline));
        }
        return longest;
    }

    /// Reads and writes the state of the fullest rank.
    seconds update_time(pipeline_instance const& pipeline) const
    {
        seconds longest{};
        auto const where = placement_of(pipeline);
        auto const groups = groups_of(pipeline);
        for (std::size_t k = 0; k < groups.size(); ++k) {
            bytes held{};
            for (auto const l : layers_in(layers_at(pipeline.cuts, where, static_cast<int>(k)))) {
                held += committed_bytes(model_->layers[at(l)], request_->policy);
            }
            bytes const part{2 * held.count / static_cast<std::int64_t>(groups[k].size())};
            for (auto const rank : groups[k]) {
                longest = std::max(longest, part / device_of(*cluster_, rank).description.traffic);
            }
        }
        return longest;
    }

    /// As [recovery] describes it; else up and down a binomial tree of all ranks over the outermost links.
    seconds vote_time(modelled_step const& step) const
    {
        if (cluster_->recovery && cluster_->recovery->decide > seconds{}) {
            return cluster_->recovery->decide;
        }
        std::size_t ranks = 0;
        for (auto const& pipeline : step.pipelines) {
            ranks += pipeline.ranks.size();
        }
        auto const rounds = 2.0 * std::ceil(std::log2(static_cast<double>(std::max<std::size_t>(ranks, 1))));
        return cluster_->levels.back().network.link.latency * (2.0 * rounds);
    }

    model_description const* model_;
    planning_request const* request_;
    cluster_model const* cluster_;
    collection state_;
    std::vector<reduction_unit> units_;
    std::vector<device_kind> kinds_;  ///< the first is that of the cluster
};

}  // namespace rheo::inline v0
