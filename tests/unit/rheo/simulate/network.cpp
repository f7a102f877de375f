// SPDX-License-Identifier: Apache-2.0
// Messages on networks: ASTRA-sim's figures, an oracle that follows every nanosecond, laws.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "astra_networks.hpp"
#include "rheo/simulate/chakra/detail/rank_symmetry.hpp"
#include "rheo/simulate/network/arrivals.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

using integer_level = network_level<integer_link>;
using integer_message = timed_message<whole_nanoseconds>;

/// A message of the oracle: its links as pairs of vertices, members from 0 on and the switch after them.
struct followed {
    std::vector<std::pair<int, int>> links;
    long at;
    long holds;
    long hop;
    long last_hop;
    std::size_t passed = 0;
    long arrival = -1;
};

std::vector<std::pair<int, int>> links_between(network_topology topology, int members, int from, int to)
{
    if (topology == network_topology::switched) {
        return {{from, members}, {members, to}};
    }
    if (topology == network_topology::full) {
        return {{from, to}};
    }
    std::vector<std::pair<int, int>> up;
    std::vector<std::pair<int, int>> down;
    for (int p = from; p != to; p = (p + 1) % members) {
        up.push_back({p, (p + 1) % members});
    }
    for (int p = from; p != to; p = (p + members - 1) % members) {
        down.push_back({p, (p + members - 1) % members});
    }
    return down.size() < up.size() ? down : up;
}

/// Follows the messages one unit of time after the other; false when two came to a link at one time: then any order is rightbody's.
bool follow(std::vector<followed>& messages)
{
    std::map<std::pair<int, int>, std::deque<std::size_t>> waiting;
    std::map<std::pair<int, int>, long> free;
    std::size_t arrived = 0;
    for (long now = 0; arrived < messages.size(); ++now) {
        std::set<std::pair<int, int>> came;
        for (std::size_t k = 0; k < messages.size(); ++k) {
            auto& m = messages[k];
            if (m.at != now || m.arrival >= 0) {
                continue;
            }
            if (m.passed == m.links.size()) {
                m.arrival = now;
                ++arrived;
            } else if (!came.insert(m.links[m.passed]).second) {
                return false;
            } else {
                waiting[m.links[m.passed]].push_back(k);
            }
        }
        for (auto& [link, line] : waiting) {
            if (!line.empty() && free[link] <= now) {
                auto& m = messages[line.front()];
                line.pop_front();
                free[link] = now + m.holds;
                ++m.passed;
                m.at = now + (m.passed == m.links.size() ? m.last_hop : m.hop);
            }
        }
    }
    return true;
}

constexpr network_topology topologies[] = {network_topology::ring, network_topology::switched, network_topology::full};

/// Random messages over a network of one level; hop and last hop of the oracle are chosen by the caller.
struct random_messages {
    int members;
    network_topology topology;
    int latency;
    std::vector<integer_message> messages;
};

random_messages random_case(std::mt19937& random)
{
    auto const below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    random_messages result{2 + below(6), topologies[below(3)], 1 + below(20), {}};
    for (int count = 1 + below(12); count > 0; --count) {
        auto const from = below(result.members);
        auto const to = (from + 1 + below(result.members - 1)) % result.members;
        result.messages.push_back({rank_id{from}, rank_id{to}, {1 + below(60)}, {below(80)}});
    }
    return result;
}

std::vector<followed> as_followed(random_messages const& c, bool is_stored)
{
    std::vector<followed> result;
    for (auto const& m : c.messages) {
        auto const whole_hop = c.latency + m.size.count;
        result.push_back(
            {links_between(c.topology, c.members, m.from.value, m.to.value), m.at.count, m.size.count, is_stored ? whole_hop : c.latency, whole_hop});
    }
    return result;
}

std::vector<timed_message<>> in_seconds(std::vector<integer_message> const& messages)
{
    std::vector<timed_message<>> result;
    for (auto const& m : messages) {
        result.push_back({m.from, m.to, m.size, {static_cast<double>(m.at.count)}});
    }
    return result;
}

}  // namespace

