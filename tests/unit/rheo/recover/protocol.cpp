// SPDX-License-Identifier: Apache-2.0
// One rank through the protocol, event by event; what several ranks make of it is in exploration.cpp.
#include "rheo/recover/protocol.hpp"

#include <map>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

/// A plan in which everyone keeps what he has.
struct still_plan {
    salvage_plan salvage;
    std::string_view error{};

    friend constexpr bool operator==(still_plan const&, still_plan const&) = default;
};

constexpr auto keep_all = [](std::vector<rank_holdings> const& holdings, still_plan const&, std::vector<rank_id> const&) {
    still_plan plan;
    plan.salvage.after = holdings;
    return plan;
};

using state_type = protocol_state<still_plan>;
using move_type = transition<still_plan>;

constexpr rank_holdings holdings(int rank, int version) { return {rank_id{rank}, step_id{version}, {layer_id{0}}, {{use_id{0}, {}}}}; }

constexpr move_type begin(int steps, std::vector<rank_id> members = {rank_id{0}}, int rank = 0)
{
    return start_protocol<still_plan>({{7}, generation_id{3}, step_id{steps}, std::move(members), holdings(rank, 0)});
}

constexpr move_type after(move_type t, protocol_event const& event) { return advance(std::move(t.state), event, keep_all); }

/// A rank alone, brought to its first section.
constexpr move_type in_section(int steps)
{
    auto t = after(begin(steps), linked{});
    t = after(std::move(t), holdings_exchanged{{holdings(0, 0)}});
    t = after(after(std::move(t), copied{}), decided{true, 1});
    return after(std::move(t), merged{});
}

constexpr move_type settled(move_type t, outcome found) { return after(after(std::move(t), section_finished{found}), decided{true, 1}); }

constexpr bool commits_and_finishes()
{
    auto t = in_section(1);
    note(t.state, contributed{use_id{0}, microbatch_id{2}});
    t = settled(std::move(t), outcome::commit);
    if (!(std::get<update_state>(t.action) == update_state{outcome::commit, 0})) {
        return false;
    }
    t = after(std::move(t), updated{});
    bool const closes = std::get<run_section>(t.action).work == section_work::closing;
    t = settled(std::move(t), outcome::commit);
    return closes && t.state.now.step == step_id{1} && t.state.holds.uses[0].done.empty() && std::get<leave>(t.action) == leave{leave_reason::finished, 0};
}
static_assert(commits_and_finishes());  // the protocol is a pure function: the compiler can run it

}  // namespace

TEST_CASE("protocol: a start links first, after the last generation")
{
    auto const t = begin(1);
    CHECK(std::get<link_generation>(t.action) == link_generation{{7}, generation_id{3}, {rank_id{0}}});
    CHECK(t.state.now == message_stamp{generation_id{4}, step_id{0}, attempt_id{0}});
    CHECK(std::get<leave>(after(t, fenced{}).action).reason == leave_reason::fenced);
}

TEST_CASE("protocol: each outcome leads where it should")
{
    auto const redo = after(settled(in_section(2), outcome::redo), updated{});
    CHECK(redo.state.now == message_stamp{generation_id{4}, step_id{0}, attempt_id{1}});
    CHECK(std::get<run_section>(redo.action).work == section_work::whole);
    CHECK(redo.state.holds.version == step_id{0});

    auto const skip = after(settled(in_section(2), outcome::skip), updated{});
    CHECK(skip.state.now.step == step_id{1});
    CHECK(std::get<run_section>(skip.action).work == section_work::whole);

    auto const stop = after(settled(in_section(2), outcome::stop), updated{});
    CHECK(stop.state.now.step == step_id{1});
    CHECK(std::get<leave>(settled(stop, outcome::commit).action).reason == leave_reason::stopped);

    auto const late = after(settled(in_section(1), outcome::stop), updated{});  // asked to stop in the last step
    CHECK(std::get<leave>(settled(late, outcome::commit).action).reason == leave_reason::finished);

    auto const error = settled(in_section(2), outcome::error);  // nothing is updated
    CHECK(std::get<run_section>(error.action).work == section_work::closing);
    CHECK(error.state.now.step == step_id{0});
    CHECK(std::get<leave>(settled(error, outcome::commit).action).reason == leave_reason::not_finite);

    auto const changed = settled(in_section(2), outcome::bad_data);  // nor with other data than the run began with
    CHECK(std::get<run_section>(changed.action).work == section_work::closing);
    CHECK(changed.state.now.step == step_id{0});
    CHECK(std::get<leave>(settled(changed, outcome::commit).action).reason == leave_reason::bad_data);
}

TEST_CASE("protocol: consents travel in the vote")
{
    auto t = after(in_section(2), section_finished{outcome::commit, 6});
    CHECK(std::get<decide>(t.action).vote == 7);
    CHECK(std::get<update_state>(after(t, decided{true, 5}).action).consents == 4);
    CHECK_THROWS_AS(after(in_section(2), section_finished{outcome::commit, 1}), precondition_error);
}

