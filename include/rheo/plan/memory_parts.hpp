#pragma once
// SPDX-License-Identifier: Apache-2.0

// The memory of one rank of a pipeline, part by part, from the model, the schedule's program and the dtype policy alone. What flows is
// counted at the moment when the rank holds most of it. What is not counted: tokens, records, and the code.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rheo/model/backward_workspace.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/recompute_level.hpp"
#include "rheo/model/tied.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/stage_placement.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct memory_parts {
    parameter_bytes state{};
    bytes activations{};       ///< of all items in flight
    bytes kept_gradients{};    ///< at that moment, between the halves of split backwards
    bytes recompute_buffer{};  ///< the region of what is dropped and recomputed
    bytes workspace{};         ///< of backwards and kernels

    friend constexpr bool operator==(memory_parts const&, memory_parts const&) = default;
};

/// What flows: all that a step allocates for items.
constexpr bytes item_bytes(memory_parts const& parts) { return parts.activations + parts.kept_gradients + parts.recompute_buffer; }

/// What counts against plan.memory_mib: state and activations, but not what backwards and kernels work in.
constexpr bytes needed_bytes(memory_parts const& parts) { return total(parts.state) + item_bytes(parts); }

constexpr bytes total(memory_parts const& parts) { return needed_bytes(parts) + parts.workspace; }

struct named_bytes {
    std::string_view name;
    bytes size;

    friend constexpr bool operator==(named_bytes const&, named_bytes const&) = default;
};

/// The parts with their names, as they are printed.
constexpr std::array<named_bytes, 9> named_parts(memory_parts const& parts)
{
    return {{{"master parameters", parts.state.master},
             {"moments", parts.state.moments},
             {"stored parameters", parts.state.stored},
             {"accumulators", parts.state.accumulators},
             {"reduced gradients", parts.state.reduced},
             {"activations", parts.activations},
             {"kept gradients", parts.kept_gradients},
             {"activations recomputed", parts.recompute_buffer},
             {"workspace", parts.workspace}}};
}

/// The first of the largest.
template <class OnlyWhenCalled = void>
constexpr named_bytes largest_of(memory_parts const& parts)
{
    named_bytes largest{};
    for (auto const& part : named_parts(parts)) {
        largest = part.size > largest.size ? part : largest;
    }
    return largest;
}

/// What the memory of a rank depends on besides model and program.
struct memory_terms {
    microbatch_shape shape{};
    dtype_policy policy = fp32;
    int pipelines = 1;                              ///< that hold each layer
    gradient_buffer alone = gradient_buffer::none;  ///< of a tensor that no other pipeline holds and that has one use; see terms_of_ranks
    bytes kernels{};                                ///< what kernels work in
    double optimizer_share = 1.0;                   ///< of what optimizer shards divide of its layers

    friend constexpr bool operator==(memory_terms const&, memory_terms const&) = default;
};

/// The terms of ranks as they run, on processors and on devices: gradients have the buffer, but for those in sums of 32 bits, which are read where they were summed.
constexpr memory_terms terms_of_ranks(microbatch_shape shape, dtype_policy const& policy, int pipelines)
{
    return {
        .shape = shape, .policy = policy, .pipelines = pipelines, .alone = policy.accumulate == dtype::i32 ? gradient_buffer::none : gradient_buffer::reduced};
}

