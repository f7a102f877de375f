// SPDX-License-Identifier: Apache-2.0
// The network and the timeline are two readings of one interpretation: with the same times they end at the same moment.
#include "rheo/energy/frontier/event_network.hpp"

#include "problems.hpp"
#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

static_assert(make_event_network(one_f_one_b::program({.ranks = 8, .microbatches = 12})).operations.size() == 192);
static_assert(make_event_network(one_f_one_b::program({.ranks = 1, .microbatches = 3})).events == 8);  // a chain: no events but ends

namespace {

seconds random_time(std::mt19937& draw) { return milliseconds(below(draw, 9)); }

/// The end of the network when computations take what `costs` say.
std::int64_t end_of(event_network const& network, stage_costs const& costs)
{
    std::vector<std::int64_t> times(static_cast<std::size_t>(network.events));
    for (auto const& arc : network.arcs) {
        auto const length =
            arc.operation < 0 ? arc.nanoseconds : in_whole_nanoseconds(cost_of(costs, network.operations[static_cast<std::size_t>(arc.operation)].instruction));
        auto& end = times[static_cast<std::size_t>(arc.to)];
        end = std::max(end, times[static_cast<std::size_t>(arc.from)] + length);
    }
    return times.back();
}

template <class Transport>
void compare(program const& p, std::mt19937& draw)
{
    step_cost costs;
    costs.pipelines.push_back({});
    for (std::size_t s = 0; s < p.placement.size(); ++s) {
        costs.pipelines[0].push_back({random_time(draw), random_time(draw), random_time(draw), random_time(draw), random_time(draw), random_time(draw)});
    }
    auto const made = make_event_network<Transport>(array_view{&p, 1}, costs);
    auto const times = make_timeline<Transport>(array_view{&p, 1}, costs);
    REQUIRE(made.sound.ok);
    REQUIRE(times.sound.ok);
    REQUIRE(end_of(made.network, costs.pipelines[0]) == in_whole_nanoseconds(makespan(times)));
    for (std::size_t a = 0; a < made.network.arcs.size(); ++a) {
        REQUIRE(made.network.arcs[a].from < made.network.arcs[a].to);
        REQUIRE((a == 0 || made.network.arcs[a - 1].to <= made.network.arcs[a].to));
    }
    for (auto const& o : made.network.operations) {
        REQUIRE(made.network.operations[static_cast<std::size_t>(made.network.arcs[static_cast<std::size_t>(o.arc)].operation)] == o);
        REQUIRE(p.rows[static_cast<std::size_t>(o.row)][static_cast<std::size_t>(o.place)] == o.instruction);
    }
}

}  // namespace

TEST_CASE("event_network: agrees with the timeline for any transport")
{
    std::mt19937 draw{11};
    for (int round = 0; round < 200; ++round) {
        auto const p = random_program(draw, 1 + below(draw, 4), 1 + below(draw, 5), 1 + below(draw, 5));
        compare<shared_memory>(p, draw);
        compare<rendezvous>(lower(p), draw);
        compare<nonblocking>(lower_lazily(p), draw);
    }
}

TEST_CASE("event_network: reductions go from last post to await")
{
    auto const at_end = [](int stage) {
        return std::vector<instruction>{{instruction_kind::forward, 0, 0},
                                        {instruction_kind::backward, 0, 0},
                                        {instruction_kind::post_reduction, static_cast<std::int16_t>(stage), 0},
                                        {instruction_kind::await_reduction, static_cast<std::int16_t>(stage), 0}};
    };
    std::vector<program> const two{{{0}, {at_end(0)}}, {{0}, {at_end(0)}}};
    stage_costs const quick{{milliseconds(1), milliseconds(2), {}, {}, {}, {}}};
    auto const made = make_event_network<nonblocking>(two, {{quick, quick}, {milliseconds(5)}});
    REQUIRE(made.sound.ok);
    CHECK(end_of(made.network, quick) == 8'000'000);
}

TEST_CASE("event_network: none for hanging programs; empty one is 0")
{
    auto const hangs = lower_lazily(one_f_one_b::program({.ranks = 2, .microbatches = 4}));
    CHECK_FALSE(make_event_network<rendezvous>(array_view{&hangs, 1}));
    CHECK_THROWS_WITH(make_event_network<rendezvous>(hangs), "a program that hangs has no network");
    CHECK(make_event_network(one_f_one_b::program({.ranks = 2, .microbatches = 0})).events == 2);
}
