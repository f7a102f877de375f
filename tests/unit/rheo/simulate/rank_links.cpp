// SPDX-License-Identifier: Apache-2.0
// Links of ranks that are not those of their levels: a way that is free takes its latencies and its slowest link, sharing makes nothing quicker, and slow
// links of all ranks are slow levels.
#include <algorithm>
#include <random>
#include <vector>

#include "rheo/simulate/cluster/cluster_links.hpp"
#include "rheo/simulate/network/arrivals.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

using levels_of_test = std::vector<network_level<>>;
constexpr network_topology topologies[] = {network_topology::ring, network_topology::switched, network_topology::full};

struct random_network {
    levels_of_test levels;
    rank_links<> links;
    std::vector<timed_message<>> messages;
};

random_network drawn(std::mt19937& random)
{
    auto const below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    levels_of_test levels;
    for (int left = 1 + below(3); left > 0; --left) {
        levels.push_back({1 + below(5), topologies[below(3)], {{1.0 + below(20)}, {1.0 + below(9)}}, 1 + below(2)});
    }
    levels.push_back({2, topologies[below(3)], {{30.0}, {0.5}}});
    rank_links<> links{array_view<network_level<> const>{levels}};
    auto const ranks = ranks_of(array_view<network_level<> const>{levels});
    for (std::size_t level = 0; level < levels.size(); ++level) {
        for (rank_id rank{0}; rank.value < ranks; ++rank) {
            links(level, rank) = {{1.0 + below(20)}, {1.0 + below(9)}};
        }
    }
    std::vector<timed_message<>> messages;
    for (int count = 1 + below(20); count > 0; --count) {
        auto const from = below(ranks);
        messages.push_back({rank_id{from}, rank_id{(from + 1 + below(ranks - 1)) % ranks}, {below(60)}, {static_cast<double>(below(80))}});
    }
    return {levels, links, messages};
}

template <class Model>
std::vector<seconds> times(random_network const& of, rank_links<> const* links)
{
    auto const all = arrivals<Model>(array_view<network_level<> const>{of.levels}, array_view<timed_message<> const>{of.messages}, links);
    REQUIRE(all.error() == "");
    return *all;
}

/// The ranks through which a message goes on one level of its own, sender and receiver among them, by stepping along a ring.
std::vector<int> ranks_on_the_way(network_level<> const& level, int from, int to)
{
    if (level.topology != network_topology::ring) {
        return {from, to};
    }
    std::vector<int> up{from};
    std::vector<int> down{from};
    while (up.back() != to) {
        up.push_back((up.back() + 1) % level.members);
    }
    while (down.back() != to) {
        down.push_back((down.back() + level.members - 1) % level.members);
    }
    return down.size() < up.size() ? down : up;
}

}  // namespace

TEST_CASE("rank_links: links like those of the levels change nothing")
{
    std::mt19937 random{5};
    for (int round = 0; round < 300; ++round) {
        auto const of = drawn(random);
        rank_links<> const alike{array_view<network_level<> const>{of.levels}};
        auto const without = times<contended_network>(of, nullptr);
        auto const with = times<contended_network>(of, &alike);
        for (std::size_t k = 0; k < with.size(); ++k) {
            CHECK(with[k].count == Approx(without[k].count).epsilon(1e-12));
        }
    }
}

TEST_CASE("rank_links: a free way takes its slowest link")
{
    std::mt19937 random{6};
    for (int round = 0; round < 500; ++round) {
        auto const members = 2 + static_cast<int>(random() % 6U);
        random_network of{{{members, topologies[random() % 3U], {{1.0}, {1.0}}}}, rank_links<>{array_view<network_level<> const>{}}, {}};
        of.links = rank_links<>{array_view<network_level<> const>{of.levels}};
        for (rank_id rank{0}; rank.value < members; ++rank) {
            of.links(0, rank) = {{static_cast<double>(random() % 20U)}, {1.0 + static_cast<double>(random() % 9U)}};
        }
        auto const from = static_cast<int>(random() % static_cast<unsigned>(members));
        auto const to = (from + 1 + static_cast<int>(random() % static_cast<unsigned>(members - 1))) % members;
        of.messages.push_back({rank_id{from}, rank_id{to}, {50}, {}});
        auto const way = ranks_on_the_way(of.levels[0], from, to);
        double latencies = 0.0;
        double rate = 1e9;
        bool const is_switched = of.levels[0].topology == network_topology::switched;
        for (std::size_t k = 0; k + 1 < way.size(); ++k) {
            auto const& a = of.links(0, rank_id{way[k]});
            auto const& b = of.links(0, rank_id{way[k + 1]});
            latencies += is_switched ? a.latency.count + b.latency.count : std::max(a.latency, b.latency).count;
            rate = std::min({rate, a.bandwidth.count, b.bandwidth.count});
        }
        CHECK(times<contended_network>(of, &of.links)[0].count == Approx(latencies + 50.0 / rate));
        CHECK(times<free_network>(of, &of.links)[0].count == Approx(latencies + 50.0 / rate));
    }
}