namespace detail {

constexpr parameter_bytes parts_of_tensor(tensor_shape shape, memory_terms const& terms, gradient_buffer buffer, int uses)
{
    return with_optimizer_share(parameter_bytes_of(shape, terms.policy, buffer, uses), terms.optimizer_share);
}

/// A tensor of a layer on a grid, with the uses that its shards make of it, and those among them that a run of shards makes.
struct tensor_of_shards {
    std::size_t layer;
    shard_parameter share;
    int uses = 0;
    int uses_of_run = 0;
};

template <class OnlyWhenCalled = void>
constexpr void add_tensors_of(std::size_t l, layer_description const& layer, shard_range run, std::vector<tensor_of_shards>& all)
{
    auto const begin = all.size();
    for (int j = 0; j < layer.shards; ++j) {
        auto const shard = sharded(layer, layer.shards, j);
        for (auto const& o : shard.ops) {
            for (auto const number : o.own.parameters) {
                if (number == no_parameter) {
                    continue;
                }
                auto const& share = shard.parameters[static_cast<std::size_t>(number)];
                auto known = begin;
                while (known < all.size() && !(all[known].share == share)) {
                    ++known;
                }
                if (known == all.size()) {
                    all.push_back({l, share});
                }
                ++all[known].uses;
                all[known].uses_of_run += j >= run.begin && j < run.end ? 1 : 0;
            }
        }
    }
}

/// state_parts of a model on a grid: parts of parameters, tied as the parameters are.
template <class OnlyWhenCalled = void>
constexpr parameter_bytes state_parts_of_shards(model_description const& model, array_view<layer_span const> held, memory_terms const& terms,
                                                shard_group const& group)
{
    auto const run = group.run(model.layers.front().shards);
    auto const& layers = model.layers;
    auto const here = [&](std::size_t layer) { return contains(held, layer_id{static_cast<int>(layer)}); };
    std::vector<char> concerns(layers.size(), 0);  // may have a parameter of a layer that is held
    for (std::size_t h = 0; h < layers.size(); ++h) {
        for (std::size_t l = 0; here(h) && l < layers.size(); ++l) {
            concerns[l] = concerns[l] != 0 || may_share(layers[h], layers[l]) ? 1 : 0;
        }
    }
    std::vector<tensor_of_shards> tensors;
    std::vector<std::size_t> first;  // of each layer
    for (std::size_t l = 0; l < layers.size(); ++l) {
        first.push_back(tensors.size());
        if (concerns[l] != 0) {
            add_tensors_of(l, layers[l], run, tensors);
        }
    }
    first.push_back(tensors.size());
    auto const is_same = [&](tensor_of_shards const& t, tensor_of_shards const& u) {
        return t.share.pieces == u.share.pieces && same_parameter(layers[t.layer], layers[t.layer].parameters[static_cast<std::size_t>(t.share.of)],
                                                                  layers[u.layer], layers[u.layer].parameters[static_cast<std::size_t>(u.share.of)]);
    };
    // What a layer has for itself is reduced together (reduction_units.hpp): in place only where each of these tensors has one use.
    std::vector<char> has_shared(layers.size(), 0);
    for (auto const& t : tensors) {
        bool elsewhere = false;
        for (std::size_t u = 0; t.uses > 1 && u < tensors.size(); ++u) {
            elsewhere = elsewhere || (tensors[u].layer != t.layer && may_share(layers[t.layer], layers[tensors[u].layer]) && is_same(t, tensors[u]));
        }
        has_shared[t.layer] = has_shared[t.layer] != 0 || (t.uses > 1 && !elsewhere) ? 1 : 0;
    }
    parameter_bytes sum{};
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        auto const& share = tensors[t].share;
        auto const l = tensors[t].layer;
        int before = 0, all = 0, uses = 0;
        for (std::size_t m = 0; here(l) && tensors[t].uses_of_run > 0 && m < layers.size(); ++m) {
            for (auto u = first[m]; may_share(layers[l], layers[m]) && u < first[m + 1]; ++u) {
                auto const& other = tensors[u];
                if (is_same(tensors[t], other)) {
                    all += other.uses;
                    uses += here(m) ? other.uses_of_run : 0;
                    before += here(m) && other.uses_of_run > 0 && u < t ? 1 : 0;
                }
            }
        }
        if (uses > 0 && before == 0) {
            auto const alone = has_shared[l] != 0 ? gradient_buffer::reduced : terms.alone;
            auto const buffer = terms.pipelines > 1 || all > 1 ? gradient_buffer::joined : alone;
            sum += parts_of_tensor(share.shape, terms, buffer, uses);
        }
    }
    return sum;
}

}  // namespace detail

