// SPDX-License-Identifier: Apache-2.0
// The laws of re-sharding plans on random layouts: fewest bytes, least possible largest send (by Hall's theorem over all sets of ranks), fewest rounds.
#include "rheo/reshard/plan_reshard.hpp"

#include <limits>
#include <map>
#include <random>
#include <set>

#include "rheo/reshard/assignment.hpp"
#include "rheo/reshard/sub_collections.hpp"
#include "rheo/reshard/verify_reshard.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::vector<layout_tensor> random_tensors(std::mt19937& draw)
{
    std::vector<layout_tensor> tensors;
    for (auto count = 1 + draw() % 3; count > 0; --count) {
        layout_tensor tensor;
        tensor.name = std::to_string(count);
        tensor.shape.dimensions = 1 + static_cast<int>(draw() % 3);
        for (int d = 0; d < tensor.shape.dimensions; ++d) {
            tensor.shape[d] = 1 + draw() % 6;
        }
        tensor.element = {bytes{std::int64_t{1} << draw() % 3}, draw() % 2 == 0 ? bytes{4} : bytes{0}};
        tensors.push_back(tensor);
    }
    return tensors;
}

nd_box random_box(std::mt19937& draw, nd_shape const& shape)
{
    auto box = whole(shape);
    for (int d = 0; d < shape.dimensions; ++d) {
        if (draw() % 3 != 0) {
            box[d].begin = static_cast<std::int64_t>(draw() % static_cast<unsigned>(shape[d]));
            box[d].end = box[d].begin + static_cast<std::int64_t>(draw() % static_cast<unsigned>(shape[d] - box[d].begin + 1));
        }
    }
    return box;
}

/// Disjoint boxes at each rank; with `all`, rank 0 holds everything.
array_layout random_layout(std::mt19937& draw, std::vector<layout_tensor> const& tensors, bool all)
{
    array_layout layout{tensors, {}};
    auto const ranks = 1 + static_cast<int>(draw() % 5);
    for (int r = 0; r < ranks; ++r) {
        sub_collection place{{rank_id{r}}, {}};
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            tensor_id const tensor{static_cast<std::int32_t>(t)};
            if (all && r == 0) {
                place.parts.push_back({tensor, whole(tensors[t].shape)});
                continue;
            }
            std::vector<nd_box> free{whole(tensors[t].shape)};
            for (auto count = draw() % 4; count > 0; --count) {
                auto const box = random_box(draw, tensors[t].shape);
                bool const fits = std::any_of(free.begin(), free.end(), [&](auto const& f) { return contains(f, box); });
                if (fits && !is_empty(box)) {
                    place.parts.push_back({tensor, box, roles_of(tensors[t]).bits == 3 && draw() % 4 == 0 ? role_set{tensor_role::parameter} : all_roles});
                    subtract(free, box);
                }
            }
        }
        layout.places.push_back(place);
    }
    return layout;
}

using element = std::tuple<int, int, std::vector<std::int64_t>>;  // tensor, role, index

template <class Visit>
void for_each_element(layout_tensor const& tensor, int number, nd_box const& box, role_set roles, Visit const& visit)
{
    std::vector<std::int64_t> index;
    for (int d = 0; d < box.dimensions; ++d) {
        index.push_back(box[d].begin);
    }
    for (auto left = elements(box); left > 0; --left) {
        for (int r = 0; r < tensor_roles; ++r) {
            if ((roles & roles_of(tensor)).has(static_cast<tensor_role>(r))) {
                visit(element{number, r, index}, tensor.element[static_cast<std::size_t>(r)].size.count);
            }
        }
        for (int d = box.dimensions; d-- > 0 && ++index[static_cast<std::size_t>(d)] == box[d].end;) {
            index[static_cast<std::size_t>(d)] = box[d].begin;
        }
    }
}

std::map<rank_id, std::map<element, std::int64_t>> elements_of(array_layout const& layout)
{
    std::map<rank_id, std::map<element, std::int64_t>> result;
    for (auto const& place : layout.places) {
        for (auto const rank : place.ranks) {
            for (auto const& part : place.parts) {
                for_each_element(layout.tensors[at(part.tensor)], part.tensor.value, part.box, part.roles,
                                 [&](element const& e, std::int64_t size) { result[rank][e] = size; });
            }
        }
    }
    return result;
}

