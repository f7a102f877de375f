// SPDX-License-Identifier: Apache-2.0
// Layouts of a job's state: which tensors the holder of a layer has, and copies between such layouts.
#include "rheo/reshard/state_layout.hpp"

#include <algorithm>
#include <map>

#include "rheo/model/state.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/reshard/verify_reshard.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("state_layout: layer parts: tied once, loss never")
{
    auto const state = state_of(gpt_model({.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 1, .tied = true}));
    std::vector<layer_id> const first{layer_id{0}};
    std::vector<layer_id> const last{layer_id{2}};
    auto const of_first = whole_parts(state, first);
    auto const of_last = whole_parts(state, last);
    std::size_t common = 0;
    for (auto const& part : of_first) {
        common += static_cast<std::size_t>(std::count(of_last.begin(), of_last.end(), part));
    }
    CHECK(common == 1);
    for (auto const& part : of_last) {
        CHECK(state.tensors[at(part.tensor)].is_parameter);
    }
    std::int64_t sum = 0;
    for (auto const& tensor : tensor_bytes_of(state, committed_formats)) {
        sum += tensor.size.count;
    }
    std::int64_t parameters = 0;
    for (auto const& tensor : state.tensors) {
        parameters += tensor.is_parameter ? elements(tensor.shape) : 0;
    }
    CHECK(sum == 12 * parameters);
    CHECK(whole_parts(state, {}).empty());
}

TEST_CASE("state_layout: roles of divided state travel as they are kept")
{
    collection state;
    for (auto const roles : {committed_roles::all, committed_roles::parameter, committed_roles::moments, committed_roles::copy, committed_roles::optimizer}) {
        auto& tensor = state.tensors.emplace_back();
        tensor.name = "w" + std::to_string(state.tensors.size());
        tensor.shape = {3, 5};
        tensor.layers = {layer_id{0}};
        tensor.committed = roles;
    }
    auto const sizes = [&](dtype_policy const& policy) {
        std::vector<std::int64_t> each;
        for (auto const& tensor : tensor_bytes_of(state, committed_formats_of(policy))) {
            each.push_back(tensor.size.count / 15);
        }
        return each;
    };
    CHECK(sizes(fp32) == std::vector<std::int64_t>{12, 4, 8, 4, 12});
    CHECK(sizes(bf16) == std::vector<std::int64_t>{12, 4, 8, 2, 12});
    CHECK(sizes(bf16_state) == std::vector<std::int64_t>{6, 2, 4, 2, 6});
    auto const tensors = layout_tensors(state, committed_formats_of(bf16));
    auto const parameter = static_cast<std::size_t>(tensor_role::parameter);
    CHECK(tensors[3].element[parameter] == element_format{dtype::bf16});
    CHECK(tensors[4].element[parameter] == element_format{dtype::f32});
}

TEST_CASE("state_layout: equal ranks are one place; idle ranks none")
{
    auto const state = state_of(gpt_model({.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 1}));
    std::vector<layer_id> const front{layer_id{0}, layer_id{1}};
    std::vector<layer_id> const back{layer_id{2}};
    auto const layout = state_layout(state, layout_tensors(state, committed_formats),
                                     {{rank_id{0}, front}, {rank_id{1}, back}, {rank_id{2}, {}}, {rank_id{4}, front}, {rank_id{5}, back}});
    REQUIRE(layout.places.size() == 2);
    CHECK(layout.places[0].ranks == std::vector{rank_id{0}, rank_id{4}});
    CHECK(layout.places[1].ranks == std::vector{rank_id{1}, rank_id{5}});
    CHECK(layout.places[1].parts == whole_parts(state, back));
    CHECK_FALSE(fault(layout, coverage::partial));
}

TEST_CASE("state_layout: copies of whole tensors come from all holders")
{
    collection state;
    for (int t = 0; t < 8; ++t) {
        state.tensors.push_back({"w" + std::to_string(t), {10, 10}, {}, false, true, {layer_id{0}}, {}});
    }
    state.tensors.push_back({"a name that is longer than a layout has room for: " + std::string(100, 'x'), {1, 1}, {}, false, true, {layer_id{0}}, {}});
    state.tensors.push_back({"loss", {1, 2}, {}, false, false, {layer_id{0}}, {}});
    std::vector<layer_id> const all{layer_id{0}};
    std::vector<rank_layers> held;
    std::vector<rank_layers> wanted;
    for (int r = 0; r < 6; ++r) {
        (r < 4 ? held : wanted).push_back({rank_id{r}, all});
    }
    auto const tensors = layout_tensors(state, committed_formats);
    auto const from = state_layout(state, tensors, held);
    auto const to = state_layout(state, tensors, wanted);
    auto const plan = plan_reshard({.from = from, .to = to});
    REQUIRE(plan);
    CHECK(describe(verify(*plan, from, to)).view() == "");
    CHECK(plan->certificate.moved.value == bytes{2 * 12 * 801});
    CHECK(plan->certificate.moved.value == plan->certificate.moved.bound);
    std::map<rank_id, std::int64_t> sent;
    for (auto const& t : plan->transfers) {
        sent[t.from] += t.size.count;
        CHECK(state.tensors[at(t.tensor)].is_parameter);
    }
    CHECK(sent.size() == 4);
    for (auto const& [rank, size] : sent) {
        CHECK(size <= 2 * 12 * 801 / 4 + 12 * 10);
    }
}