TEST_CASE("network: one message takes what ASTRA-sim says")
{
    test::vector_table const table{test::read_vectors("astra/unicast.csv")};
    for (auto const& line : table.lines) {
        CAPTURE(line);
        auto const levels = test::astra_network(table, line);
        integer_message const message[] = {
            {rank_id{static_cast<int>(table.integer(line, "from"))}, rank_id{static_cast<int>(table.integer(line, "to"))}, {table.integer(line, "bytes")}, {}}};
        auto const times =
            table.cell(line, "model") == "contended" ? arrivals<integer_contended_network>(levels, message) : arrivals<integer_free_network>(levels, message);
        REQUIRE(times);
        CHECK(times->front().count == table.integer(line, "result_ns"));
    }
}

TEST_CASE("network: all pairs take what ASTRA-sim says")
{
    test::vector_table const table{test::read_vectors("astra/all_pairs.csv")};
    for (auto const& line : table.lines) {
        CAPTURE(line);
        auto const messages = all_pairs<whole_nanoseconds>(static_cast<int>(table.integer(line, "npus")), {table.integer(line, "bytes")});
        auto const times = arrivals<integer_contended_network>(test::astra_network(table, line), messages);
        REQUIRE(times);
        CHECK(std::max_element(times->begin(), times->end())->count == table.integer(line, "last_arrival_ns"));
    }
}

TEST_CASE("network: arrivals are those of an oracle")
{
    std::mt19937 random{7};
    int compared = 0;
    for (int round = 0; round < 3000; ++round) {
        auto const c = random_case(random);
        CAPTURE(round, c.members, static_cast<int>(c.topology), c.latency);
        auto stored = as_followed(c, true);
        auto passed_on = as_followed(c, false);
        std::vector<integer_level> const whole{{c.members, c.topology, {static_cast<double>(c.latency), {1.0}}}};
        std::vector<network_level<>> const real{{c.members, c.topology, {{static_cast<double>(c.latency)}, {1.0}}}};
        auto const integers = arrivals<integer_contended_network>(whole, c.messages);
        auto const doubles = arrivals<contended_network>(real, in_seconds(c.messages));
        REQUIRE((integers && doubles));
        if (follow(stored)) {
            ++compared;
            for (std::size_t k = 0; k < stored.size(); ++k) {
                CHECK((*integers)[k].count == stored[k].arrival);
            }
        }
        if (follow(passed_on)) {
            ++compared;
            for (std::size_t k = 0; k < passed_on.size(); ++k) {
                CHECK((*doubles)[k].count == static_cast<double>(passed_on[k].arrival));
            }
        }
    }
    CHECK(compared > 1000);
}

TEST_CASE("network: contention never helps, halves scale, bytes repeat")
{
    std::mt19937 random{11};
    for (int round = 0; round < 500; ++round) {
        auto const c = random_case(random);
        auto const messages = in_seconds(c.messages);
        auto const started = [&](std::size_t k) { return messages[k].at; };
        double const rate = 0.37 + static_cast<double>(random() % 100);
        auto const network = [&](double latency, double bandwidth, int side_by_side) {
            return std::vector<network_level<>>{{c.members, c.topology, {{latency}, {bandwidth}}, side_by_side}};
        };
        auto const shared = *arrivals<contended_network>(network(c.latency, rate, 1), messages);
        auto const alone = *arrivals<free_network>(network(c.latency, rate, 1), messages);
        auto const wide = *arrivals<contended_network>(network(c.latency, rate, 100), messages);
        auto const faster = *arrivals<free_network>(network(c.latency, rate * 1.5, 1), messages);
        auto const nearer = *arrivals<free_network>(network(c.latency * 0.5, rate, 1), messages);
        for (std::size_t k = 0; k < messages.size(); ++k) {
            CAPTURE(round, k);
            CHECK(shared[k] >= alone[k] - seconds{1e-9});
            CHECK(wide[k].count == Approx(alone[k].count));  // as many links as messages: nobody waits
            CHECK(faster[k] <= alone[k]);
            CHECK(nearer[k] <= alone[k]);
            auto const hops = static_cast<double>(links_between(c.topology, c.members, messages[k].from.value, messages[k].to.value).size());
            CHECK((alone[k] - started(k)).count == Approx(hops * c.latency + static_cast<double>(messages[k].size.count) / rate));
        }
        auto halves = messages;
        for (auto& m : halves) {
            m.at = m.at / 2.0;
        }
        auto const half = *arrivals<contended_network>(network(c.latency / 2.0, rate * 2.0, 1), halves);
        for (std::size_t k = 0; k < messages.size(); ++k) {
            CHECK(half[k].count == shared[k].count / 2.0);  // to the bit: halves round as wholes do
        }
        CHECK(*arrivals<contended_network>(network(c.latency, rate, 1), messages) == shared);
    }
}