struct least_figures {
    std::int64_t needed = 0;
    std::int64_t largest_send = 0;
    std::int64_t largest_receive = 0;
    bool is_lost = false;
};

/// Element by element: Hall's theorem gives the largest send, over all sets of at most five ranks.
least_figures brute_force(array_layout const& from, array_layout const& to)
{
    least_figures least;
    auto const held = elements_of(from);
    std::map<unsigned, std::int64_t> by_holders;  // set of ranks, as bits
    for (auto const& [rank, wanted] : elements_of(to)) {
        std::int64_t missing = 0;
        for (auto const& [e, size] : wanted) {
            unsigned holders = 0;
            for (auto const& [other, has] : held) {
                holders |= has.count(e) != 0 ? 1U << other.value : 0U;
            }
            if ((holders >> rank.value & 1U) == 0) {
                least.is_lost = least.is_lost || holders == 0;
                by_holders[holders] += size;
                missing += size;
            }
        }
        least.needed += missing;
        least.largest_receive = std::max(least.largest_receive, missing);
    }
    for (unsigned ranks = 1; ranks < 32; ++ranks) {
        std::int64_t bound = 0;
        for (auto const& [holders, size] : by_holders) {
            bound += (holders & ~ranks) == 0 ? size : 0;
        }
        auto const count = std::int64_t{__builtin_popcount(ranks)};
        least.largest_send = std::max(least.largest_send, (bound + count - 1) / count);
    }
    return least;
}

/// Bytes of the largest row: of all that lies at one index of the first dimension that can be cut.
std::int64_t largest_row(std::vector<layout_tensor> const& tensors)
{
    std::int64_t most = 0;
    for (auto const& tensor : tensors) {
        auto const lengths = std::vector<std::int64_t>(tensor.shape.lengths, tensor.shape.lengths + tensor.shape.dimensions);
        auto const first = std::find_if(lengths.begin(), lengths.end() - 1, [](auto length) { return length > 1; });
        most = std::max(most, elements(whole(tensor.shape)) / *first * element_bytes(tensor, all_roles).count);
    }
    return most;
}

}  // namespace

TEST_CASE("plan_reshard: fewest bytes, least largest send")
{
    std::mt19937 draw{24};
    int planned = 0;
    for (int round = 0; round < 1500; ++round) {
        auto const tensors = random_tensors(draw);
        reshard_request request{.from = random_layout(draw, tensors, round % 5 != 0), .to = random_layout(draw, tensors, false)};
        if (round % 2 == 0) {
            request.round_budget = bytes{static_cast<std::int64_t>(8 + draw() % 40)};
        }
        auto const least = brute_force(request.from, request.to);
        request.live = {rank_id{0}, rank_id{1}, rank_id{2}, rank_id{3}, rank_id{4}};
        auto const out = try_reshard(request);
        CAPTURE(round, describe(out.fault).view());
        REQUIRE((out.fault.error == reshard_error::lost) == least.is_lost);
        if (least.is_lost) {
            continue;
        }
        REQUIRE(!out.fault);
        ++planned;
        REQUIRE(describe(verify(out.plan, request)).view() == "");
        auto const& is = out.plan.certificate;
        REQUIRE(is.needed == bounded_bytes{bytes{least.needed}, bytes{least.needed}});
        REQUIRE(is.moved == is.needed);
        REQUIRE(is.largest_receive == bounded_bytes{bytes{least.largest_receive}, bytes{least.largest_receive}});
        REQUIRE(is.largest_send.bound.count == least.largest_send);
        REQUIRE(is.largest_send.value.count < least.largest_send + largest_row(tensors));
        auto const budget = request.round_budget ? request.round_budget->count : 1 << 20;
        std::map<std::pair<rank_id, int>, std::int64_t> received;
        for (auto const& move : out.plan.transfers) {
            REQUIRE((received[{move.to, move.round}] += move.size.count) <= budget);
        }
        REQUIRE(is.rounds.bound >= (least.largest_receive + budget - 1) / budget);
        if (budget % 4 == 0 || !request.round_budget) {  // every element of one role divides it
            REQUIRE(is.rounds.bound == (least.largest_receive + budget - 1) / budget);
        }
        REQUIRE(is.rounds.value == is.rounds.bound);
        REQUIRE(out == try_reshard(request));
    }
    REQUIRE(planned > 700);
}

