// SPDX-License-Identifier: Apache-2.0
// Entries of a collection are values: equal when and only when all of their parts are.
#include "rheo/tensor/collection.hpp"

#include "support/catch.hpp"

using namespace rheo;

static_assert(initial_values{} == initial_values{0, 0} && !(initial_values{0, 0.02} == initial_values{0, 0.01}));
static_assert(use_info{tensor_id{1}, layer_id{2}, 3} == use_info{tensor_id{1}, layer_id{2}, 3});
static_assert(!(use_info{tensor_id{1}, layer_id{2}, 3} == use_info{tensor_id{1}, layer_id{2}, -1}));

TEST_CASE("collection: collections that differ anywhere are different")
{
    collection const one{{{"a", {2, 3}, {0, 1}, true, true, {layer_id{0}}, {use_id{0}}}}, {{tensor_id{0}, layer_id{0}, 0}}};
    auto const changed = [&](auto change) {
        auto other = one;
        change(other);
        return !(other == one);
    };
    CHECK(one == collection{one});
    CHECK(changed([](collection& c) { c.tensors[0].name.push_back('b'); }));
    CHECK(changed([](collection& c) { c.tensors[0].shape.columns = 2; }));
    CHECK(changed([](collection& c) { c.tensors[0].initial.mean = 1; }));
    CHECK(changed([](collection& c) { c.tensors[0].decays = false; }));
    CHECK(changed([](collection& c) { c.tensors[0].is_parameter = false; }));
    CHECK(changed([](collection& c) { c.tensors[0].layers.push_back(layer_id{1}); }));
    CHECK(changed([](collection& c) { c.tensors[0].uses.clear(); }));
    CHECK(changed([](collection& c) { c.uses[0].parameter = 1; }));
    CHECK(changed([](collection& c) { c.uses.clear(); }));
}
