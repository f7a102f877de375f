#pragma once
// SPDX-License-Identifier: Apache-2.0

// How much the operations of a step compute, move and send: what a consumer of execution traces needs where no times are measured. Operations are the
// floating-point operations of matrix products, bytes those that a device reads and writes in its memory, as planning counts them (profile_of).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/model/footprint.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/recompute_level.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/core/instruction.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct work_size {
    flops computed;
    bytes moved;

    friend constexpr bool operator==(work_size const&, work_size const&) = default;
};

/// Of a stage, for one item.
struct stage_sizes {
    work_size forward{};
    work_size backward{};  ///< whole; each half of a split one is half of it
    bytes activation{};    ///< the message to the next stage
    bytes gradient{};      ///< the message to the stage before
    held_bytes held{};

    friend constexpr bool operator==(stage_sizes const&, stage_sizes const&) = default;
};

struct pipeline_sizes {
    std::vector<stage_sizes> stages;  ///< those of all copies
    std::vector<work_size> updates;   ///< by position

    friend bool operator==(pipeline_sizes const&, pipeline_sizes const&) = default;
};

struct step_sizes {
    std::vector<pipeline_sizes> pipelines;
    std::vector<bytes> units;  ///< the sums of a unit of reduction

    friend bool operator==(step_sizes const&, step_sizes const&) = default;
};

namespace detail {

/// Floating-point operations of AdamW for a parameter: both moments, their corrections, the quotient, the decay.
inline constexpr std::int64_t update_flops = 16;

/// A layer's part of stage_sizes.
struct layer_sizes {
    work_size forward;
    work_size backward;
    bytes boundary;
    bytes committed;
    std::int64_t parameters;
};

template <class OnlyWhenCalled = void>
std::vector<layer_sizes> layer_sizes_of(model_description const& model, microbatch_shape shape, dtype_policy const& policy)
{
    std::vector<layer_sizes> sizes;
    for (auto const& layer : model.layers) {
        auto const work = forward_flops(layer, shape);
        bytes const moved{(work > flops{0} ? parameter_count(layer) * size_of(policy.storage) : 0) + activation_bytes(layer, shape, policy).count};
        sizes.push_back({{work, moved},
                         {backward_flops(layer, shape), moved * 2},
                         boundary_bytes(layer, shape, policy),
                         committed_bytes(layer, policy),
                         parameter_count(layer)});
    }
    return sizes;
}

template <class OnlyWhenCalled = void>
void add(work_size& sum, work_size const& part)
{
    sum.computed += part.computed;
    sum.moved += part.moved;
}

/// What layers recompute in their backward by their level, and what they hold less.
template <class OnlyWhenCalled = void>
void recompute_layers(stage_sizes& stage, model_description const& model, layer_span span, array_view<recompute_level const> levels, microbatch_shape shape,
                      dtype_policy const& policy)
{
    for (auto l = at(span.begin); l < at(span.end) && !levels.empty(); ++l) {
        stage.backward.computed += recompute_flops(model.layers[l], shape, levels[l]);
        stage.held.activation -= levels[l] == recompute_level::none ? bytes{} : dropped_bytes(model.layers[l], shape, levels[l], policy);
    }
}

template <class OnlyWhenCalled = void>
pipeline_sizes sizes_of_pipeline(plan const& p, std::size_t pipeline, model_description const& model, std::vector<layer_sizes> const& layers,
                                 memory_terms const& terms)
{
    auto const& instance = p.pipelines[pipeline];
    auto const held = held_by_stages(model, instance, terms);
    auto const where = placement_of(instance);
    pipeline_sizes sizes;
    for (std::size_t s = 0; s < instance.stages.size(); ++s) {
        auto const span = layers_of(instance, stage_id{static_cast<int>(s)});
        stage_sizes stage{.held = held[s]};
        for (auto l = at(span.begin); l < at(span.end); ++l) {
            add(stage.forward, layers[l].forward);
            add(stage.backward, layers[l].backward);
        }
        stage.activation = at(span.end) < layers.size() ? layers[at(span.end) - 1].boundary : bytes{};
        stage.gradient = at(span.begin) > 0 ? layers[at(span.begin) - 1].boundary : bytes{};
        plan_position const place{true, pipeline_id{static_cast<int>(pipeline)}, where.positions[s], 0};
        recompute_layers(stage, model, span, recompute_levels_at(p, place), terms.shape, terms.policy);
        sizes.stages.push_back(stage);
    }
    auto const positions = groups_of(instance).size();
    for (std::size_t k = 0; k < positions; ++k) {
        work_size update{};
        for (auto const l : layers_in(layers_at(instance.cuts, where, static_cast<int>(k)))) {
            update.computed += flops{layers[at(l)].parameters * update_flops};
            update.moved += layers[at(l)].committed * 2;  // read and written
        }
        sizes.updates.push_back(update);
    }
    return sizes;
}

}  // namespace detail

/// The sizes of a plan's step. @param shape of an item  @pre the plan's cuts belong to the model. Cost: pipelines that equal the one before cost nothing but
/// their copy.
template <class OnlyWhenCalled = void>
step_sizes sizes_of(plan const& p, model_description const& model, microbatch_shape shape, dtype_policy const& policy)
{
    auto const layers = detail::layer_sizes_of(model, shape, policy);
    auto const terms = terms_of_ranks(shape, policy, static_cast<int>(p.pipelines.size()));
    step_sizes sizes;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const is_like_last = [&] {
            auto const& a = p.pipelines[i];
            auto const& b = p.pipelines[i - 1];
            return a.cuts == b.cuts && placement_of(a) == placement_of(b) && p.recompute.levels.empty();
        };
        sizes.pipelines.push_back(i > 0 && is_like_last() ? sizes.pipelines.back() : detail::sizes_of_pipeline(p, i, model, layers, terms));
    }
    auto const state = state_of(model);
    for (auto const& unit : reduction_units(state, static_cast<int>(model.layers.size()))) {
        sizes.units.push_back(sum_bytes(unit, state, policy));
    }
    return sizes;
}

/// What an instruction computes and moves; nothing where it is no computation.
constexpr work_size work_of(stage_sizes const& stage, instruction_kind kind)
{
    auto const half = work_size{{stage.backward.computed.count / 2}, {stage.backward.moved.count / 2}};
    switch (kind) {
    case instruction_kind::forward:
    case instruction_kind::recompute: return stage.forward;
    case instruction_kind::backward: return stage.backward;
    case instruction_kind::input_gradient: return half;
    case instruction_kind::weight_gradient: return {stage.backward.computed - half.computed, stage.backward.moved - half.moved};
    default: return {};
    }
}

}  // namespace rheo::inline v0