TEST_CASE("plan_reshard: any rank is the optimal assignment")
{
    std::mt19937 draw{5};
    for (int round = 0; round < 400; ++round) {
        auto const tensors = random_tensors(draw);
        reshard_request request{.from = random_layout(draw, tensors, true), .to = random_layout(draw, tensors, false), .ranks = rank_choice::any};
        request.live = {rank_id{0}, rank_id{1}, rank_id{2}, rank_id{3}, rank_id{4}, rank_id{9}};
        auto const held = elements_of(request.from);
        auto const wanted = elements_of(request.to);
        assignment_costs costs{static_cast<int>(request.to.places.size()), static_cast<int>(request.live.size()), {}};
        for (auto const& place : request.to.places) {
            for (auto const rank : request.live) {
                std::int64_t missing = 0;
                if (auto const found = wanted.find(place.ranks.front()); found != wanted.end()) {
                    for (auto const& [e, size] : found->second) {
                        missing += held.count(rank) != 0 && held.at(rank).count(e) != 0 ? 0 : size;
                    }
                }
                costs.values.push_back(missing);
            }
        }
        auto const out = try_reshard(request);
        REQUIRE(describe(out.fault).view() == "");
        auto const least = bytes{cheapest_assignment(costs).cost};
        REQUIRE(out.plan.certificate.needed == bounded_bytes{least, least});
        REQUIRE(out.plan.certificate.moved == bounded_bytes{least, least});
        REQUIRE(describe(verify(out.plan, request.from, request.to)).view() == "");
    }
}

TEST_CASE("plan_reshard: any rank among ten thousand distinct")
{
    // ZeRO's flat ranges: no two ranks hold the same, so that nothing is saved by classes.
    std::vector<layout_tensor> const all{{.name = "w", .shape = {50000, 2000}, .element = {bytes{8}}}};
    auto const from = on(ranks_from(rank_id{0}, 10000), flat(all, 10000), all);
    reshard_request request{.from = from, .to = on(ranks_from(rank_id{0}, 9000), flat(all, 9000), all)};
    auto const pinned = try_reshard(request).plan.certificate.needed.value;
    request.ranks = rank_choice::any;
    auto const out = try_reshard(request);
    REQUIRE(describe(out.fault).view() == "");
    auto const& needed = out.plan.certificate.needed;
    CHECK(needed.value == needed.bound);  // that of the dual
    CHECK(needed.value < pinned);
    CHECK(describe(verify(out.plan, request)).view() == "");
}

TEST_CASE("plan_reshard: a cyclic shift of ranks moves nothing")
{
    for (int n = 3; n <= 8; ++n) {
        array_layout from{{{.name = "w", .shape = {n, 4}}}, {}};
        auto to = from;
        for (int r = 0; r < n; ++r) {
            from.places.push_back({{rank_id{r}}, {{tensor_id{0}, {{r, r + 1}, {0, 4}}}}});
            to.places.push_back({{rank_id{(r + 1) % n}}, {{tensor_id{0}, {{r, r + 1}, {0, 4}}}}});
        }
        auto const moved = [&](rank_choice ranks) { return try_reshard({.from = from, .to = to, .ranks = ranks}).plan.certificate.moved.value.count; };
        CHECK(moved(rank_choice::pinned) == n * 16);
        CHECK(moved(rank_choice::any) == 0);
    }
}

TEST_CASE("plan_reshard: rounds are filled to the budget")
{
    array_layout from{{{.name = "a", .shape = {6}, .element = {bytes{1}}},
                       {.name = "b", .shape = {6}, .element = {bytes{1}}},
                       {.name = "c", .shape = {6}, .element = {bytes{1}}}},
                      {{{rank_id{0}}, {{tensor_id{0}, {{0, 6}}}, {tensor_id{1}, {{0, 6}}}, {tensor_id{2}, {{0, 6}}}}}}};
    auto to = from;
    to.places.front().ranks = {rank_id{1}};
    auto const out = try_reshard({.from = from, .to = to, .round_budget = bytes{10}});
    CHECK(out.plan.certificate.rounds == bounded_count{2, 2});  // 6 + 6 + 6: first fit needs 3
}

