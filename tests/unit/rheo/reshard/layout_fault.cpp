// SPDX-License-Identifier: Apache-2.0
// Each fault of a layout or request is one sentence that names rank, tensor and box.
#include "rheo/reshard/layout_fault.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/sub_collections.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

array_layout two_halves()
{
    return on(ranks_from(rank_id{0}, 2), collect(tensor_id{0}, slices_of({6, 4}) | cut({.parts = 2})), {{.name = "w", .shape = {6, 4}}});
}

std::string sentence(array_layout const& layout) { return std::string{describe(fault(layout)).view()}; }
std::string sentence(reshard_request const& request) { return plan_reshard(request).error(); }

}  // namespace

TEST_CASE("layout_fault: a layout without fault has no sentence") { CHECK(sentence(two_halves()).empty()); }

TEST_CASE("layout_fault: each fault names its place")
{
    auto overlapping = two_halves();
    overlapping.places[1].parts.push_back({tensor_id{0}, {{2, 4}, {0, 1}}});
    CHECK(sentence(overlapping) == "rank 1, tensor \"w\" [3:6, 0:4]: the box overlaps with another of the same rank, [2:4, 0:1]");
    auto leaving = two_halves();
    leaving.places[1].parts[0].box[0].end = 7;
    CHECK(sentence(leaving) == "rank 1, tensor \"w\" [3:7, 0:4]: the box leaves the tensor [0:6, 0:4]");
    auto gap = two_halves();
    gap.places[0].parts[0].box[1].end = 3;
    CHECK(sentence(gap) == "tensor \"w\" [0:3, 3:4]: no rank has these elements");
    auto beyond = two_halves();  // more elements than 64 bits count, of which no rank has most
    beyond.tensors[0].shape[0] = std::numeric_limits<std::int64_t>::max() / 2;
    CHECK(sentence(beyond) == "tensor \"w\" [6:4611686018427387903, 0:4]: no rank has these elements");
    auto twice = two_halves();
    twice.places.push_back(twice.places[0]);
    CHECK(sentence(twice) == "rank 0: the layout lists this rank twice; list it once with all its parts");
    auto flat_box = two_halves();
    flat_box.places[0].parts[0].box = {{0, 3}};
    CHECK(sentence(flat_box) == "rank 0, tensor \"w\" [0:3]: the box has 1 dimensions and the tensor 2");
    auto unknown = two_halves();
    unknown.places[0].parts[0].tensor = tensor_id{1};
    CHECK(sentence(unknown) == "rank 0: the layout has 1 tensors, and a part names number 1");
    auto no_role = two_halves();
    no_role.places[0].parts[0].roles = tensor_role::first_moment;
    CHECK(sentence(no_role) == "rank 0, tensor \"w\" [0:3, 0:4]: the part names no role that the tensor has");
    auto names = two_halves();
    names.tensors.push_back(names.tensors[0]);
    CHECK(sentence(names) == "tensor \"w\": two tensors of the layout have this name; give each its own");
    auto element = two_halves();
    element.tensors[0].element = {bytes{std::numeric_limits<std::int64_t>::max()}, bytes{1}};
    CHECK(sentence(element) == "tensor \"w\": an element has at least 0 bytes in each role, and in all of them together less than 2^63");
    element.tensors[0].element = {bytes{4}, bytes{-1}};
    CHECK(sentence(element) == "tensor \"w\": an element has at least 0 bytes in each role, and in all of them together less than 2^63");
    auto negative = two_halves();
    negative.places[0].ranks[0] = rank_id{-4};
    CHECK(sentence(negative) == "ranks count from 0 to 16777215, and one is -4");
    negative.places[0].ranks[0] = rank_id{2000000000};
    CHECK(sentence(negative) == "ranks count from 0 to 16777215, and one is 2000000000");
    auto const large = std::numeric_limits<std::int64_t>::max() / 4;
    CHECK(sentence(on(ranks_from(rank_id{0}, 2), collect(tensor_id{0}, slices_of({large}) | replicated(2)), {{.name = "w", .shape = {large}}})) ==
          "rank 1, tensor \"w\" [0:" + std::to_string(large) + "]: the bytes of all ranks together do not fit into 64 bits");
}

