#pragma once
// SPDX-License-Identifier: Apache-2.0

// From a plan to its rehearsal: the programs are those that the workers interpret, the costs follow from
// the model's operations on a machine of given speed. Where times are measured, they replace the costs
// of the result; nothing else changes.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/model/footprint.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/transform/reductions.hpp"
#include "rheo/simulate/link.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A machine of equal ranks and equal links.
struct modelled_machine {
    flop_rate compute;        ///< of one rank
    bytes_per_second memory;  ///< of one rank: bounds the update
    modelled_link link;       ///< between any two ranks
    seconds decide;           ///< one vote

    friend constexpr bool operator==(modelled_machine const&, modelled_machine const&) = default;
};

/// The messages between the stages of one copy of the model: stage -> what it sends to the next one. @pre cuts of this model
template <class OnlyWhenCalled = void>
constexpr std::vector<bytes> boundaries_of(model_description const& model, microbatch_shape shape, array_view<layer_id const> cuts,
                                           dtype_policy const& policy = fp32)
{
    std::vector<bytes> boundary;
    for (int s = 0; s + 1 < stage_count(cuts); ++s) {
        boundary.push_back(boundary_bytes(model.layers[at(layers_of(cuts, stage_id{s}).end) - 1], shape, policy));
    }
    return boundary;
}

/// The same for the stages of all copies. The last stage of a copy sends nothing.
template <class OnlyWhenCalled = void>
std::vector<bytes> boundaries_of_copies(model_description const& model, microbatch_shape shape, array_view<layer_id const> cuts, int copies,
                                        dtype_policy const& policy = fp32)
{
    auto of_copy = boundaries_of(model, shape, cuts, policy);
    of_copy.resize(static_cast<std::size_t>(stage_count(cuts)));
    std::vector<bytes> boundary;
    for (int copy = 0; copy < copies; ++copy) {
        boundary.insert(boundary.end(), of_copy.begin(), of_copy.end());
    }
    return boundary;
}

/// Position -> its rank, or the first rank of its group: the rows of a modelled pipeline.
template <class OnlyWhenCalled = void>
std::vector<rank_id> first_ranks_of(pipeline_instance const& pipeline)
{
    std::vector<rank_id> rows;
    for (auto const& group : groups_of(pipeline)) {
        rows.push_back(group.front());
    }
    return rows;
}

/// What the stages of one copy of the model with these cuts take on the machine. The backward counts twice per product of the
/// forward, half for each of its parts; messages are of the policy's storage type. @pre cuts of this model, rates above zero
template <class OnlyWhenCalled = void>
constexpr stage_costs modelled_costs(model_description const& model, microbatch_shape shape, array_view<layer_id const> cuts, modelled_machine const& machine,
                                     dtype_policy const& policy = fp32)
{
    expects(machine.compute.count > 0.0, "a modelled machine computes more than zero operations per second");
    expects(!cuts.empty() && at(cuts.back()) == model.layers.size(), "the cuts do not end with the model's last layer");
    stage_costs costs;
    for (int s = 0; s < stage_count(cuts); ++s) {
        auto const span = layers_of(cuts, stage_id{s});
        stage_cost cost{};
        for (auto l = span.begin; l < span.end; ++l) {
            cost.forward += forward_flops(model.layers[at(l)], shape) / machine.compute;
            cost.backward += backward_flops(model.layers[at(l)], shape) / machine.compute;
        }
        cost.input_gradient = cost.backward / 2.0;
        cost.weight_gradient = cost.backward / 2.0;
        costs.push_back(cost);
    }
    return with_transfers(costs, boundaries_of(model, shape, cuts, policy), machine.link);
}

/// The rehearsal of one attempt of the plan's step, from time 0. A unit's reduction moves its sums
/// over all its holders; the update reads and writes the committed state of the rank with the largest.
/// @pre the plan's cuts belong to the model, one rank per stage
template <class OnlyWhenCalled = void>
modelled_step step_of(plan const& p, model_description const& model, microbatch_shape shape, modelled_machine const& machine, dtype_policy const& policy = fp32)
{
    expects(machine.memory.count > 0.0, "a modelled machine moves more than zero bytes per second");
    auto const state = state_of(model);
    auto const layers = static_cast<int>(model.layers.size());
    auto const units = reduction_units(state, layers);
    auto const programs = programs_of(p, units, layers);
    modelled_step step{};
    bytes largest;
    for (std::size_t i = 0; i < programs.size(); ++i) {
        auto const& pipeline = p.pipelines[i];
        auto const of_copy = modelled_costs(model, shape, pipeline.cuts, machine, policy);
        modelled_pipeline modelled{programs[i], first_ranks_of(pipeline), {}, boundaries_of_copies(model, shape, pipeline.cuts, programs[i].copies, policy)};
        for (int copy = 0; copy < programs[i].copies; ++copy) {
            modelled.costs.insert(modelled.costs.end(), of_copy.begin(), of_copy.end());
        }
        for (auto const rank : modelled.ranks) {
            bytes held;
            for (auto const l : layers_in(layers_of(pipeline, rank))) {
                held += committed_bytes(model.layers[at(l)], policy);
            }
            largest = std::max(largest, held);
        }
        step.pipelines.push_back(modelled);
    }
    for (std::size_t u = 0; u < units.size(); ++u) {
        auto const sums = sum_bytes(units[u], state, policy);
        auto const holders = static_cast<int>(holders_of(programs, reduction_id{static_cast<int>(u)}).size());
        step.sums.push_back(sums);
        step.reductions.push_back(holders == 0 ? seconds{0.0} : reduction_time(machine.link, sums, holders));
    }
    step.decide = machine.decide;
    step.update = bytes{2 * largest.count} / machine.memory;
    return step;
}

}  // namespace rheo::inline v0