TEST_CASE("plan_reshard: roles are taken apart to fill a round")
{
    auto const rounds = [](std::array<element_format, tensor_roles> const& element, std::int64_t length, std::int64_t budget) {
        array_layout from{{{.name = "a", .shape = {length}, .element = element}}, {{{rank_id{0}}, {{tensor_id{0}, {{0, length}}}}}}};
        auto to = from;
        to.places.front().ranks = {rank_id{1}};
        auto const out = try_reshard({.from = from, .to = to, .round_budget = bytes{budget}});
        if (out.fault) {
            return bounded_count{-1, out.fault.limit};
        }
        CHECK(describe(verify(out.plan, {.from = from, .to = to, .round_budget = bytes{budget}})).view() == "");
        return out.plan.certificate.rounds;
    };
    CHECK(rounds({bytes{4}, bytes{4}, bytes{4}}, 8, 16) == bounded_count{6, 6});   // 96 / 16; whole elements of 12 bytes would need 8
    CHECK(rounds({bytes{4}, bytes{4}, bytes{4}}, 8, 4) == bounded_count{24, 24});  // no element fits in all of its roles
    CHECK(rounds({bytes{4}, bytes{4}, bytes{4}}, 8, 3) == bounded_count{-1, 4});
    CHECK(rounds({bytes{2}, bytes{4}, bytes{4}}, 8, 16) == bounded_count{5, 5});   // 80 / 16
    CHECK(rounds({bytes{2}, bytes{4}, bytes{4}}, 8, 10) == bounded_count{8, 8});   // two of 4 and one of 2
    CHECK(rounds({bytes{2}, bytes{4}, bytes{4}}, 8, 7) == bounded_count{16, 16});  // the law: 64 bytes at 4 a round, where ceil(80 / 7) is 12
    CHECK(rounds({bytes{8}, bytes{2}}, 6, 12) == bounded_count{6, 6});             // 48 at 8 a round; ceil(60 / 12) is 5
}

TEST_CASE("plan_reshard: sizes near 2^63 are planned or refused")
{
    auto const longest = std::numeric_limits<std::int64_t>::max();
    std::vector<layout_tensor> const all{{.name = "w", .shape = {longest}, .element = {bytes{1}}}};
    reshard_request request{.from = on(ranks_from(rank_id{0}, 4), collect(tensor_id{0}, slices_of({longest}) | cut({.parts = 4})), all),
                            .to = on(ranks_from(rank_id{0}, 3), collect(tensor_id{0}, slices_of({longest}) | cyclic({.block = longest / 7, .parts = 3})), all),
                            .node_of = nodes_of(4, 2)};
    for (auto const budget : {longest, longest / 5}) {
        for (auto const choice : {rank_choice::pinned, rank_choice::any}) {
            request.round_budget = bytes{budget};
            request.ranks = choice;
            auto const out = try_reshard(request);
            REQUIRE(describe(out.fault).view() == "");
            CHECK(out.plan.certificate.moved.value == bytes{choice == rank_choice::any ? 5270498306774157604 : 7246935171814466705});
            CHECK(describe(verify(out.plan, request)).view() == "");
        }
    }
    request.ranks = rank_choice::whole_nodes;
    CHECK(plan_reshard(request).error() ==
          "whole nodes are chosen for less than 1537228672809129301 bytes in all, and the target layout has 9223372036854775807");
}

TEST_CASE("plan_reshard: in place, an element may not fit whole")
{
    array_layout from{{{.name = "a", .shape = {8}, .element = {bytes{4}, bytes{4}, bytes{4}}}}, {{{rank_id{0}}, {{tensor_id{0}, {{0, 8}}}}}}};
    auto to = from;
    to.places.front().ranks = {rank_id{1}};
    reshard_request const request{.from = from, .to = to, .round_budget = bytes{8}, .memory_limit = bytes{96}};
    auto const out = try_reshard(request);
    REQUIRE(describe(out.fault).view() == "");
    CHECK(describe(verify(out.plan, request)).view() == "");  // no round of 12 bytes
}

