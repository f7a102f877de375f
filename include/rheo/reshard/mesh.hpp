#pragma once
// SPDX-License-Identifier: Apache-2.0

// The layout of a training job on a mesh of tensor, pipeline and data parallel ranks, (T, P, D) as Tenplex writes it. Ranks are numbered in
// Megatron-LM's order: tensor parallel ranks are neighbours, then data, then pipeline (Narayanan et al., SC21).
// What is cut, and along which dimension, follows from the operations that read and write it (Shoeybi et al. 2019): a linear whose
// output goes to an attention or an activation by columns, the one behind those by rows, tables by rows, all else is replicated.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/model/model.hpp"
#include "rheo/model/tied.hpp"
#include "rheo/reshard/array_layout.hpp"
#include "rheo/reshard/detail/expects_at.hpp"
#include "rheo/reshard/slicing.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct mesh_shape {
    int tensor = 1;
    int pipeline = 1;
    int data = 1;

    friend constexpr bool operator==(mesh_shape, mesh_shape) = default;
};

constexpr int ranks_of(mesh_shape mesh) { return mesh.tensor * mesh.pipeline * mesh.data; }

/// A place in a mesh, each from 0.
struct mesh_place {
    int tensor = 0;
    int pipeline = 0;
    int data = 0;
};

constexpr rank_id rank_in(mesh_shape mesh, mesh_place place) { return rank_id{place.tensor + mesh.tensor * (place.data + mesh.data * place.pipeline)}; }

/// How a tensor of a mesh is cut over the tensor parallel ranks.
struct mesh_rule {
    enum class kind : std::uint8_t { replicated, cut, heads } form = kind::replicated;
    int dimension = 0;
    int segments = 1;     ///< equal parts of the dimension that are each cut: gate and value
    int query_heads = 1;  ///< of a fused query, key, value matrix
    int key_value_heads = 1;
    std::int64_t padding = 0;  ///< the dimension is padded to a multiple of this times T; 0: not

    friend constexpr bool operator==(mesh_rule const&, mesh_rule const&) = default;
};

struct mesh_tensor {
    layout_tensor tensor;
    std::vector<int> layers;  ///< ascending: each stage with one of them has the tensor
    mesh_rule rule{};

    friend constexpr bool operator==(mesh_tensor const&, mesh_tensor const&) = default;
};

using element_formats = std::array<element_format, tensor_roles>;

/// Parameters and both moments in fp32.
inline constexpr element_formats fp32_state{dtype::f32, dtype::f32, dtype::f32};

namespace detail {

constexpr tensor_name name_in_model(layer_description const& layer, parameter const& p)
{
    tensor_name name;
    for (std::size_t i = 0; i < layer.prefix.size(); ++i) {
        if (layer.prefix[i] == '#') {
            name << layer.ordinal;
        } else {
            name << layer.prefix.substr(i, 1);
        }
    }
    name << p.name;
    return name;
}

/// The operation that reads a slot and decides how its columns are cut; nullptr: none does.
constexpr op const* cutting_reader(layer_description const& layer, int slot)
{
    for (auto const& o : layer.ops) {
        bool const cuts =
            o.kind == op_kind::attention || o.kind == op_kind::qk_norm || o.kind == op_kind::rope || o.kind == op_kind::gelu || o.kind == op_kind::swiglu;
        if (cuts && (o.x[0] == slot || o.x[1] == slot)) {
            return &o;
        }
    }
    return nullptr;
}

/// @param place 0: weight or table, 1: bias
constexpr mesh_rule rule_of(layer_description const& layer, op const& o, std::size_t place)
{
    if (o.kind == op_kind::embedding || o.kind == op_kind::unembed) {
        return place == 0 ? mesh_rule{.form = mesh_rule::kind::cut, .dimension = 0, .padding = 128} : mesh_rule{};
    }
    if (o.kind == op_kind::linear_gelu) {
        return {.form = mesh_rule::kind::cut, .dimension = 1};
    }
    if (o.kind != op_kind::linear) {
        return {};
    }
    auto const* reader = cutting_reader(layer, o.z[0]);
    if (reader == nullptr) {
        return place == 0 ? mesh_rule{.form = mesh_rule::kind::cut, .dimension = 0} : mesh_rule{};
    }
    if (reader->kind == op_kind::attention || reader->kind == op_kind::rope || reader->kind == op_kind::qk_norm) {
        return {.form = mesh_rule::kind::heads, .dimension = 1, .query_heads = reader->heads, .key_value_heads = kv_heads_of(*reader)};
    }
    return {.form = mesh_rule::kind::cut, .dimension = 1, .segments = reader->kind == op_kind::swiglu ? 2 : 1};
}

template <class OnlyWhenCalled = void>
constexpr slices slices_in(mesh_tensor const& one, int parts)
{
    auto const all = slices_of(one.tensor.shape);
    auto const& rule = one.rule;
    if (rule.form == mesh_rule::kind::replicated) {
        return all | replicated(parts);
    }
    if (rule.form == mesh_rule::kind::heads) {
        return all | heads({.dimension = rule.dimension, .query = rule.query_heads, .key_value = rule.key_value_heads, .parts = parts});
    }
    cut_rule cuts;
    cuts.dimension = rule.dimension;
    cuts.parts = parts;
    if (rule.segments > 1) {
        segment_rule equal;
        equal.dimension = rule.dimension;
        equal.sizes.assign(static_cast<std::size_t>(rule.segments), one.tensor.shape[rule.dimension] / rule.segments);
        return all | segments(equal) | cut(cuts);
    }
    if (rule.padding > 0) {
        expects_at({rule.dimension, one.tensor.shape[rule.dimension], "padded on each rank to a multiple of", rule.padding},
                   rule.padding <= std::numeric_limits<std::int64_t>::max() / parts, "that of all tensor parallel ranks does not fit into 64 bits");
        return all | padded({.dimension = rule.dimension, .multiple = rule.padding * parts}) | cut(cuts);
    }
    return all | cut(cuts);
}

}  // namespace detail

