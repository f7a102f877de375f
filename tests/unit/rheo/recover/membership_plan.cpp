// SPDX-License-Identifier: Apache-2.0
// The plan after a change of the members, on a model of six layers and two pipelines of two ranks, with a rank that waits or without.
#include "rheo/recover/membership_plan.hpp"

#include <map>
#include <set>

#include "six_layers.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Ranks 0 + 1 and 2 + 3; each layer is held twice.
struct small_job {
    replanning known = six_layers::known_before();
    std::vector<pipeline_instance> pipelines;
    std::vector<rank_holdings> holdings;

    explicit small_job(int waiting = 0)
    {
        for (int p = 0; p < 2; ++p) {
            pipelines.push_back({known.ready.templates[0].cuts, {{rank_id{2 * p}}, {rank_id{2 * p + 1}}}});
        }
        for (int r = 0; r < 4 + waiting; ++r) {
            holdings.push_back({rank_id{r}, step_id{3}, {}, {}});
            for (int l = r % 2 * 3; r < 4 && l < r % 2 * 3 + 3; ++l) {
                holdings.back().layers.push_back(layer_id{l});
                holdings.back().uses.push_back({use_id{l}, {}});
            }
        }
    }
    void lose(int rank)
    {
        std::erase_if(holdings, [&](auto const& holds) { return holds.rank == rank_id{rank}; });
    }
};

std::set<rank_id> placed_in(membership_plan const& plan)
{
    std::set<rank_id> ranks;
    for (auto const& pipeline : plan.pipelines) {
        for (auto const& stage : pipeline.stages) {
            ranks.insert(stage.begin(), stage.end());
        }
    }
    return ranks;
}

/// The plan with its copies made, and the layers that are kept.
std::vector<rank_holdings> holdings_once_made(membership_plan const& plan)
{
    auto held = plan.salvage.after;
    for (auto const& one : plan.safety_copies) {
        for (auto& holds : held) {
            if (holds.rank == one.to) {
                holds.layers.push_back(one.layer);
                std::sort(holds.layers.begin(), holds.layers.end());
            }
        }
    }
    return held;
}

}  // namespace

TEST_CASE("membership_plan: unhit pipelines stay; a spare fills in")
{
    small_job of{1};
    of.lose(1);
    auto const plan = plan_membership(of.holdings, of.pipelines, {}, of.known, {});
    CHECK(plan.pipelines[1] == of.pipelines[1]);
    CHECK(placed_in(plan) == std::set{rank_id{0}, rank_id{2}, rank_id{3}, rank_id{4}});
    CHECK(plan.copies.certificate.moved.value == bytes{12 * (4 * 7 + 4 * 8 + 4 * 9 + 32)});
    CHECK(plan.safety_copies.empty());
    CHECK(plan.message == "any 1 rank and any 1 node can be lost");
}

TEST_CASE("membership_plan: a leaving rank hands over all it holds")
{
    small_job of{1};
    rank_id const leaving[] = {rank_id{2}};
    auto const plan = plan_membership(of.holdings, of.pipelines, leaving, of.known, {});
    CHECK_FALSE(placed_in(plan).contains(rank_id{2}));
    CHECK(plan.salvage.after[2].layers.empty());
    CHECK(plan.salvage.lost.empty());
    CHECK(plan.salvage.work.size() == 2);
    auto const all_leave = plan_membership(of.holdings, of.pipelines, std::vector{rank_id{0}, rank_id{1}, rank_id{2}, rank_id{3}}, of.known, {});
    CHECK(all_leave.error.find("1 rank is too few") == 0);
}

TEST_CASE("membership_plan: below f + 1 copies cover any one rank")
{
    small_job of;
    of.lose(3);
    auto const plan = plan_membership(of.holdings, of.pipelines, {}, of.known, {});
    REQUIRE(plan.pipelines.size() == 1);
    CHECK_FALSE(plan.safety_copies.empty());
    auto const held = holdings_once_made(plan);
    auto const tensors = tensor_bytes_of(of.known.state, of.known.formats);
    CHECK(survivability_of(plan.salvage.after, tensors).ranks == 0);
    CHECK(survivability_of(held, tensors).ranks >= 1);
    // Each copy comes from a holder, goes where the tensor is not, and once.
    std::set<std::pair<int, int>> has;
    for (auto const& holds : plan.salvage.after) {
        for (auto const& part : whole_parts(of.known.state, holds.layers)) {
            has.insert({holds.rank.value, part.tensor.value});
        }
    }
    auto const before = has;
    for (auto const& k : kept_tensors(plan, of.known)) {
        CHECK(before.contains({k.from.value, k.tensor.value}));
        CHECK(has.insert({k.to.value, k.tensor.value}).second);
    }
    // The first copies bring exactly these.
    std::map<std::pair<int, int>, std::int64_t> came;
    for (auto const& t : plan_first_copies(plan, of.known).transfers) {
        CHECK(before.contains({t.from.value, t.tensor.value}));
        came[{t.to.value, t.tensor.value}] += elements(t.box);
    }
    CHECK(came.size() == kept_tensors(plan, of.known).size());
    for (auto const& k : kept_tensors(plan, of.known)) {
        CHECK(came[{k.to.value, k.tensor.value}] == elements(of.known.state.tensors[at(k.tensor)].shape));
    }
    for (auto const& holds : held) {
        for (auto const& part : whole_parts(of.known.state, holds.layers)) {
            CHECK(has.contains({holds.rank.value, part.tensor.value}));
        }
    }
    // Then the loss of any of them is survived by anyone who stays.
    for (auto const& victim : held) {
        auto rest = held;
        std::erase_if(rest, [&](auto const& holds) { return holds.rank == victim.rank; });
        auto const next = plan_membership(rest, plan.pipelines, {}, of.known, {});
        CHECK(next.salvage.lost.empty());
        CHECK(next.error.empty());
    }
}