/// What a holder of these layers keeps of their parameters: a tensor that several of them share once, with an accumulator for each use.
/// @param group the ranks that have the shards of these layers; none: one has all  Cost: pairs of layers, and pairs of parameters of those that may share some.
template <class OnlyWhenCalled = void>
constexpr parameter_bytes state_parts(model_description const& model, array_view<layer_span const> held, memory_terms const& terms,
                                      shard_group const& group = {})
{
    if (!model.layers.empty() && model.layers.front().shards > 1) {
        return detail::state_parts_of_shards(model, held, terms, group);
    }
    parameter_bytes sum{};
    auto const& layers = model.layers;
    auto const here = [&](std::size_t layer) { return contains(held, layer_id{static_cast<int>(layer)}); };
    for (std::size_t l = 0; l < layers.size(); ++l) {
        if (!here(l)) {
            continue;
        }
        std::vector<std::size_t> others;  // itself among them
        for (std::size_t m = 0; m < layers.size(); ++m) {
            if (may_share(layers[l], layers[m])) {
                others.push_back(m);
            }
        }
        for (std::size_t k = 0; k < layers[l].parameters.size(); ++k) {
            auto const& p = layers[l].parameters[k];
            int before = 0;  // uses on this rank that come first
            int all = 0;
            int uses = 0;
            for (auto const m : others) {
                for (std::size_t j = 0; j < layers[m].parameters.size(); ++j) {
                    if (same_parameter(layers[l], p, layers[m], layers[m].parameters[j])) {
                        ++all;
                        uses += here(m) ? 1 : 0;
                        before += here(m) && (m < l || (m == l && j < k)) ? 1 : 0;
                    }
                }
            }
            if (before == 0) {
                auto const buffer = terms.pipelines > 1 || all > 1 ? gradient_buffer::joined : terms.alone;
                sum += detail::parts_of_tensor(p.shape, terms, buffer, uses);
            }
        }
    }
    return sum;
}

/// What a member of each stage's group keeps for an item when nothing is recomputed; where a group has no such member, its last one.
template <class OnlyWhenCalled = void>
constexpr std::vector<held_bytes> held_by_stages(model_description const& model, pipeline_instance const& pipeline, memory_terms const& terms,
                                                 int member = largest_member)
{
    std::vector<held_bytes> held;
    for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
        auto const span = layers_of(pipeline, stage_id{s});
        auto const layers = array_view{model.layers}.subspan(at(span.begin), static_cast<std::size_t>(size(span)));
        auto const group = group_of(pipeline, stage_id{s}, grid_of(model), member);
        held.push_back({activation_bytes(layers, terms.shape, terms.policy, group), input_bytes(layers, terms.shape, terms.policy),
                        kept_gradient_bytes(layers, terms.shape, terms.policy, group)});
    }
    return held;
}

/// What the memory of a position depends on while nothing but the choice of what is recomputed changes.
struct rank_flow {
    program const& run;
    pipeline_instance const& pipeline;
    int position;
    std::vector<held_bytes> held{};               ///< by each stage, when nothing is recomputed
    std::vector<std::array<bytes, 3>> dropped{};  ///< layer -> what it drops under each recompute_level
    bytes workspace{};
};