/// The distinct parameters of a model with the layers that have them and how they are cut. @param element of each, by role
template <class OnlyWhenCalled = void>
constexpr std::vector<mesh_tensor> mesh_tensors(model_description const& model, element_formats const& element = fp32_state)
{
    std::vector<mesh_tensor> tensors;
    std::vector<std::size_t> first;  // layer -> its first new tensor
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
        auto const& layer = model.layers[l];
        first.push_back(tensors.size());
        for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
            auto const& parameter = layer.parameters[p];
            auto const name = detail::name_in_model(layer, parameter);
            auto same = tensors.size();
            for (std::size_t other = 0; other < l && same == tensors.size(); ++other) {
                for (auto t = first[other]; may_share(model.layers[other], layer) && t < first[other + 1] && same == tensors.size(); ++t) {
                    same = tensors[t].tensor.name.view() == name.view() ? t : same;
                }
            }
            if (same != tensors.size()) {
                tensors[same].layers.push_back(static_cast<int>(l));
                continue;
            }
            mesh_tensor next;
            next.tensor.name = name;
            next.tensor.shape = {parameter.shape.rows, parameter.shape.columns};
            next.tensor.element = element;
            next.layers.push_back(static_cast<int>(l));
            for (auto const& o : layer.ops) {
                for (std::size_t place = 0; place < o.parameters.size(); ++place) {
                    if (o.parameters[place] == static_cast<int>(p)) {
                        next.rule = detail::rule_of(layer, o, place);
                    }
                }
            }
            tensors.push_back(next);
        }
    }
    return tensors;
}

/// Cuts that give each stage as many of the layers between the first and the last as any other, the first ones one more: Megatron's.
/// @pre stages >= 1, at least two layers
template <class OnlyWhenCalled = void>
constexpr std::vector<int> even_cuts(int layers, int stages)
{
    expects(stages >= 1 && layers >= 2, "a mesh has at least one stage, and a model a first and a last layer");
    std::vector<int> cuts(1, 0);
    auto const blocks = layers - 2;
    for (int s = 1; s < stages; ++s) {
        cuts.push_back(1 + blocks / stages * s + std::min(s, blocks % stages));
    }
    cuts.push_back(layers);
    return cuts;
}

/// The layout of a job. @param cuts of the layers, as a pipeline template has them: one more than stages @param first the lowest rank
template <class OnlyWhenCalled = void>
constexpr array_layout mesh_layout(std::vector<mesh_tensor> const& tensors, mesh_shape mesh, std::vector<int> const& cuts, rank_id first = {})
{
    expects(mesh.tensor >= 1 && mesh.pipeline >= 1 && mesh.data >= 1, "a mesh has at least one rank in each direction");
    expects(first.value >= 0 && first.value < most_ranks && mesh.tensor <= (most_ranks - first.value) / mesh.pipeline / mesh.data,
            "the ranks of a mesh count from 0 to 16777215; this one has more");
    expects(cuts.size() == static_cast<std::size_t>(mesh.pipeline) + 1, "a mesh has one cut more than stages");
    array_layout layout;
    std::vector<sub_collection> places(static_cast<std::size_t>(mesh.tensor * mesh.pipeline));  // by stage, then tensor parallel rank
    for (auto const& one : tensors) {
        auto const cut = detail::slices_in(one, mesh.tensor);
        tensor_id const number{static_cast<std::int32_t>(layout.tensors.size())};
        layout.tensors.push_back(one.tensor);
        if (cut.padded != cut.shape) {
            layout.tensors.back().padded = cut.padded;
        }
        for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
            bool const has = std::any_of(one.layers.begin(), one.layers.end(), [&](int layer) { return cuts[s] <= layer && layer < cuts[s + 1]; });
            for (std::size_t t = 0; has && t < cut.parts.size(); ++t) {
                for (auto const& box : cut.parts[t]) {
                    places[s * cut.parts.size() + t].parts.push_back({number, box});
                }
            }
        }
    }
    for (int p = 0; p < mesh.pipeline; ++p) {
        for (int t = 0; t < mesh.tensor; ++t) {
            auto& place = places[static_cast<std::size_t>(p * mesh.tensor + t)];
            for (int d = 0; d < mesh.data; ++d) {
                place.ranks.push_back(rank_id{first.value + rank_in(mesh, {.tensor = t, .pipeline = p, .data = d}).value});
            }
        }
    }
    layout.places = places;
    return layout;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template array_layout mesh_layout<>(std::vector<mesh_tensor> const&, mesh_shape, std::vector<int> const&, rank_id);
#endif

}  // namespace rheo::inline v0