TEST_CASE("network: nested levels share the links of a node")
{
    // two nodes of four devices; each node has one link to the switch between them
    auto const nested = [](int links) {
        return std::vector<network_level<>>{{4, network_topology::full, {{1.0}, {10.0}}}, {2, network_topology::switched, {{5.0}, {2.0}}, links}};
    };
    std::vector<timed_message<>> const out{{rank_id{0}, rank_id{4}, {20}}, {rank_id{1}, rank_id{5}, {20}}, {rank_id{2}, rank_id{3}, {20}}};
    CHECK(*arrivals<contended_network>(nested(1), out) == std::vector<seconds>{{20.0}, {30.0}, {3.0}});
    CHECK(*arrivals<contended_network>(nested(2), out) == std::vector<seconds>{{20.0}, {20.0}, {3.0}});
    // as dimensions, each rank has a link of its own
    std::vector<integer_level> const dimensions{{4, network_topology::full, {1.0, {10.0}}}, {2, network_topology::switched, {5.0, {2.0}}}};
    std::vector<integer_message> const whole{{rank_id{0}, rank_id{4}, {20}}, {rank_id{1}, rank_id{5}, {20}}, {rank_id{2}, rank_id{3}, {20}}};
    CHECK(*arrivals<integer_contended_network>(dimensions, whole) == std::vector<whole_nanoseconds>{{30}, {30}, {3}});
}

TEST_CASE("network: routes of a ring go the shorter way")
{
    std::vector<network_level<>> const levels{{6, network_topology::ring, {{1.0}, {1.0}}}};
    network_routes<modelled_link, false> const routes{levels};
    CHECK(routes.bundles() == 12);
    CHECK(routes.route(rank_id{1}, rank_id{4}).hops == 3);
    CHECK(bundle_at(routes.route(rank_id{1}, rank_id{4}), 0) == 1);  // equal both ways: ascending
    CHECK(bundle_at(routes.route(rank_id{5}, rank_id{1}), 1) == 0);
    CHECK(bundle_at(routes.route(rank_id{1}, rank_id{5}), 0) == 7);
    CHECK(bundle_at(routes.route(rank_id{1}, rank_id{5}), 1) == 6);
}

namespace {

/// Whether a turned message takes bundles that are equal to those of the message.
template <bool HasOwnLinks>
void check_turned(std::vector<network_level<>> const& levels, detail::rank_symmetry const& symmetry, std::mt19937& draw)
{
    network_routes<modelled_link, HasOwnLinks> const routes{array_view<network_level<> const>{levels}};
    auto const equal = routes.equal_bundles(symmetry.periods);
    auto const ranks = static_cast<unsigned>(routes.ranks());
    for (int k = 0; k < 20; ++k) {
        auto const from = static_cast<std::int32_t>(draw() % ranks);
        auto const to = static_cast<std::int32_t>(draw() % ranks);
        auto const level = draw() % levels.size();
        if (from == to) {
            continue;
        }
        auto const a = routes.route({from}, {to});
        auto const b = routes.route({symmetry.moved_on(from, level)}, {symmetry.moved_on(to, level)});
        auto const [other, played] = symmetry.turned({from, to});
        auto const c = routes.route({other}, {played});
        CHECK(played == symmetry.representative(to));
        CHECK(symmetry.representative(played) == played);
        REQUIRE(a.hops == b.hops);
        REQUIRE(a.hops == c.hops);
        for (std::int32_t hop = 0; hop < a.hops; ++hop) {
            auto const stands = equal[static_cast<std::size_t>(bundle_at(a, hop))];
            CHECK(stands == equal[static_cast<std::size_t>(bundle_at(b, hop))]);
            CHECK(stands == equal[static_cast<std::size_t>(bundle_at(c, hop))]);
            CHECK(stands == equal[static_cast<std::size_t>(stands)]);
        }
    }
}

}  // namespace