TEST_CASE("plan_reshard: in place, rounds are full where memory allows")
{
    std::array<element_format, tensor_roles> const three{bytes{4}, bytes{4}, bytes{4}};
    array_layout const from{{{.name = "a", .shape = {8}, .element = three}}, {{{rank_id{0}}, {{tensor_id{0}, {{0, 8}}}}}}};
    auto to = from;
    to.places.front().ranks = {rank_id{1}};
    reshard_request request{.from = from, .to = to, .round_budget = bytes{16}, .memory_limit = bytes{96}};
    auto out = try_reshard(request);
    REQUIRE(describe(out.fault).view() == "");
    CHECK(describe(verify(out.plan, request)).view() == "");
    CHECK(out.plan.certificate.rounds == bounded_count{6, 6});  // 96 / 16; whole elements of 12 bytes would need 8
    CHECK_FALSE(out.plan.dropped.empty());
    // Roles that arrive one by one are one copy: of two and a new one, two stay.
    request.from.places.front().ranks = {rank_id{0}, rank_id{2}};
    request.failures = 1;
    out = try_reshard(request);
    REQUIRE(describe(out.fault).view() == "");
    CHECK(describe(verify(out.plan, request)).view() == "");
    CHECK(out.plan.certificate.rounds == bounded_count{6, 6});
    std::int64_t dropped = 0;
    for (auto const& drop : out.plan.dropped) {
        dropped += elements(drop.part.box);
    }
    CHECK(dropped == 8);
    // Two halves change places: 48 bytes beside 48 do not fit into 80.
    request.from.places = {{{rank_id{0}}, {{tensor_id{0}, {{0, 4}}}}}, {{rank_id{1}}, {{tensor_id{0}, {{4, 8}}}}}};
    request.to.places = {{{rank_id{1}}, {{tensor_id{0}, {{0, 4}}}}}, {{rank_id{0}}, {{tensor_id{0}, {{4, 8}}}}}};
    request.memory_limit = bytes{80};
    out = try_reshard(request);
    REQUIRE(describe(out.fault).view() == "");
    CHECK(describe(verify(out.plan, request)).view() == "");
    CHECK(out.plan.certificate.rounds.value >= out.plan.certificate.rounds.bound);
}

TEST_CASE("plan_reshard: in place under a memory limit")
{
    // Four ranks change rows for columns: each holds and wants 64 bytes of 256.
    std::vector<layout_tensor> const tensors{{.name = "w", .shape = {8, 8}}};
    auto const along = [&](int dimension) {
        return on(ranks_from(rank_id{0}, 4), collect(tensor_id{0}, slices_of({8, 8}) | cut({.dimension = dimension, .parts = 4})), tensors);
    };
    reshard_request request{.from = along(0), .to = along(1)};
    CHECK(try_reshard(request).plan.certificate.peak == bounded_bytes{bytes{112}, bytes{64}});  // 48 arrive beside 64
    request.memory_limit = bytes{80};
    auto const out = try_reshard(request);
    REQUIRE(describe(out.fault).view() == "");
    CHECK(describe(verify(out.plan, request.from, request.to)).view() == "");
    CHECK(out.plan.certificate.peak.value <= bytes{80});
    CHECK(out.plan.certificate.moved.value == bytes{192});
    CHECK(out.plan.certificate.rounds.value > 1);
    request.memory_limit = bytes{63};
    CHECK(plan_reshard(request).error() == "the memory limit is 63 bytes, and every plan needs at least 64");
    request.memory_limit = bytes{64};
    CHECK(plan_reshard(request).error() == "the memory limit is 64 bytes, and the plan that was found needs 72; allow that much");
    request.memory_limit = bytes{72};
    CHECK(plan_reshard(request).has_value());
}

