// SPDX-License-Identifier: Apache-2.0
// The laws of copy plans, checked element by element on random layouts of boxes.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "rheo/model/state.hpp"
#include "rheo/reshard/copy_plan.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

using element = std::tuple<int, std::int64_t, std::int64_t>;  // tensor, row, column
using elements_of = std::set<element>;

void add(elements_of& set, tensor_part const& part)
{
    for (auto r = part.box.row_begin; r < part.box.row_end; ++r) {
        for (auto c = part.box.column_begin; c < part.box.column_end; ++c) {
            set.insert({part.tensor.value, r, c});
        }
    }
}

std::map<rank_id, elements_of> elements_by_rank(std::vector<rank_parts> const& layout)
{
    std::map<rank_id, elements_of> result;
    for (auto const& rank : layout) {
        for (auto const& part : rank.parts) {
            add(result[rank.rank], part);
        }
    }
    return result;
}

/// Every wanted element that is not there comes exactly once from a holder, or is lost; nothing else does.
void check_laws(copy_plan_request const& request)
{
    auto const held = elements_by_rank(request.held);
    auto const wanted = elements_by_rank(request.wanted);
    auto const answer = copy_plan(request);
    std::map<rank_id, elements_of> received;
    bytes moved;
    for (auto const& round : answer.rounds) {
        for (auto const& c : round) {
            elements_of part;
            add(part, c.part);
            REQUIRE(c.size == static_cast<std::int64_t>(part.size()) * request.element_bytes[at(c.part.tensor)]);
            moved += c.size;
            for (auto const& e : part) {
                REQUIRE(held.at(c.from).count(e) == 1);
                REQUIRE(received[c.to].insert(e).second);
            }
        }
    }
    elements_of lost;
    for (auto const& part : answer.lost) {
        add(lost, part);
    }
    bytes least;
    elements_of missed;
    for (auto const& [rank, parts] : wanted) {
        for (auto const& e : parts) {
            auto const own = held.find(rank);
            bool const there = own != held.end() && own->second.count(e) == 1;
            bool const anywhere = std::any_of(held.begin(), held.end(), [&](auto const& h) { return h.second.count(e) == 1; });
            REQUIRE(received[rank].count(e) == (!there && anywhere ? 1U : 0U));
            least += !there && anywhere ? request.element_bytes[static_cast<std::size_t>(std::get<0>(e))] : bytes{0};
            if (!anywhere) {
                missed.insert(e);
            }
        }
    }
    std::size_t count = 0;
    for (auto const& [rank, parts] : received) {
        auto const all = wanted.find(rank);
        REQUIRE((parts.empty() || all != wanted.end()));
        count += parts.size();
    }
    REQUIRE(lost == missed);
    REQUIRE(answer.moved == moved);
    REQUIRE(moved == least);
    REQUIRE(answer == copy_plan(request));
}

std::vector<rank_parts> random_layout(std::mt19937& draw, int tensors, bool only_whole)
{
    std::vector<rank_parts> layout;
    int rank = 0;
    for (auto count = 1 + draw() % 5; count > 0; --count) {
        rank += 1 + static_cast<int>(draw() % 2);
        rank_parts parts{rank_id{rank}, {}};
        for (int t = 0; t < tensors; ++t) {
            for (auto boxes = draw() % 3; boxes > 0; --boxes) {
                index_box box{0, 4, 0, 5};
                if (!only_whole) {
                    box.row_begin = static_cast<std::int64_t>(draw() % 4);
                    box.row_end = box.row_begin + static_cast<std::int64_t>(draw() % 3);
                    box.column_begin = static_cast<std::int64_t>(draw() % 5);
                    box.column_end = box.column_begin + static_cast<std::int64_t>(draw() % 4);
                }
                parts.parts.push_back({tensor_id{t}, box});
            }
        }
        layout.push_back(parts);
    }
    return layout;
}

}  // namespace

TEST_CASE("copy_plan: each element comes once from a holder")
{
    std::mt19937 draw{9};
    for (int round = 0; round < 400; ++round) {
        auto const tensors = 1 + static_cast<int>(draw() % 3);
        copy_plan_request request{random_layout(draw, tensors, round % 4 == 0), random_layout(draw, tensors, round % 4 == 0), {}};
        for (int t = 0; t < tensors; ++t) {
            request.element_bytes.push_back(bytes{static_cast<std::int64_t>(1 + draw() % 12)});
        }
        if (round % 2 == 0) {
            request.round_budget = bytes{static_cast<std::int64_t>(1 + draw() % 100)};
        }
        check_laws(request);
    }
}

TEST_CASE("copy_plan: whole tensors; sources are spread")
{
    index_box const all{0, 10, 0, 10};
    copy_plan_request request{{}, {}, std::vector<bytes>(8, bytes{12})};
    for (int r = 0; r < 6; ++r) {
        rank_parts parts{rank_id{r}, {}};
        for (int t = 0; t < 8; ++t) {
            parts.parts.push_back({tensor_id{t}, all});
        }
        (r < 4 ? request.held : request.wanted).push_back(parts);
    }
    auto const answer = copy_plan(request);
    REQUIRE(answer.rounds.size() == 1);
    CHECK(answer.rounds.front().size() == 16);
    CHECK(answer.moved == bytes{16 * 1200});
    std::map<rank_id, int> sent;
    for (auto const& c : answer.rounds.front()) {
        CHECK(c.part.box == all);
        ++sent[c.from];
    }
    CHECK(sent == std::map<rank_id, int>{{rank_id{0}, 4}, {rank_id{1}, 4}, {rank_id{2}, 4}, {rank_id{3}, 4}});
}

TEST_CASE("copy_plan: recut tensors are copied by pieces")
{
    copy_plan_request request{{{rank_id{0}, {{tensor_id{0}, {0, 4, 0, 8}}}}, {rank_id{1}, {{tensor_id{0}, {4, 8, 0, 8}}}}},
                              {{rank_id{0}, {{tensor_id{0}, {0, 8, 0, 4}}}}, {rank_id{1}, {{tensor_id{0}, {0, 8, 4, 8}}}}},
                              {bytes{4}}};
    auto const answer = copy_plan(request);
    REQUIRE(answer.rounds.size() == 1);
    CHECK(answer.rounds.front() == std::vector<copy>{{rank_id{1}, rank_id{0}, {tensor_id{0}, {4, 8, 0, 4}}, bytes{64}},
                                                     {rank_id{0}, rank_id{1}, {tensor_id{0}, {0, 4, 4, 8}}, bytes{64}}});
}

TEST_CASE("copy_plan: layer parts: tied once, loss never")
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
    for (auto const& tensor : tensor_bytes_of(state, bytes{12})) {
        sum += tensor.size.count;
    }
    std::int64_t parameters = 0;
    for (auto const& tensor : state.tensors) {
        parameters += tensor.is_parameter ? elements(tensor.shape) : 0;
    }
    CHECK(sum == 12 * parameters);
}

TEST_CASE("copy_plan: unordered or unknown layouts rejected")
{
    CHECK_THROWS_AS(copy_plan({{{rank_id{1}, {}}, {rank_id{0}, {}}}, {}, {}}), precondition_error);
    CHECK_THROWS_AS(copy_plan({{{rank_id{1}, {{tensor_id{0}, {0, 1, 0, 1}}}}}, {}, {}}), precondition_error);
}