TEST_CASE("protocol: a loss ends in vote 0, then shrink")
{
    auto exchanging = after(begin(1), linked{});
    auto copying = after(exchanging, holdings_exchanged{{holdings(0, 0)}});
    for (auto const& t : {exchanging, copying, in_section(1)}) {
        auto lost = after(t, peer_lost{});
        CHECK(std::get<revoke_generation>(lost.action).generation == generation_id{4});
        lost = after(std::move(lost), revoked{});
        CHECK(std::get<decide>(lost.action).vote == 0);
        lost = after(std::move(lost), decided{true, 0});
        CHECK(std::get<shrink>(lost.action).ended == generation_id{4});
        lost = after(std::move(lost), shrunk{{rank_id{0}}});
        CHECK(std::get<link_generation>(lost.action).ended == generation_id{4});
        CHECK_FALSE(lost.state.next.has_value());
    }
}

TEST_CASE("protocol: settled is success and bit 0")
{
    auto const voted = after(in_section(1), section_finished{});
    CHECK(std::holds_alternative<update_state>(after(voted, decided{true, 1}).action));
    CHECK(std::holds_alternative<shrink>(after(voted, decided{false, 1}).action));
    CHECK(std::holds_alternative<shrink>(after(voted, decided{true, 0}).action));
    CHECK(std::holds_alternative<shrink>(after(voted, decided{true, 6}).action));
}

TEST_CASE("protocol: a final plan is agreed on, then records")
{
    auto const exchanging = after(begin(1), linked{});
    auto const end = [&](still_plan const& plan) {
        auto t = advance(exchanging.state, holdings_exchanged{{holdings(0, 0)}}, [&](auto const&...) { return plan; });
        CHECK(std::get<decide>(t.action).vote == 1);
        CHECK(std::holds_alternative<shrink>(after(t, decided{false, 0}).action));
        t = after(std::move(t), decided{true, 1});
        CHECK(std::get<run_section>(t.action).work == section_work::closing);
        return std::get<leave>(settled(std::move(t), outcome::commit).action).reason;
    };
    still_plan lost;
    lost.salvage.lost = {layer_id{3}};
    CHECK(end(lost) == leave_reason::state_lost);
    still_plan none;
    none.error = "two ranks are too few";
    CHECK(end(none) == leave_reason::no_plan);
}

TEST_CASE("protocol: a loss while closing is recovered from")
{
    auto t = after(settled(in_section(2), outcome::stop), updated{});
    t = after(after(after(std::move(t), peer_lost{}), revoked{}), decided{true, 0});
    t = after(after(std::move(t), shrunk{{rank_id{0}}}), linked{});
    t = after(std::move(t), holdings_exchanged{{holdings(0, 1)}});
    t = after(after(after(std::move(t), copied{}), decided{true, 1}), merged{});
    CHECK(std::get<run_section>(t.action).work == section_work::closing);
    CHECK(std::get<leave>(settled(std::move(t), outcome::commit).action).reason == leave_reason::stopped);
}

TEST_CASE("protocol: contract violations are rejected")
{
    auto const t = in_section(1);
    CHECK_THROWS_AS(after(t, linked{}), precondition_error);
    CHECK_THROWS_AS(after(after(t, section_finished{}), peer_lost{}), precondition_error);
    auto twice = t.state;
    note(twice, contributed{use_id{0}, microbatch_id{0}});
    CHECK_THROWS_AS(note(twice, contributed{use_id{0}, microbatch_id{0}}), precondition_error);
    CHECK_THROWS_AS(note(twice, contributed{use_id{1}, microbatch_id{0}}), precondition_error);
    use_id const held_and_not[] = {use_id{0}, use_id{1}};
    CHECK_THROWS_WITH(note(twice, held_and_not, microbatch_id{1}), Catch::Matchers::ContainsSubstring("uses that it holds"));
    auto const exchanging = after(begin(1, {rank_id{0}, rank_id{1}}), linked{});
    CHECK_THROWS_WITH(after(exchanging, holdings_exchanged{{holdings(0, 0), holdings(1, 1)}}), Catch::Matchers::ContainsSubstring("one version"));
    CHECK_THROWS_AS(after(exchanging, holdings_exchanged{{holdings(0, 0)}}), precondition_error);
}

TEST_CASE("protocol: contributions are booked for held uses")
{
    auto state = in_section(1).state;
    state.holds.uses.clear();
    for (int u : {0, 1, 3, 4, 7}) {
        state.holds.uses.push_back({use_id{u}, {}});
    }
    for (unsigned chosen = 0; chosen < 32; ++chosen) {
        std::vector<use_id> uses;
        for (unsigned k = 0; k < 5; ++k) {
            if ((chosen >> k & 1U) != 0) {
                uses.push_back(state.holds.uses[k].use);
            }
        }
        auto at_once = state;
        auto one_by_one = state;
        note(at_once, uses, microbatch_id{5});
        for (auto const use : uses) {
            note(one_by_one, contributed{use, microbatch_id{5}});
        }
        CHECK(at_once.holds == one_by_one.holds);
    }
}

