#pragma once
// SPDX-License-Identifier: Apache-2.0

// What ranks allocate for each layer of a model, as planning asks for it: the bytes of profiles by layer, from which the prices of any stage
// (partition/stage_prices.hpp) are those of the memory plan (plan/memory_parts.hpp). So what templates have room for is what a rank has room for.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/model/footprint.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/recompute_level.hpp"
#include "rheo/model/tied.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// True when they have a parameter in common.
constexpr bool are_tied(layer_description const& a, layer_description const& b)
{
    return may_share(a, b) && std::any_of(a.parameters.begin(), a.parameters.end(), [&](parameter const& p) {
               return std::any_of(b.parameters.begin(), b.parameters.end(), [&](parameter const& q) { return same_parameter(a, p, b, q); });
           });
}

}  // namespace detail

/// Writes them into the profiles of the model's layers. A layer that is tied to several counts what it has in common with the first of them.
/// @param most what each layer may recompute: all of it is dropped then
/// @param group of ranks that share each layer, seen from the one whose memory is meant; none: one rank has all
/// @pre one profile per layer; no whole layers of sequences in slices. Cost: layers squared.
template <class OnlyWhenCalled = void>
constexpr void set_memory(array_view<layer_profile> layers, model_description const& model, memory_terms const& terms,
                          recompute_level most = recompute_level::none, shard_group const& group = {})
{
    expects(layers.size() == model.layers.size(), "memory is set in a profile of every layer of the model");
    auto const span_of = [](std::size_t l) { return layer_span{layer_id{static_cast<int>(l)}, layer_id{static_cast<int>(l) + 1}}; };
    auto const state_of = [&](array_view<layer_span const> held) { return total(state_parts(model, held, terms, group)); };
    for (std::size_t l = 0; l < layers.size(); ++l) {
        auto& layer = layers[l];
        auto const one = array_view{model.layers}.subspan(l, 1);
        auto const slices = terms.shape.slices;
        auto const dropped = dropped_bytes(one.front(), terms.shape, most, terms.policy, group);
        layer.recompute_buffer = dropped;
        layer.per_microbatch = (activation_bytes(one, terms.shape, terms.policy, group) - dropped) * slices;
        layer.input = l == 0 ? bytes{} : input_bytes(one, terms.shape, terms.policy) * slices;
        layer.kept_gradients = kept_gradient_bytes(one, terms.shape, terms.policy, group) * slices;
        auto const here = span_of(l);
        layer.persistent = state_of(array_view{&here, 1});
        layer.tied_to = -1;
        layer.tied = {};
        for (std::size_t m = 0; m < l && layer.tied_to < 0; ++m) {
            if (detail::are_tied(model.layers[m], model.layers[l])) {
                layer_span const both[] = {span_of(m), here};
                layer.tied_to = static_cast<int>(m);
                layer.tied = layers[m].persistent + layer.persistent - state_of(both);
            }
        }
    }
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template void set_memory<>(array_view<layer_profile>, model_description const&, memory_terms const&, recompute_level, shard_group const&);
#endif

}  // namespace rheo::inline v0
