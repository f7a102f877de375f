// SPDX-License-Identifier: Apache-2.0
// A plan that is changed in any way is refused, with the culprit.
#include "rheo/reshard/verify_reshard.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/sub_collections.hpp"
#include "support/catch.hpp"
#include "support/random_layouts.hpp"

using namespace rheo;

namespace {

std::vector<layout_tensor> const tensors{{.name = "w", .shape = {8, 8}}};

array_layout cut_along(int dimension)
{
    return on(ranks_from(rank_id{0}, 4), collect(tensor_id{0}, slices_of({8, 8}) | cut({.dimension = dimension, .parts = 4})), tensors);
}

template <class Change>
std::string after(Change const& change)
{
    auto plan = try_reshard({.from = cut_along(0), .to = cut_along(1)}).plan;
    change(plan);
    return std::string{describe(verify(plan, cut_along(0), cut_along(1))).view()};
}

}  // namespace

TEST_CASE("verify_reshard: a changed plan is refused")
{
    CHECK(after([](reshard_plan&) {}).empty());
    CHECK(after([](auto& plan) { plan.transfers.pop_back(); }) ==
          "rank 3, tensor \"w\" [4:6, 6:8]: the rank wants these elements, and the plan does not bring them");
    CHECK(after([](auto& plan) { plan.kept.pop_back(); }) ==
          "rank 3, tensor \"w\" [6:8, 6:8]: the rank wants these elements, and the plan does not bring them");
    CHECK(after([](auto& plan) { plan.transfers.push_back(plan.transfers.back()); }) ==
          "rank 3, tensor \"w\" [4:6, 6:8]: the plan gives the rank these elements twice, or the rank has them already");
    CHECK(after([](auto& plan) { plan.transfers.back().from = rank_id{0}; }) ==
          "rank 0, tensor \"w\" [4:6, 6:8]: the plan takes this box from the rank, which does not have all of it at that time");
    CHECK(after([](auto& plan) { plan.transfers.back().size = bytes{3}; }) ==
          "rank 3, tensor \"w\" [4:6, 6:8]: the plan counts 3 bytes for this transfer, but they are 16");
    CHECK(after([](auto& plan) { plan.transfers.back().to = rank_id{0}; }).find("transfers ascend by round") != std::string::npos);
    CHECK(after([](auto& plan) { plan.transfers.back().box[1] = {4, 6}; }) ==
          "rank 3, tensor \"w\" [4:6, 4:6]: the plan gives the rank elements that it does not want");
    CHECK(after([](auto& plan) { plan.certificate.moved.value = bytes{1}; }) == "the certificate says 1 for moved bytes, but it is 192");
    CHECK(after([](auto& plan) { plan.certificate.largest_send.value = bytes{1}; }) == "the certificate says 1 for the largest send, but it is 48");
    CHECK(after([](auto& plan) { plan.taken = {{rank_id{0}, rank_id{1}}}; }) == "the ranks that take places are not a permutation of places and live ranks");
    CHECK(after([](auto& plan) { plan.dropped = {{0, rank_id{1}, {tensor_id{0}, {{2, 4}, {2, 4}}}}}; }) ==
          "rank 1, tensor \"w\" [2:4, 2:4]: the rank wants these elements, and the plan does not bring them");
}

namespace {

/// A plan of a request after a change, judged by the whole request.
template <class Change>
std::string judged(reshard_request const& request, Change const& change)
{
    auto const out = try_reshard(request);
    if (out.fault) {
        return std::string{describe(out.fault).view()};
    }
    auto plan = out.plan;
    change(plan);
    plan.certificate = detail::figures_of(plan, request.from, request.to, request.node_of);  // so that it is not the sums that are refused
    return std::string{describe(verify(plan, request)).view()};
}

}  // namespace

