// SPDX-License-Identifier: Apache-2.0
// Ranks are assigned to the places of a new plan. Tried against all permutations of the ranks: none moves fewer bytes.
#include "rheo/planner/changed_plan.hpp"

#include <algorithm>
#include <numeric>

#include "rheo/model/gpt.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

model_description const gpt = on_grid(gpt_model({.vocabulary = 96, .context = 16, .width = 64, .heads = 4, .blocks = 2}), 4);

planning_request request_for(std::vector<int> pipelines, std::vector<int> tensor, int spares = 0)
{
    return {.schedule = one_f_one_b{}, .microbatches = 4, .pipelines = std::move(pipelines), .tensor = {std::move(tensor)}, .failures = 0, .spares = spares};
}

std::vector<rank_id> numbered(int count)
{
    std::vector<rank_id> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), rank_id{0});
    return ranks;
}

/// Bytes that ranks miss under the plan.
std::int64_t missing(plan const& p, std::vector<rank_holdings> const& holdings, replanning const& known)
{
    std::int64_t sum = 0;
    for (auto const& after : holdings_under(p, ranks_of(p), known.cells_per_layer)) {
        auto const wanted = whole_parts(known.state, after.layers);
        auto const mine = std::find_if(holdings.begin(), holdings.end(), [&](auto const& holds) { return holds.rank == after.rank; });
        auto const held = mine == holdings.end() ? std::vector<array_part>{} : whole_parts(known.state, mine->layers);
        for (auto const& part : wanted) {
            if (std::none_of(held.begin(), held.end(), [&](auto const& one) { return one.tensor == part.tensor; })) {
                sum += elements(part.box) * element_bytes(known.formats.roles).count;
            }
        }
    }
    return sum;
}

struct change_case {
    planning_request from;
    planning_request to;
    int ranks;
};

}  // namespace

TEST_CASE("changed_plan: no other choice of ranks moves fewer bytes")
{
    for (auto const& [from, to, ranks] : {change_case{request_for({2, 2}, {1}), request_for({4}, {2}), 4},
                                          {request_for({4}, {2}), request_for({2, 2}, {1}), 4},
                                          {request_for({4}, {4}), request_for({1, 3}, {1}), 4},
                                          {request_for({1, 3}, {1}), request_for({4}, {3, 1}), 4},
                                          {request_for({4}, {3, 1}), request_for({5}, {1, 4}), 5},
                                          {request_for({2, 2}, {2}, 1), request_for({5}, {2, 3}), 5}}) {
        auto const known = make_replanning(gpt, to, ranks);
        auto spare_of_from = from;
        spare_of_from.spares = ranks - std::accumulate(from.pipelines.begin(), from.pipelines.end(), 0);
        auto const before = make_plan(gpt, spare_of_from, ranks);
        auto const planned = make_plan_on(gpt, to, numbered(ranks));
        REQUIRE(before);
        REQUIRE(planned);
        auto const holdings = holdings_under(before->plan, ranks_of(before->plan), 4);
        auto const chosen = with_fewest_moves(*planned, numbered(ranks), holdings, known, {});
        CHECK(plan_error(chosen, gpt, to, ranks).empty());
        auto places = numbered(ranks);
        auto least = missing(*planned, holdings, known);
        do {
            least = std::min(least, missing(with_ranks(*planned, [&](rank_id r) { return places[at(r)]; }), holdings, known));
        } while (std::next_permutation(places.begin(), places.end()));
        CHECK(missing(chosen, holdings, known) == least);
    }
}

TEST_CASE("changed_plan: the same plan moves nothing")
{
    auto const request = request_for({2, 2}, {2});
    auto const known = make_replanning(gpt, request, 4);
    auto const planned = make_plan_on(gpt, request, numbered(4));
    REQUIRE(planned);
    CHECK(with_fewest_moves(*planned, numbered(4), holdings_under(*planned, ranks_of(*planned), 4), known, {}) == *planned);
}

TEST_CASE("changed_plan: ranks that stay are not numbered through")
{
    auto const request = request_for({3}, {1, 2});
    std::vector const staying{rank_id{1}, rank_id{4}, rank_id{6}};
    auto const planned = make_plan_on(gpt, request, staying);
    REQUIRE(planned);
    CHECK(planned->pipelines.front().stages == std::vector<std::vector<rank_id>>{{rank_id{1}}, {rank_id{4}, rank_id{6}}});
    auto const known = make_replanning(gpt, request, 3);
    std::vector<rank_holdings> holdings;
    for (auto const& [rank, of] : {std::pair{0, 0}, {1, 2}, {4, 1}, {6, 0}}) {  // 0 leaves; 1 and 6 hold what the other is to have
        holdings.push_back(holdings_under(*planned, ranks_of(*planned), 4)[static_cast<std::size_t>(of)]);
        holdings.back().rank = rank_id{rank};
    }
    auto const chosen = with_fewest_moves(*planned, staying, holdings, known, {});
    CHECK(chosen.pipelines.front().stages == std::vector<std::vector<rank_id>>{{rank_id{6}}, {rank_id{4}, rank_id{1}}});
    auto nodes = request;
    nodes.node_size = 3;
    CHECK(make_plan_on(gpt, nodes, staying).error() ==
          "plan.tensor = [1, 2]: 2 groups do not fit into nodes of 1, 1, 1 ranks; a group lies in one node of plan.node_size = 3");
}
