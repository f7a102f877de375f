// SPDX-License-Identifier: Apache-2.0
// The two ends of a message find each other: in whole steps of all families each send has its computation, and different messages differ.
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/trace/message_flow.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr trace_event sent{.rank = rank_id{5},
                           .activity = activity::send_gradient,
                           .pipeline = pipeline_id{1},
                           .stage = stage_id{2},
                           .item = 3,
                           .generation = generation_id{4},
                           .step = step_id{6},
                           .attempt = attempt_id{1},
                           .peer = rank_id{9},
                           .start = {0.5},
                           .end = {0.75}};

/// What takes that gradient.
constexpr trace_event taking()
{
    auto e = sent;
    e.rank = sent.peer;
    e.activity = activity::backward;
    e.stage = stage_id{1};
    e.peer = sent.rank;
    return e;
}

constexpr std::uint64_t message_of(trace_event const& e) { return message_end_of(e)->message; }

template <class Change>
constexpr bool differs(Change const& change)
{
    auto e = sent;
    change(e);
    return message_of(e) != message_of(sent);
}

}  // namespace

static_assert(message_of(sent) == message_of(taking()) && message_end_of(sent)->is_sent && !message_end_of(taking())->is_sent);
static_assert(message_end_of(sent)->is_gradient && message_end_of(taking())->is_gradient);
static_assert(differs([](trace_event& e) { e.rank = rank_id{9}; }) && differs([](trace_event& e) { e.peer = rank_id{5}; }));
static_assert(differs([](trace_event& e) { e.pipeline = pipeline_id{2}; }) && differs([](trace_event& e) { e.stage = stage_id{3}; }));
static_assert(differs([](trace_event& e) { e.item = 2; }) && differs([](trace_event& e) { e.generation = generation_id{5}; }));
static_assert(differs([](trace_event& e) { e.step = step_id{7}; }) && differs([](trace_event& e) { e.attempt = attempt_id{0}; }));

TEST_CASE("message_flow: an end is a send or takes an input")
{
    for (int a = 0; a < activity_count; ++a) {
        auto e = sent;
        e.activity = static_cast<activity>(a);
        using enum activity;
        bool const takes = e.activity == forward || e.activity == backward || e.activity == input_gradient;
        bool const sends = e.activity == send_activation || e.activity == send_gradient;
        INFO(name_of(e.activity));
        CHECK(message_end_of(e).has_value() == (takes || sends));
        e.peer = no_rank;
        CHECK_FALSE(message_end_of(e));
    }
    auto forward_gradient = sent;
    forward_gradient.activity = activity::send_activation;
    forward_gradient.stage = stage_id{0};  // both are taken at stage 1
    CHECK(message_of(forward_gradient) != message_of(sent));
}

TEST_CASE("message_flow: in a whole step each send has its other end")
{
    std::set<std::uint64_t> all;
    std::size_t sends_of_all = 0;
    step_id next{};
    for (auto const& family : schedule_families()) {
        INFO(family->name);
        if (error_of(family, {.ranks = 4, .microbatches = 8}) != shape_error::none) {
            continue;
        }
        auto const lowered = lower(make_program(family, {.ranks = 4, .microbatches = 8}));
        auto const stages = static_cast<int>(lowered.placement.size());
        modelled_step step{};
        for (int p = 0; p < 2; ++p) {
            std::vector<rank_id> ranks;
            for (int r = 0; r < 4; ++r) {
                ranks.push_back(rank_id{7 - 4 * p - r});
            }
            step.pipelines.push_back({lowered, ranks, unit_costs(stages)});
        }
        step.step = next;
        ++next;
        auto const rehearsed = rehearse_step(step);
        REQUIRE(rehearsed.sound);
        std::map<std::uint64_t, trace_event> sends;
        std::set<std::uint64_t> taken;
        for (auto const& e : rehearsed.events) {
            if (auto const end = message_end_of(e); end && end->is_sent) {
                CHECK(sends.try_emplace(end->message, e).second);
                all.insert(end->message);
            }
        }
        for (auto const& e : rehearsed.events) {
            if (auto const end = message_end_of(e); end && !end->is_sent) {
                REQUIRE(sends.contains(end->message));
                auto const& send = sends.at(end->message);
                CHECK(taken.insert(end->message).second);
                CHECK((send.peer == e.rank && send.rank == e.peer));
                CHECK((send.pipeline == e.pipeline && send.item == e.item));
                CHECK(send.start <= e.start);  // no arrow leads back in time
            }
        }
        CHECK(!sends.empty());
        CHECK(taken.size() == sends.size());
        sends_of_all += sends.size();
    }
    CHECK(all.size() == sends_of_all);
}