TEST_CASE("verify_reshard: a round above the budget is refused")
{
    reshard_request const request{.from = cut_along(0), .to = cut_along(1), .round_budget = bytes{32}};
    CHECK(judged(request, [](auto&) {}).empty());
    CHECK(judged(request, [](auto& plan) {
              for (auto& move : plan.transfers) {
                  move.round = 0;
              }
              std::sort(plan.transfers.begin(), plan.transfers.end(), detail::comes_before);
          }) == "rank 0: the plan brings 48 bytes in round 0, and the budget is 32");
}

TEST_CASE("verify_reshard: rounds put together may exceed the budget")
{
    std::mt19937 draw{6};
    int above = 0;
    for (int n = 0; n < 300; ++n) {
        auto const all = random_layouts::random_tensors(draw);
        reshard_request request{.from = random_layouts::random_layout(all, 4, draw), .to = random_layouts::random_layout(all, 4, draw)};
        request.round_budget = bytes{8 + static_cast<std::int64_t>(draw() % 60)};
        if (draw() % 2 == 0) {
            request.memory_limit = bytes{1 << 20};
        }
        auto const out = try_reshard(request);
        auto const last = static_cast<int>(out.plan.certificate.rounds.value) - 1;
        if (last < 1) {
            continue;
        }
        auto const first = static_cast<int>(draw() % static_cast<unsigned>(last));  // and the rounds behind it are one round
        std::map<rank_id, std::int64_t> received;
        for (auto const& move : out.plan.transfers) {
            received[move.to] += move.round >= first ? move.size.count : 0;
        }
        bool const fits = std::all_of(received.begin(), received.end(), [&](auto const& one) { return one.second <= request.round_budget->count; });
        auto const sentence = judged(request, [&](reshard_plan& plan) {
            for (auto& move : plan.transfers) {
                move.round = std::min(move.round, first);
            }
            for (auto& drop : plan.dropped) {
                drop.round = std::min(drop.round, first);
            }
            std::sort(plan.transfers.begin(), plan.transfers.end(), detail::comes_before);
        });
        CAPTURE(n, sentence);
        REQUIRE((sentence.find("and the budget is ") != std::string::npos) == !fits);
        REQUIRE(sentence.empty() == fits);
        above += fits ? 0 : 1;
    }
    CHECK(above > 50);
}

TEST_CASE("verify_reshard: a rank above the memory limit is refused")
{
    reshard_request const request{.from = cut_along(0), .to = cut_along(1), .memory_limit = bytes{80}};
    CHECK(judged(request, [](auto&) {}).empty());
    auto const late = [](auto& plan) {  // all of it is dropped at the end
        for (auto& drop : plan.dropped) {
            drop.round = plan.transfers.back().round;
        }
    };
    CHECK(judged(request, late).find("and the limit is 80") != std::string::npos);
}

TEST_CASE("verify_reshard: a copy that has to stay is not dropped")
{
    // Ranks 0 to 2 hold all; rank 3 wants it, too.
    array_layout from{tensors, {{{rank_id{0}, rank_id{1}, rank_id{2}}, {{tensor_id{0}, whole(nd_shape{8, 8})}}}}};
    array_layout const to{tensors, {{{rank_id{3}}, {{tensor_id{0}, whole(nd_shape{8, 8})}}}}};
    reshard_request request{.from = from, .to = to, .memory_limit = bytes{256}, .failures = 1};
    CHECK(judged(request, [](auto&) {}).empty());
    auto const drop_all = [](auto& plan) {
        plan.dropped.clear();
        for (int rank = 0; rank < 3; ++rank) {
            plan.dropped.push_back({plan.transfers.back().round, rank_id{rank}, {tensor_id{0}, whole(nd_shape{8, 8})}});
        }
    };
    CHECK(judged(request, drop_all).find("the rank drops this box after round 0, which leaves 1 copies of the 2 that stay") != std::string::npos);
    request.failures = 0;
    CHECK(judged(request, drop_all).empty());
    request.failures = 3;  // three copies are all there are
    CHECK(judged(request, [](auto&) {}).empty());
    CHECK(judged(request, drop_all).find("leaves 2 copies of the 3 that stay") != std::string::npos);
    request.failures = 0;
    request.to.places.front().parts = {{tensor_id{0}, {{0, 4}, {0, 8}}}};  // nobody wants the other half
    CHECK(judged(request, drop_all).find("[4:8, 0:8]: the rank drops this box after round 0, which leaves 0 copies of the 1 that stay") != std::string::npos);
}