TEST_CASE("rank_links: contention never helps, slow links neither")
{
    std::mt19937 random{7};
    for (int round = 0; round < 500; ++round) {
        auto of = drawn(random);
        auto const alone = times<free_network>(of, &of.links);
        auto const shared = times<contended_network>(of, &of.links);
        auto const first = shared;
        auto slower = of.links;
        rank_id const slow{static_cast<int>(random() % static_cast<unsigned>(ranks_of(array_view<network_level<> const>{of.levels})))};
        for (std::size_t level = 0; level < of.levels.size(); ++level) {
            slower(level, slow) = slowed_link(slower(level, slow), 3.0);
        }
        auto const slowed = times<free_network>(of, &slower);
        for (std::size_t k = 0; k < shared.size(); ++k) {
            CHECK(shared[k] >= alone[k] - seconds{1e-9});
            CHECK(slowed[k] >= alone[k]);
        }
        CHECK(times<contended_network>(of, &of.links) == first);
    }
}

TEST_CASE("rank_links: slow links of all ranks are slow levels")
{
    std::mt19937 random{8};
    for (int round = 0; round < 300; ++round) {
        auto of = drawn(random);
        auto slow = of;
        rank_links<> links{array_view<network_level<> const>{of.levels}};
        for (std::size_t level = 0; level < of.levels.size(); ++level) {
            slow.levels[level].link = slowed_link(of.levels[level].link, 4.0);
            for (rank_id rank{0}; rank.value < ranks_of(array_view<network_level<> const>{of.levels}); ++rank) {
                links(level, rank) = slow.levels[level].link;
            }
        }
        auto const by_rank = times<contended_network>(of, &links);
        auto const by_level = times<contended_network>(slow, nullptr);
        auto const free_by_rank = times<free_network>(of, &links);
        auto const free_by_level = times<free_network>(slow, nullptr);
        for (std::size_t k = 0; k < by_rank.size(); ++k) {
            CHECK(by_rank[k].count == Approx(by_level[k].count).epsilon(1e-12));
            CHECK(free_by_rank[k].count == Approx(free_by_level[k].count).epsilon(1e-12));
        }
    }
}

TEST_CASE("rank_links: a link is taken until the tail is through")
{
    // a switch; rank 0 is slow. Its message comes in at 1 byte per s, so the link to rank 2 is taken until 12 s, and rank 1's message goes then
    levels_of_test const levels{{3, network_topology::switched, {{1.0}, {10.0}}}};
    rank_links<> links{array_view<network_level<> const>{levels}};
    links(0, rank_id{0}) = {{2.0}, {1.0}};
    random_network const of{levels, links, {{rank_id{0}, rank_id{2}, {10}, {0.0}}, {rank_id{1}, rank_id{2}, {10}, {5.0}}}};
    CHECK(times<contended_network>(of, &links) == std::vector<seconds>{{13.0}, {14.0}});
    CHECK(times<free_network>(of, &links) == std::vector<seconds>{{13.0}, {8.0}});
}

TEST_CASE("rank_links: whole nanoseconds are stored hop by hop")
{
    std::vector<network_level<integer_link>> const levels{{4, network_topology::ring, {3.0, {2.0}}}};
    rank_links<integer_link> links{array_view<network_level<integer_link> const>{levels}};
    timed_message<whole_nanoseconds> const message[] = {{rank_id{0}, rank_id{2}, {9}, {}}};
    auto const arrival = [&] {
        return arrivals<integer_contended_network>(array_view<network_level<integer_link> const>{levels},
                                                   array_view<timed_message<whole_nanoseconds> const>{message}, &links)
            ->front()
            .count;
    };
    CHECK(arrival() == 14);  // two hops of 7.5 ns, each rounded down
    links(0, rank_id{1}) = {3.0, {1.0}};
    CHECK(arrival() == 24);  // both hops are those of rank 1
    links(0, rank_id{1}) = {3.0, {2.0}};
    links(0, rank_id{2}) = {5.0, {1.0}};
    CHECK(arrival() == 21);
}

TEST_CASE("rank_links: nodes of a cluster have their own links")
{
    cluster_model cluster{.device = {{{1e12}, {1e12}, gibibytes(1)}},
                          .levels = {{"node", {2, network_topology::full, {{1.0}, {4.0}}}}, {"rack", {3, network_topology::switched, {{2.0}, {3.0}}}}},
                          .different = {},
                          .storage = {},
                          .recovery = {}};
    CHECK_FALSE(links_of<modelled_link>(cluster));
    cluster.different.push_back({1, 1, cluster.device, {std::nullopt, modelled_link{{7.0}, {1.0}}}});
    auto const links = links_of<modelled_link>(cluster);
    REQUIRE(links);
    for (rank_id rank{0}; rank.value < 6; ++rank) {
        CHECK((*links)(0, rank) == cluster.levels[0].network.link);
        CHECK((*links)(1, rank) == (rank.value / 2 == 1 ? modelled_link{{7.0}, {1.0}} : cluster.levels[1].network.link));
    }
    CHECK(link_of(cluster, 1, 1) == modelled_link{{7.0}, {1.0}});
    CHECK(link_of(cluster, 1, 2) == cluster.levels[1].network.link);
}