TEST_CASE("membership_plan: f = 0 wants no copies")
{
    small_job of;
    of.known.wanted.failures = 0;
    of.lose(3);
    CHECK(plan_membership(of.holdings, of.pipelines, {}, of.known, {}).safety_copies.empty());
}

TEST_CASE("membership_plan: a spare joins between steps if it helps")
{
    small_job of{1};
    auto const now = plan_as_chosen(of.holdings, of.known, {}, recomposition{.pipelines = of.pipelines, .shares = {4, 4}, .spares = {rank_id{4}}});
    CHECK(would_regroup(now, of.known, {}));
    CHECK_FALSE(would_regroup(now, of.known, {.reserved_spares = 1}));
    auto const then = plan_membership(now.salvage.after, now.pipelines, {}, of.known, {});
    CHECK(then.spares.empty());
    CHECK_FALSE(would_regroup(then, of.known, {}));  // once is enough
    small_job const full;
    CHECK_FALSE(would_regroup(plan_as_chosen(full.holdings, full.known, {}, recomposition{.pipelines = full.pipelines, .shares = {4, 4}}), full.known, {}));
}

TEST_CASE("membership_plan: nodes: whole ones, copies of single ones")
{
    small_job of;
    // Ranks 0 and 2, then 1 and 3, would hold the same layers: of nodes of two, that is the one node 0 = {0, 1} and node 1 = {2, 3}.
    CHECK(plan_membership(of.holdings, of.pipelines, {}, of.known, {.node_size = 2}).message == "any 1 rank and any 1 node can be lost");
    auto mixed = of.pipelines;
    std::swap(mixed[0].stages[1], mixed[1].stages[0]);  // 0 + 2 and 1 + 3: a node holds both copies of a layer
    for (auto& holds : of.holdings) {
        holds.layers.clear();
        for (int l = holds.rank.value / 2 * 3; l < holds.rank.value / 2 * 3 + 3; ++l) {
            holds.layers.push_back(layer_id{l});
        }
        holds.uses.clear();
    }
    auto const plan = plan_membership(of.holdings, mixed, {}, of.known, {.node_size = 2});
    CHECK(plan.message == "any 1 rank and any 1 node can be lost");
    auto const chosen = plan_as_chosen(of.holdings, of.known, {.node_size = 2}, recomposition{.pipelines = mixed, .shares = {4, 4}});
    CHECK(survivability_of(holdings_once_made(chosen), tensor_bytes_of(of.known.state, of.known.formats), nodes_of(chosen.salvage.after, 2)).nodes == 1);
}

TEST_CASE("membership_plan: each part of a plan is in its digest")
{
    small_job of{1};
    of.lose(1);
    auto const plan = plan_membership(of.holdings, of.pipelines, {}, of.known, {});
    CHECK(digest_of(plan) == digest_of(plan_membership(of.holdings, of.pipelines, {}, of.known, {})));
    auto const differs = [&](auto change) {
        auto other = plan;
        change(other);
        return digest_of(other) != digest_of(plan);
    };
    CHECK(differs([](auto& p) { std::swap(p.pipelines[0], p.pipelines[1]); }));
    CHECK(differs([](auto& p) { ++p.shares[0]; }));
    CHECK(differs([](auto& p) { p.spares.push_back(rank_id{7}); }));
    CHECK(differs([](auto& p) { p.copies.transfers[0].from = rank_id{9}; }));
    CHECK(differs([](auto& p) {  // as many elements of the same tensor, elsewhere
        auto& rows = p.copies.transfers[0].box[0];
        ++rows.begin, ++rows.end;
    }));
    CHECK(differs([](auto& p) { ++p.copies.transfers[0].box[1].begin; }));
    CHECK(differs([](auto& p) { ++p.copies.transfers[0].round; }));
    CHECK(differs([](auto& p) { p.copies.transfers[0].roles = tensor_role::parameter; }));
    CHECK(differs([](auto& p) { p.salvage.work[0].pop_back(); }));
    CHECK(differs([](auto& p) { p.salvage.moves.push_back({use_id{0}, rank_id{0}, rank_id{2}, {}}); }));
    auto other = plan;
    other.salvage.moves.push_back({use_id{0}, rank_id{0}, rank_id{2}, {}});
    auto one = other;
    other.salvage.moves.back().done.insert(microbatch_id{0});
    one.salvage.moves.back().done.insert(microbatch_id{1});  // as many, but others
    CHECK(digest_of(other) != digest_of(one));
    CHECK(differs([](auto& p) { p.safety_copies.push_back({layer_id{0}, rank_id{0}, rank_id{2}, {}}); }));
}