TEST_CASE("protocol: stamps: only this generation, step and attempt")
{
    auto const t = in_section(2);
    CHECK(accepts(t.state, {generation_id{4}, step_id{0}, attempt_id{0}}));
    CHECK_FALSE(accepts(t.state, {generation_id{3}, step_id{0}, attempt_id{0}}));
    CHECK_FALSE(accepts(t.state, {generation_id{4}, step_id{1}, attempt_id{0}}));
    CHECK_FALSE(accepts(t.state, {generation_id{4}, step_id{0}, attempt_id{1}}));
}

TEST_CASE("protocol: only one half of a cut network continues")
{
    // Each half takes the other for dead, so its agreement fails and its shrink leaves itself. Half 0 is ranks 0
    // and 1, half 1 is ranks 2 and 3. `order` says, link by link, whose turn it is; half 0 loses another rank later.
    std::vector<rank_id> const all{rank_id{0}, rank_id{1}, rank_id{2}, rank_id{3}};
    auto const halves = [&](int rank) { return rank < 2 ? std::vector{all[0], all[1]} : std::vector{all[2], all[3]}; };
    for (unsigned order = 0; order < 24; ++order) {
        std::vector<int> turns{0, 1, 2, 3};
        for (unsigned left = order, i = 0; i < 4; ++i) {
            std::swap(turns[i], turns[i + left % (4 - i)]);
            left /= 4 - i;
        }
        std::map<int, link_generation> files;
        std::vector<bool> on(4);
        for (auto const rank : turns) {
            auto t = after(begin(1, all, rank), linked{});
            t = after(after(after(std::move(t), peer_lost{}), revoked{}), decided{false, 0});
            t = after(std::move(t), shrunk{halves(rank)});
            auto const request = std::get<link_generation>(t.action);
            auto const there = files.try_emplace(request.ended.value, request).first->second;
            on[static_cast<std::size_t>(rank)] = there == request;
            t = there == request ? after(std::move(t), linked{}) : after(std::move(t), fenced{});
            CHECK(std::holds_alternative<leave>(t.action) == !on[static_cast<std::size_t>(rank)]);
        }
        CHECK(on[0] == on[1]);
        CHECK(on[2] == on[3]);
        CHECK(on[0] != on[2]);
    }
}

TEST_CASE("protocol: a drain exchanges, copies, then leaves")
{
    std::vector<rank_id> const all{rank_id{0}, rank_id{1}};
    for (int rank = 0; rank < 2; ++rank) {
        std::vector<rank_holdings> const start{holdings(0, 0), holdings(1, 0)};
        auto t = after(after(begin(2, all, rank), linked{}), holdings_exchanged{start});
        t = after(after(after(std::move(t), copied{}), decided{true, 1}), merged{});
        t = after(after(std::move(t), section_finished{outcome::commit, 0, {rank_id{1}}}), decided{true, 1});
        t = after(std::move(t), updated{});
        CHECK(std::get<exchange_holdings>(t.action).stamp == message_stamp{generation_id{4}, step_id{1}, attempt_id{0}});
        auto const lost = after(after(t, peer_lost{}), revoked{});  // the round is not settled: both continue as members
        CHECK(std::get<shrink>(after(lost, decided{false, 0}).action) == shrink{generation_id{4}});
        std::vector<rank_id> seen;
        t = advance(std::move(t.state), holdings_exchanged{{holdings(0, 1), holdings(1, 1)}}, [&](auto const& holdings, auto const&, auto const& departing) {
            seen = departing;
            return keep_all(holdings, {}, {});
        });
        CHECK(seen == std::vector{rank_id{1}});
        t = after(after(after(std::move(t), copied{}), decided{true, 1}), merged{});
        if (rank == 1) {
            CHECK(std::get<leave>(t.action) == leave{leave_reason::drained, 0});
            continue;
        }
        CHECK(std::get<shrink>(t.action) == shrink{generation_id{4}, {rank_id{1}}});
        t = after(std::move(t), shrunk{{rank_id{0}}});
        CHECK(std::get<link_generation>(t.action).members == std::vector{rank_id{0}});
        CHECK(t.state.departing.empty());
    }
}

TEST_CASE("protocol: a drain counts only at a committed step")
{
    section_finished request{outcome::redo, 0, {}, true};
    auto const redone = after(after(after(in_section(2), request), decided{true, 1}), updated{});
    CHECK(std::get<run_section>(redone.action).work == section_work::whole);
    request.found = outcome::commit;
    CHECK(std::holds_alternative<exchange_holdings>(after(after(after(in_section(2), request), decided{true, 1}), updated{}).action));
    auto const last = after(after(after(in_section(1), request), decided{true, 1}), updated{});
    CHECK(std::get<run_section>(last.action).work == section_work::closing);
}
