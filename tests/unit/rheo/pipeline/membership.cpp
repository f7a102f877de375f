// SPDX-License-Identifier: Apache-2.0
// Decisions about members: losses, drains, spares, too few for f + 1, too few for anything.
#include "rheo/pipeline/membership.hpp"

#include <algorithm>

#include "rheo/plan/plan.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"
#include "unit/rheo/pipeline/losses.hpp"

using namespace rheo;

namespace {

/// Two pipelines of two ranks and one that waits, unless a test changes that.
struct small_cluster {
    job model = make_job(6);
    template_set_value ready = plan_templates(model.times, {2, 4});
    std::vector<rank_holdings> members = survivors_of(ready, {2, 2}, {0, 0});
    std::vector<pipeline_instance> before{{ready.templates[0].cuts, {{rank_id{0}}, {rank_id{1}}}}, {ready.templates[0].cuts, {{rank_id{2}}, {rank_id{3}}}}};
    recomposition_request wanted{.failures = 1, .microbatches = 8};
    int reserved_spares = 0;

    void wait(int rank) { members.push_back(holder(rank, {layer_id{0}, layer_id{0}})); }
    void lose(int rank)
    {
        std::erase_if(members, [&](auto const& m) { return m.rank == rank_id{rank}; });
    }
    membership_decision decide(std::vector<rank_id> const& leaving = {}, std::vector<node_id> const& nodes = {}) const
    {
        return decide_membership({before, members, leaving, &ready, model.tensors, wanted, nodes, 1, reserved_spares});
    }
};

}  // namespace

TEST_CASE("membership: a loss takes a spare and redoes work")
{
    small_cluster of;
    of.wait(4);
    of.lose(1);
    auto const decision = of.decide();
    CHECK(decision.action == membership_action::resume);
    CHECK(decision.replay);
    CHECK(sizes_of(*decision.next) == std::vector<int>{2, 2});
    CHECK(decision.next->pipelines[0].stages == std::vector<std::vector<rank_id>>{{rank_id{0}}, {rank_id{4}}});
    CHECK(decision.next->pipelines[1] == of.before[1]);
    CHECK(decision.message == "any 1 rank and any 1 node can be lost");
    CHECK(decision.copies.empty());
}

TEST_CASE("membership: a drain recomputes nothing")
{
    small_cluster of;
    of.wait(4);
    auto const decision = of.decide({rank_id{2}});
    CHECK_FALSE(decision.replay);
    CHECK(decision.next->pipelines[0] == of.before[0]);
    CHECK(decision.next->pipelines[1].stages == std::vector<std::vector<rank_id>>{{rank_id{4}}, {rank_id{3}}});
    for (auto const spare : decision.next->spares) {
        CHECK(spare != rank_id{2});
    }
}

TEST_CASE("membership: a spare joins when that helps")
{
    small_cluster of;
    of.wait(4);
    auto const larger = of.decide();
    CHECK_FALSE(larger.replay);
    CHECK(sizes_of(*larger.next) == std::vector<int>{2, 3});
    of.ready = plan_templates(of.model.times, {2, 2});
    auto const waiting = of.decide();
    CHECK(waiting.next->pipelines == of.before);
    CHECK(waiting.next->spares == std::vector<rank_id>{rank_id{4}});
    of.wait(5);
    CHECK(sizes_of(*of.decide().next) == std::vector<int>{2, 2, 2});
}

TEST_CASE("membership: reserved spares join only for f + 1")
{
    small_cluster of;
    of.reserved_spares = 1;
    of.wait(4);
    CHECK(of.decide().next->pipelines == of.before);
    of.wait(5);
    auto const one = of.decide();
    CHECK(sizes_of(*one.next) == std::vector<int>{2, 3});
    CHECK(one.next->spares == std::vector<rank_id>{rank_id{5}});
    of.reserved_spares = 2;
    CHECK(of.decide().next->pipelines == of.before);
    of.wanted.failures = 2;  // three pipelines of two
    CHECK(sizes_of(*of.decide().next) == std::vector<int>{2, 2, 2});
    of.wanted.failures = 1;
    of.lose(0);
    CHECK(of.decide().next->pipelines.front().stages.front() == std::vector{rank_id{4}});
}

TEST_CASE("membership: below f + 1: continue, warn, copy")
{
    small_cluster of;
    of.lose(1);
    auto const decision = of.decide();
    CHECK(decision.action == membership_action::resume);
    CHECK(decision.next->degraded);
    REQUIRE(decision.next->pipelines.size() == 1);
    CHECK(decision.afterwards.ranks == 0);
    CHECK_FALSE(decision.copies.empty());
    CHECK(decision.message.find("fewer pipelines than f + 1 = 2: the loss of rank ") == 0);
    CHECK(decision.message.find(" would lose state until its copies are made") != std::string::npos);
}

TEST_CASE("membership: all find the same plan and digest")
{
    small_cluster of;
    of.wait(4);
    of.lose(1);
    auto const digest = [](membership_decision const& d) {
        return digest_of(plan{.schedule = one_f_one_b{}, .pipelines = d.next->pipelines, .work = deal(d.next->shares), .spares = d.next->spares});
    };
    auto const decision = of.decide();
    auto other = of;
    std::reverse(other.members.begin(), other.members.end());
    CHECK(other.decide() == decision);
    CHECK(digest(other.decide()) == digest(decision));
    other.lose(0);
    CHECK(digest(other.decide()) != digest(decision));
}

TEST_CASE("membership: too few ranks: checkpoint, exit code 75")
{
    small_cluster of;
    of.lose(1);
    of.lose(2);
    of.lose(3);
    auto const decision = of.decide();
    CHECK(decision.action == membership_action::stop);
    CHECK(decision.message == "1 rank is too few: the smallest pipeline template takes 2; the job writes a checkpoint and ends with exit code 75");
}

TEST_CASE("membership: single devices of a node, and whole nodes")
{
    // Four nodes of two devices, a pipeline on each two nodes; templates are counted in devices.
    small_cluster of;
    of.model = make_job(8);
    of.ready = plan_templates(of.model.times, {2, 6});
    of.members = survivors_of(of.ready, {4, 4}, {0, 0});
    of.before.clear();
    for (int p = 0; p < 2; ++p) {
        of.before.push_back({template_of_size(of.ready, 4).cuts, {}});
        for (int s = 0; s < 4; ++s) {
            of.before.back().stages.push_back({rank_id{4 * p + s}});
        }
    }
    auto const nodes = [&] {
        std::vector<node_id> result;
        for (auto const& m : of.members) {
            result.push_back(node_id{m.rank.value / 2});
        }
        return result;
    };
    CHECK(of.decide({}, nodes()).afterwards.nodes == 1);
    of.lose(1);  // a device: its pipeline continues with three
    auto const device = of.decide({}, nodes());
    CHECK(sizes_of(*device.next) == std::vector<int>{3, 4});
    CHECK(device.next->pipelines[1] == of.before[1]);
    CHECK(device.afterwards.nodes == 1);
    of.lose(0);  // the whole node
    auto const node = of.decide({}, nodes());
    CHECK(sizes_of(*node.next) == std::vector<int>{2, 4});
    CHECK(node.message == "any 1 rank and any 1 node can be lost");
    CHECK(node == of.decide({}, nodes()));
}