TEST_CASE("layout_fault: lost elements name all who held them")
{
    std::vector<layout_tensor> const tensors{{.name = "w", .shape = {8}, .addends = role_set{std::uint8_t{0}}}};
    array_layout const to{tensors, {{{rank_id{20}}, {{tensor_id{0}, {{0, 8}}}}}}};
    auto const held_by = [&](int copies) {  // rank 0 has the first half, and so many the second
        array_layout from{tensors, {{{rank_id{0}}, {{tensor_id{0}, {{0, 4}}}}}}};
        from.places.push_back({ranks_from(rank_id{3}, copies), {{tensor_id{0}, {{4, 8}}}}});
        return reshard_request{.from = from, .to = to, .live = {rank_id{0}, rank_id{20}}};
    };
    std::string const lost = "rank 20, tensor \"w\" [4:8]: no live rank holds this box; ";
    CHECK(sentence(held_by(1)) == lost + "rank 3 held it and is not live");
    CHECK(sentence(held_by(2)) == lost + "ranks 3 and 4 held it and are not live");
    CHECK(sentence(held_by(8)) == lost + "ranks 3, 4, 5, 6, 7, 8, 9 and 10 held it and are not live");
    CHECK(sentence(held_by(11)) == lost + "ranks 3, 4, 5, 6, 7, 8, 9, 10 and 3 more held it and are not live");
    auto two_places = held_by(2);
    two_places.from.places.insert(two_places.from.places.begin(), {{rank_id{7}, rank_id{2}}, {{tensor_id{0}, {{0, 8}}}}});
    CHECK(sentence(two_places) == lost + "ranks 2, 3, 4 and 7 held it and are not live");
    auto sums = held_by(3);
    sums.from.tensors[0].element = {dtype::f32};
    sums.from.tensors[0].addends = tensor_role::parameter;
    sums.to.tensors[0].element = {dtype::f32};
    CHECK(sentence(sums) == "tensor \"w\" [4:8]: addends of this box are lost: ranks 3, 4 and 5 held them and are not live");
}

TEST_CASE("layout_fault: each refused request says what to do")
{
    reshard_request request{.from = two_halves(), .to = two_halves()};
    request.to.places[0].ranks[0] = rank_id{5};
    request.live = {rank_id{0}, rank_id{1}};
    CHECK(sentence(request) == "rank 5: the target layout names this rank, but it is not live; let other ranks take its place (ranks = any)");
    request.live = {rank_id{1}, rank_id{5}};
    CHECK(sentence(request) == "rank 5, tensor \"w\" [0:3, 0:4]: no live rank holds this box; rank 0 held it and is not live");
    request.live = {rank_id{1}};
    request.failures = -1;
    CHECK(sentence(request) == "failures + 1 copies stay: failures are at least 0, and these are -1");
    request.failures = 0;
    request.ranks = rank_choice::any;
    CHECK(sentence(request) == "the target layout has 2 places, but only 1 ranks are live");
    request.live = {rank_id{1}, rank_id{0}};
    CHECK(sentence(request) == "live ranks ascend from 0, each once; these do not");
    request.live = {};
    request.ranks = rank_choice::whole_nodes;
    CHECK(sentence(request) == "rank 0: the request names no node for this rank");
    request.ranks = rank_choice::pinned;
    request.round_budget = bytes{3};
    CHECK(sentence(request) == "tensor \"w\": one element takes 4 bytes, and a round may receive only 3");
    request.round_budget = {};
    request.from.tensors[0].addends = tensor_role::parameter;
    CHECK(sentence(request) == "tensor \"w\": addends are f32, f64, i32 or i64 with a sum of the same, or bf16 with a sum in f32; these are not");
    request.from = two_halves();
    request.to.tensors[0].shape[1] = 5;
    CHECK(sentence(request) == "tensor \"w\": both layouts list the same tensors with the same shapes and roles in the same order; this one differs");
}
