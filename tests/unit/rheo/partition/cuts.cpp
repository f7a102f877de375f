// SPDX-License-Identifier: Apache-2.0
// Cuts as type and value: the compiler decides all of it.
#include "rheo/partition/cuts.hpp"

using namespace rheo;

namespace {

constexpr bool ascend(std::initializer_list<int> values)
{
    std::vector<layer_id> bounds;
    for (auto const v : values) {
        bounds.push_back(layer_id{v});
    }
    return are_cuts(bounds);
}

}  // namespace

static_assert(ascend({0, 1}) && ascend({0, 5, 10, 14}));
static_assert(!ascend({}) && !ascend({0}) && !ascend({1, 2}) && !ascend({0, 2, 2}) && !ascend({0, 3, 1}));
static_assert(cuts<0, 5, 10, 14>::stages == 3);
static_assert(cuts<0, 5, 10, 14>::describe().back() == layer_id{14});
static_assert(layers_of(cuts<0, 5, 10, 14>::describe(), stage_id{1}) == layer_span{layer_id{5}, layer_id{10}});
static_assert(size(layers_of(cuts<0, 5, 10, 14>::describe(), stage_id{2})) == 4);
static_assert(contains(layer_span{layer_id{5}, layer_id{10}}, layer_id{9}) && !contains(layer_span{layer_id{5}, layer_id{10}}, layer_id{10}));
