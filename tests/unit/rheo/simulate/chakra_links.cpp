// SPDX-License-Identifier: Apache-2.0
// Execution traces on links that differ: where all ranks have other links the network is another one, and equal ranks on other links have other times.
#include <array>
#include <random>
#include <vector>

#include "rheo/simulate/chakra/play_traces.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "support/catch.hpp"
#include "traced_job.hpp"

using namespace rheo;

namespace {

constexpr std::array topologies{network_topology::ring, network_topology::switched, network_topology::full};

/// 1 us, 1000 bytes per us.
std::vector<network_level<>> links(int members, network_topology topology = network_topology::full)
{
    return {{members, topology, {microseconds(1.0), {1e9}}}};
}

template <class Model>
played_traces<typename Model::time> played(test::traced_job const& job, std::vector<network_level<typename Model::link>> const& levels,
                                           chakra_play_rules<Model> const& rules = {})
{
    auto const result = play_traces<Model>(job.traces, levels, rules);
    INFO(result.error());
    REQUIRE(result);
    return *result;
}

}  // namespace

TEST_CASE("chakra_links: ranks have links of their own")
{
    std::mt19937 draw{7};
    modelled_link const slow{microseconds(3.0), {2.5e8}};
    for (int round = 0; round < 100; ++round) {
        auto const ranks = static_cast<std::int32_t>(2 + draw() % 5);
        auto const job = test::random_job(ranks, {{1, {1, 0}}}, true, 40, draw);
        auto const levels = links(ranks, topologies[draw() % topologies.size()]);
        auto all_slow = levels;
        all_slow.front().link = slow;
        auto const view = array_view<network_level<> const>{levels};
        auto const check = [&]<class Model>(Model) {
            rank_links<> own{view};
            CHECK(played<Model>(job, levels, {.links = &own}).end.count == Approx(played<Model>(job, levels).end.count));
            auto const before = played<free_network>(job, levels, {.links = &own}).end;
            own(0, rank_id{0}) = slow;
            CHECK(played<free_network>(job, levels, {.links = &own}).end.count >= before.count * (1.0 - 1e-12));
            for (rank_id r{0}; r.value < ranks; ++r) {
                own(0, r) = slow;
            }
            CHECK(played<Model>(job, levels, {.links = &own}).end.count == Approx(played<Model>(job, all_slow).end.count));
        };
        check(free_network{});
        check(contended_network{});
    }
    test::traced_job pairs{4};  // both pairs do the same, on other links
    for (int const first : {0, 2}) {
        pairs.send(first, first + 1, 4000);
        pairs.receive(first + 1, first, 4000, 0, {});
    }
    rank_links<> own{array_view<network_level<> const>{links(4)}};
    own(0, rank_id{3}) = slow;
    auto const times = played<contended_network>(pairs, links(4), {.links = &own});
    CHECK(times.ranks[1].end.count == Approx(5e-6));
    CHECK(times.ranks[3].end.count == Approx(19e-6));  // 3, then 4000 at 250 a microsecond
}