TEST_CASE("verify_reshard: f + 1 copies are counted element by element")
{
    // After a plan in place each rank drops one more box that it holds and does not want.
    std::mt19937 draw{7};
    int refused = 0;
    int taken = 0;
    for (int n = 0; n < 400; ++n) {
        std::vector<layout_tensor> const vector{{.name = "w", .shape = {12}, .element = {bytes{1}}}};
        reshard_request request{.from = random_layouts::random_layout(vector, 5, draw), .to = random_layouts::random_layout(vector, 5, draw)};
        request.memory_limit = bytes{1 << 20};
        request.failures = static_cast<int>(draw() % 3);
        auto const out = try_reshard(request);
        REQUIRE(!out.fault);
        auto const rounds = static_cast<int>(out.plan.certificate.rounds.value);
        int copies[12]{};
        int first[12]{};
        bool has[5][12]{};
        auto const each = [](nd_box const& box, auto const& visit) {
            for (auto i = box[0].begin; i < box[0].end; ++i) {
                visit(static_cast<std::size_t>(i));
            }
        };
        for (auto const& place : request.from.places) {
            for (auto const& part : place.parts) {
                each(part.box, [&](std::size_t i) { ++first[i], ++copies[i], has[place.ranks.front().value][i] = true; });
            }
        }
        for (auto const& move : out.plan.transfers) {
            each(move.box, [&](std::size_t i) { ++copies[i], has[move.to.value][i] = true; });
        }
        for (auto const& drop : out.plan.dropped) {
            each(drop.part.box, [&](std::size_t i) { --copies[i], has[drop.rank.value][i] = false; });
        }
        for (auto const& place : request.to.places) {
            for (auto const& part : place.parts) {
                each(part.box, [&](std::size_t i) { has[place.ranks.front().value][i] = false; });  // this stays anyway
            }
        }
        std::vector<dropped_part> more;
        for (int r = 0; r < 5; ++r) {
            for (std::int64_t i = 0; i < 12; ++i) {
                if (has[r][i] && draw() % 3 == 0) {
                    more.push_back({std::max(rounds - 1, -1), rank_id{r}, {tensor_id{0}, {{i, i + 1}}, tensor_role::parameter}});
                    --copies[i];
                }
            }
        }
        bool stay = true;
        for (int i = 0; i < 12; ++i) {
            stay = stay && copies[i] >= std::min(first[i], request.failures + 1);
        }
        auto const sentence = judged(request, [&](reshard_plan& plan) { plan.dropped.insert(plan.dropped.end(), more.begin(), more.end()); });
        CAPTURE(n, sentence);
        REQUIRE((sentence.find(" that stay") != std::string::npos) == !stay);
        REQUIRE(sentence.empty() == stay);
        ++(stay ? taken : refused);
    }
    CHECK(refused > 20);
    CHECK(taken > 20);
}

TEST_CASE("verify_reshard: who is not live drops nothing")
{
    array_layout const from{tensors, {{{rank_id{0}, rank_id{1}}, {{tensor_id{0}, whole(nd_shape{8, 8})}}}}};
    array_layout const to{tensors, {{{rank_id{2}}, {{tensor_id{0}, whole(nd_shape{8, 8})}}}}};
    reshard_request const request{.from = from, .to = to, .live = {rank_id{0}, rank_id{2}}, .memory_limit = bytes{256}};
    CHECK(judged(request, [](auto&) {}).empty());
    CHECK(judged(request, [](auto& plan) { plan.dropped = {{0, rank_id{1}, {tensor_id{0}, whole(nd_shape{8, 8})}}}; }) ==
          "rank 1: the plan uses this rank, which is not live");
}