TEST_CASE("plan_reshard: in place, f + 1 copies stay")
{
    std::mt19937 draw{31};
    int dropped = 0;
    for (int round = 0; round < 300; ++round) {
        auto const tensors = random_tensors(draw);
        reshard_request request{.from = random_layout(draw, tensors, true), .to = random_layout(draw, tensors, false)};
        request.live = {rank_id{0}, rank_id{1}, rank_id{2}, rank_id{3}, rank_id{4}};
        request.failures = static_cast<int>(draw() % 3);
        request.memory_limit = try_reshard(request).plan.certificate.peak.value;  // always enough
        auto const out = try_reshard(request);
        REQUIRE(describe(out.fault).view() == "");
        REQUIRE(describe(verify(out.plan, request)).view() == "");
        dropped += static_cast<int>(out.plan.dropped.size());
        std::map<element, std::int64_t> copies;
        for (auto const& [rank, has] : elements_of(request.from)) {
            for (auto const& [e, size] : has) {
                ++copies[e];
            }
        }
        auto const before = copies;
        for (int r = -1; r < out.plan.certificate.rounds.value; ++r) {
            for (auto const& move : out.plan.transfers) {
                if (move.round == r) {
                    for_each_element(tensors[at(move.tensor)], move.tensor.value, move.box, move.roles, [&](element const& e, std::int64_t) { ++copies[e]; });
                }
            }
            for (auto const& drop : out.plan.dropped) {
                if (drop.round == r) {
                    for_each_element(tensors[at(drop.part.tensor)], drop.part.tensor.value, drop.part.box, drop.part.roles,
                                     [&](element const& e, std::int64_t) { --copies[e]; });
                }
            }
            for (auto const& [e, count] : before) {
                REQUIRE(copies[e] >= std::min<std::int64_t>(count, request.failures + 1));
            }
        }
    }
    REQUIRE(dropped > 300);
}

TEST_CASE("plan_reshard: a converted format travels in the smaller one")
{
    auto const layout = [](dtype type, int dimension) {
        return on(ranks_from(rank_id{0}, 2), collect(tensor_id{0}, slices_of({4, 4}) | cut({.dimension = dimension, .parts = 2})),
                  {{.name = "w", .shape = {4, 4}, .element = {type}}});
    };
    for (auto const& [from, to, size] : {std::tuple{dtype::f32, dtype::f32, 4}, {dtype::f32, dtype::bf16, 2}, {dtype::bf16, dtype::f32, 2}}) {
        auto const out = try_reshard({.from = layout(from, 0), .to = layout(to, 1)});
        REQUIRE(describe(out.fault).view() == "");
        CHECK(out.plan.certificate.moved.value.count == 8 * size);
        auto const beside = from == to ? 4 * 4 : 8 * rheo::size_of(to);  // what arrives, or all that is converted
        CHECK(out.plan.certificate.peak.value.count == 8 * rheo::size_of(from) + beside);
        CHECK(describe(verify(out.plan, layout(from, 0), layout(to, 1))).view() == "");
    }
    CHECK(plan_reshard({.from = layout(dtype::f32, 0), .to = layout(dtype::i64, 1)}).error() ==
          "tensor \"w\": the two layouts keep it in formats that are not converted: f32 to and from bf16 are");
}

TEST_CASE("plan_reshard: addends come from every holder")
{
    // Ranks 0 to 2 hold addends of all; ranks 1 and 3 want halves of the sum.
    layout_tensor held{.name = "g", .shape = {8}, .element = {dtype::f32}, .addends = tensor_role::parameter};
    layout_tensor wanted{.name = "g", .shape = {8}, .element = {dtype::f32}};
    array_layout from{{held}, {{{rank_id{0}, rank_id{1}, rank_id{2}}, {{tensor_id{0}, {{0, 8}}}}}}};
    array_layout to{{wanted}, {{{rank_id{1}}, {{tensor_id{0}, {{0, 4}}}}}, {{rank_id{3}}, {{tensor_id{0}, {{4, 8}}}}}}};
    reshard_request request{.from = from, .to = to};
    auto const out = try_reshard(request);
    REQUIRE(describe(out.fault).view() == "");
    CHECK(describe(verify(out.plan, request)).view() == "");
    CHECK(out.plan.certificate.moved == bounded_bytes{bytes{(2 + 3) * 16}, bytes{(2 + 3) * 16}});
    CHECK(out.plan.certificate.largest_send == bounded_bytes{bytes{32}, bytes{32}});
    CHECK(out.plan.transfers.size() == 5);
    CHECK(out.plan.certificate.peak == bounded_bytes{bytes{48}, bytes{32}});  // rank 1: its addends and the sum

    request.ranks = rank_choice::any;  // two of those with addends
    CHECK(try_reshard(request).plan.certificate.needed == bounded_bytes{bytes{64}, bytes{64}});
    request.live = {rank_id{0}, rank_id{1}, rank_id{3}};
    CHECK(plan_reshard(request).error() == "tensor \"g\" [0:4]: an addend of this box is lost: rank 2 held it and is not live");
    request.live = {};
    request.memory_limit = bytes{1000};
    CHECK(plan_reshard(request).error() ==
          "tensor \"g\": no plan converts or adds under a memory limit, and the two layouts keep it in other formats; do that first, then move in place");
    request.memory_limit = {};
    request.to.tensors.front().element[0] = dtype::bf16;
    CHECK(plan_reshard(request).error() == "tensor \"g\": addends are f32, f64, i32 or i64 with a sum of the same, or bf16 with a sum in f32; these are not");
    request.to.tensors.front() = held;
    CHECK(plan_reshard(request).error() == "tensor \"g\": the target layout wants addends of it, but a plan brings only their sum");
}