TEST_CASE("network: turned messages take equal links")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 200; ++round) {
        std::vector<network_level<>> levels;
        detail::rank_symmetry symmetry;
        for (auto left = 1 + draw() % 3; left > 0; --left) {
            auto const members = static_cast<int>(1 + draw() % 6);
            levels.push_back({members, static_cast<network_topology>(draw() % 3), {{1.0}, {1.0}}});
            symmetry.members.push_back(members);
            symmetry.periods.push_back(members % 3 == 0 ? 3 : members % 2 == 0 ? 2 : 1);
        }
        check_turned<false>(levels, symmetry, draw);
        check_turned<true>(levels, symmetry, draw);
    }
}

TEST_CASE("network: messages that come to a link at one time are a tie")
{
    std::vector<network_level<>> const levels{{3, network_topology::switched, {{1.0}, {1.0}}}};
    auto const has_ties = [&](seconds second, int to) {
        message_network<contended_network, int> network{levels};
        network.send({0}, {1}, {10}, {0.0}, 0);
        network.send({2}, {to}, {10}, second, 1);
        while (network.next()) {
        }
        return network.has_ties();
    };
    CHECK(has_ties({0.0}, 1));
    CHECK_FALSE(has_ties({0.0}, 0));
    CHECK_FALSE(has_ties({0.5}, 1));
}

TEST_CASE("network: what is now comes before what is later")
{
    std::vector<network_level<>> const levels{{2, network_topology::full, {{1.0}, {1.0}}}};
    message_network<contended_network, int> network{levels};
    network.alarm({2.0}, 1);
    network.send({0}, {1}, {1}, {0.0}, 2);
    network.alarm({3.0}, 3);
    CHECK(network.next()->note == 1);
    REQUIRE(network.next_now());
    CHECK_FALSE(network.next_now());
    CHECK(network.now() == seconds{2.0});
    CHECK(network.next()->note == 3);
}

TEST_CASE("network: what cannot be is refused in a sentence")
{
    auto const fault = [](std::vector<network_level<>> const& levels, int ranks = 0) { return network_fault<modelled_link>(levels, ranks); };
    modelled_link const link{{1e-6}, {1e9}};
    CHECK(fault({{4, network_topology::ring, link}, {2, network_topology::full, link}}, 8).empty());
    CHECK(fault({}) == "a network has at least one level");
    CHECK(fault({{4, network_topology::ring, link}, {2, network_topology::full, link}}, 9) == "the levels of the network multiply up to 8 ranks, not to 9");
    for (double const rate : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        CHECK(fault({{4, network_topology::ring, {{1e-6}, {rate}}}}) ==
              "level 0 of the network has a link whose rate or latency cannot be: a rate is above zero, a latency at least zero, and both are finite");
    }
    CHECK(fault({{0, network_topology::ring, link}}) == "level 0 of the network has 0 members with 1 links each; both are at least 1");
    CHECK(fault({{1 << 12, network_topology::ring, link}, {1 << 12, network_topology::ring, link}}) ==
          "the levels of the network multiply up to more than 1048576 ranks");
    CHECK(fault({{100'000, network_topology::full, link}}) == "the network has more than 134217728 links; a full level has one for each pair of members");

    std::vector<integer_level> const slow{{3, network_topology::ring, {1.0, {1e-12}}}};
    std::vector<integer_message> const large{{rank_id{0}, rank_id{1}, {1 << 30}}};
    CHECK(arrivals<integer_contended_network>(slow, large).error() ==
          "message 0 arrives after the largest time of this network model (2^63 - 1 ns where time is whole)");
    CHECK(arrivals<integer_free_network>(slow, large).error() == arrivals<integer_contended_network>(slow, large).error());
    std::vector<integer_message> const nowhere{{rank_id{0}, rank_id{3}, {1}}};
    CHECK(arrivals<integer_free_network>(slow, nowhere).error() ==
          "message 0 of 1 bytes from rank 0 to rank 3: expected two different ranks below 3, at least 0 bytes and a time from 0 on");
}