TEST_CASE("verify_reshard: sizes beyond 64 bits are wrong")
{
    auto const most = std::numeric_limits<std::int64_t>::max();
    std::vector<layout_tensor> const large{{.name = "w", .shape = {most}, .element = {bytes{4}}}};
    array_layout const from{large, {{{rank_id{0}}, {{tensor_id{0}, {{0, 8}}}}}}};
    array_layout const to{large, {{{rank_id{1}}, {{tensor_id{0}, {{0, 8}}}}}}};
    auto plan = try_reshard({.from = from, .to = to}).plan;
    plan.transfers.front().box[0].end = most;
    CHECK(describe(verify(plan, from, to)).view() ==
          "rank 1, tensor \"w\" [0:9223372036854775807]: the plan counts 32 bytes for this transfer, but they are 0");
}

TEST_CASE("verify_reshard: ranks of a plan are those of its request")
{
    array_layout const from{tensors, {{{rank_id{0}, rank_id{1}}, {{tensor_id{0}, whole(nd_shape{8, 8})}}}}};
    array_layout const to{tensors, {{{rank_id{2}}, {{tensor_id{0}, whole(nd_shape{8, 8})}}}}};
    reshard_request request{.from = from, .to = to, .live = {rank_id{0}, rank_id{2}}};
    CHECK(judged(request, [](auto&) {}).empty());
    CHECK(judged(request, [](auto& plan) { plan.transfers.front().from = rank_id{1}; }) == "rank 1: the plan uses this rank, which is not live");
    CHECK(judged(request, [](auto& plan) {
              plan.taken = {{rank_id{2}, rank_id{0}}};
              plan.kept = {{{rank_id{0}}, {{tensor_id{0}, whole(nd_shape{8, 8}), tensor_role::parameter}}}};
              plan.transfers.clear();
          }) == "rank 2: the ranks that take places are not a permutation of places and live ranks");
}

TEST_CASE("verify_reshard: each addend comes once, by rank")
{
    layout_tensor const held{.name = "g", .shape = {8}, .element = {dtype::f32}, .addends = tensor_role::parameter};
    array_layout const from{{held}, {{{rank_id{0}, rank_id{1}, rank_id{2}}, {{tensor_id{0}, {{0, 8}}}}}}};
    array_layout const to{{{.name = "g", .shape = {8}, .element = {dtype::f32}}}, {{{rank_id{1}}, {{tensor_id{0}, {{0, 8}}}}}}};
    reshard_request const request{.from = from, .to = to, .round_budget = bytes{32}};
    CHECK(judged(request, [](auto&) {}).empty());
    CHECK(judged(request, [](auto& plan) { plan.transfers.pop_back(); }) ==
          "rank 1, tensor \"g\" [0:8]: the rank wants these elements, and the plan does not bring them");
    CHECK(judged(request, [](auto& plan) { plan.kept.clear(); }) ==
          "rank 1, tensor \"g\" [0:8]: the rank wants these elements, and the plan does not bring them");
    CHECK(judged(request, [](auto& plan) { plan.transfers.back().from = rank_id{0}; }) ==
          "rank 1, tensor \"g\" [0:8]: the plan gives the rank these elements twice, or the rank has them already");
    CHECK(judged(request, [](auto& plan) { std::swap(plan.transfers.front().from, plan.transfers.back().from); }) ==
          "rank 1, tensor \"g\" [0:8]: an addend comes in round 0, before that of a lower rank; sums are in the order of ranks");
    CHECK(judged(request, [](auto& plan) { plan.held.clear(); }) ==
          "tensor \"g\": the plan was made for elements that the source layout keeps in another format");
}
