#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is known before a loss of a model of six layers with a tied tensor, and templates for two and for three ranks.

#include <string>
#include <vector>

#include "rheo/recover/replan.hpp"

namespace six_layers {

using namespace rheo;

inline constexpr int layers = 6;

inline replanning known_before()
{
    replanning known;
    known.layers = layers;
    known.wanted = {1, 8};
    for (int l = 0; l < layers; ++l) {
        known.state.tensors.push_back({"w" + std::to_string(l), {4, 4 + l}, {}, false, true, {layer_id{l}}, {use_id{l}}});
        known.state.uses.push_back({tensor_id{l}, layer_id{l}, 0});
    }
    known.state.tensors.push_back({"tied", {8, 4}, {}, false, true, {layer_id{0}, layer_id{5}}, {use_id{6}, use_id{7}}});
    known.state.uses.push_back({tensor_id{6}, layer_id{0}, 1});
    known.state.uses.push_back({tensor_id{6}, layer_id{5}, 1});
    std::vector<seconds> const times(layers, seconds{1});
    known.ready.templates.push_back(make_template({layer_id{0}, layer_id{3}, layer_id{6}}, times));
    known.ready.templates.push_back(make_template({layer_id{0}, layer_id{2}, layer_id{4}, layer_id{6}}, times));
    return known;
}

}  // namespace six_layers