/// The tables of flow_of. @pre the program's stages are the pipeline's
template <class OnlyWhenCalled = void>
constexpr rank_flow rank_flow_at(model_description const& model, pipeline_instance const& pipeline, program const& p, int position, memory_terms const& terms,
                                 int member = largest_member)
{
    expects(pipeline.stages.size() == p.placement.size(), "the program has other stages than the pipeline");
    expects(terms.shape.slices == p.slices, "the program has other slices than the microbatches");
    rank_flow flow{.run = p, .pipeline = pipeline, .position = position, .held = held_by_stages(model, pipeline, terms, member), .workspace = terms.kernels};
    auto const share = group_at(pipeline, position, grid_of(model), member);
    for (auto const& layer : model.layers) {
        flow.dropped.push_back({bytes{}, dropped_bytes(layer, terms.shape, recompute_level::cheap, terms.policy, share),
                                terms.shape.slices == 1 ? dropped_bytes(layer, terms.shape, recompute_level::full, terms.policy, share) : bytes{}});
    }
    for (std::size_t s = 0; s < p.placement.size(); ++s) {
        if (p.placement[s] == position) {
            auto const span = layers_of(pipeline, stage_id{static_cast<int>(s)});
            auto const layers = array_view{model.layers}.subspan(at(span.begin), static_cast<std::size_t>(size(span)));
            auto const group = group_of(pipeline, stage_id{static_cast<int>(s)}, grid_of(model), member);
            flow.workspace += backward_workspace_bytes(layers, terms.shape, terms.policy, group) +
                              exchange_bytes(layers, terms.shape, terms.policy, group) * (has_overlap(p, position) && group.is_alone() ? 2 : 1);
        }
    }
    return flow;
}

/// What flows through the position: all parts but the state. @param recompute_levels how much of what each layer of the model keeps is recomputed; empty: nothing
/// @pre no whole layers of sequences in slices
template <class OnlyWhenCalled = void>
constexpr memory_parts flow_of(rank_flow const& flow, array_view<recompute_level const> recompute_levels = {})
{
    expects(recompute_levels.empty() || recompute_levels.size() == flow.dropped.size(), "recompute_levels needs an entry for every layer of the model");
    memory_parts parts{.workspace = flow.workspace};
    auto held = flow.held;
    for (std::size_t s = 0; s < held.size(); ++s) {
        auto const span = layers_of(flow.pipeline, stage_id{static_cast<int>(s)});
        for (auto l = at(span.begin); l < at(span.end) && !recompute_levels.empty(); ++l) {
            expects(recompute_levels[l] != recompute_level::full || flow.run.slices == 1, "slices of a sequence are kept: later ones attend to them");
            auto const dropped = flow.dropped[l][static_cast<std::size_t>(recompute_levels[l])];
            held[s].activation -= dropped;
            if (flow.run.placement[s] == flow.position && dropped > parts.recompute_buffer) {
                parts.recompute_buffer = dropped;
            }
        }
    }
    parts.recompute_buffer = parts.recompute_buffer * (has_overlap(flow.run, flow.position) ? 2 : 1);
    auto const peak = peak_parts_by_rank(flow.run, held)[static_cast<std::size_t>(flow.position)];
    parts.activations = peak.activations;
    parts.kept_gradients = peak.gradients;
    return parts;
}

/// All parts of a position of a pipeline that runs the program, of one of the members of its group. @pre rank_flow_at's and flow_of's
template <class OnlyWhenCalled = void>
constexpr memory_parts parts_at(model_description const& model, pipeline_instance const& pipeline, program const& p, int position, memory_terms const& terms,
                                array_view<recompute_level const> recompute_levels = {}, int member = largest_member)
{
    auto parts = flow_of(rank_flow_at(model, pipeline, p, position, terms, member), recompute_levels);
    parts.state = state_parts(model, layers_at(pipeline.cuts, placement_of(p), position), terms, group_at(pipeline, position, grid_of(model), member));
    return parts;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template parameter_bytes state_parts<>(model_description const&, array_view<layer_span const>, memory_terms const&, shard_group const&);
extern template std::vector<held_bytes> held_by_stages<>(model_description const&, pipeline_instance const&, memory_terms const&, int);
extern template rank_flow rank_flow_at<>(model_description const&, pipeline_instance const&, program const&, int, memory_terms const&, int);
#endif

}  // namespace rheo::inline v0