namespace {

/// Bytes that a rank misses in a place.
std::int64_t missing_in(std::map<rank_id, std::map<element, std::int64_t>> const& wanted, std::map<rank_id, std::map<element, std::int64_t>> const& held,
                        taken_place one)
{
    std::int64_t missing = 0;
    if (auto const wants = wanted.find(one.place); wants != wanted.end()) {
        for (auto const& [e, size] : wants->second) {
            missing += held.count(one.rank) != 0 && held.at(one.rank).count(e) != 0 ? 0 : size;
        }
    }
    return missing;
}

}  // namespace

TEST_CASE("plan_reshard: whole nodes are the best of all permutations")
{
    std::mt19937 draw{77};
    for (int round = 0; round < 300; ++round) {
        auto const tensors = random_tensors(draw);
        reshard_request request{.from = random_layout(draw, tensors, true),
                                .to = random_layout(draw, tensors, false),
                                .live = ranks_from(rank_id{0}, 6),
                                .node_of = nodes_of(6, 2),
                                .ranks = rank_choice::whole_nodes};
        auto const held = elements_of(request.from);
        auto const wanted = elements_of(request.to);
        auto const places = static_cast<int>(request.to.places.size());
        auto least = std::numeric_limits<std::int64_t>::max();
        std::vector<int> nodes{0, 1, 2};
        do {
            for (int turned = 0; turned < 8; ++turned) {  // which nodes exchange their two ranks
                std::int64_t missing = 0;
                for (int place = 0; place < places; ++place) {
                    auto const node = nodes[static_cast<std::size_t>(place / 2)];
                    missing += missing_in(wanted, held, {rank_id{place}, rank_id{2 * node + (place % 2 ^ (turned >> node & 1))}});
                }
                least = std::min(least, missing);
            }
        } while (std::next_permutation(nodes.begin(), nodes.end()));
        auto const out = try_reshard(request);
        REQUIRE(describe(out.fault).view() == "");
        REQUIRE(out.plan.certificate.needed == bounded_bytes{bytes{least}, bytes{least}});
        REQUIRE(describe(verify(out.plan, request)).view() == "");
        for (auto const& one : out.plan.taken) {
            for (auto const& other : out.plan.taken) {
                REQUIRE((one.place.value / 2 == other.place.value / 2) == (one.rank.value / 2 == other.rank.value / 2));
            }
        }
    }
}

TEST_CASE("plan_reshard: a rank takes what its node holds from it")
{
    std::mt19937 draw{8};
    for (int round = 0; round < 400; ++round) {
        auto const tensors = random_tensors(draw);
        reshard_request request{.from = random_layout(draw, tensors, true),
                                .to = random_layout(draw, tensors, false),
                                .live = ranks_from(rank_id{0}, 5),
                                .node_of = nodes_of(5, 2)};
        auto const held = elements_of(request.from);
        std::int64_t far = 0;
        for (auto const& [rank, wanted] : elements_of(request.to)) {
            for (auto const& [e, size] : wanted) {
                bool near = false;
                for (auto const& [other, has] : held) {
                    near = near || (other.value / 2 == rank.value / 2 && has.count(e) != 0);
                }
                far += near ? 0 : size;
            }
        }
        auto const out = try_reshard(request);
        REQUIRE(describe(out.fault).view() == "");
        REQUIRE(out.plan.certificate.between_nodes == bounded_bytes{bytes{far}, bytes{far}});
        REQUIRE(out.plan.certificate.largest_send.value.count < out.plan.certificate.largest_send.bound.count + largest_row(tensors));
        REQUIRE(describe(verify(out.plan, request.from, request.to, request.node_of)).view() == "");
    }
}
