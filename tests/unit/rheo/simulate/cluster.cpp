// SPDX-License-Identifier: Apache-2.0
// Described clusters as values: devices and links by rank and node, and faults.
#include "rheo/simulate/cluster/cluster_model.hpp"

#include <limits>

#include "rheo/simulate/network/fitted_link.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

cluster_device const device{{{1e12}, {1e9}, {1 << 30}}, {100.0}, {10.0}};

cluster_model two_levels()
{
    return {device,
            {{"node", {2, network_topology::full, {microseconds(0.5), {50.0 * 1073741824.0}}}},
             {"rack", {3, network_topology::ring, {microseconds(0.25), {1e9}}, 2}}},
            {},
            {},
            {}};
}

}  // namespace

TEST_CASE("cluster: devices, nodes and networks follow from levels")
{
    auto const cluster = two_levels();
    CHECK(cluster_fault(cluster, 6).empty());
    CHECK(devices_of(cluster) == 6);
    CHECK(nodes_of(cluster) == 3);
    CHECK(network_of(cluster).at(1) == cluster.levels[1].network);
    auto const whole = network_of<integer_link>(cluster);
    CHECK(whole.at(0) == network_level<integer_link>{2, network_topology::full, {500.0, gibibytes_per_second(50)}});
    CHECK(whole.at(1) == network_level<integer_link>{3, network_topology::ring, {250.0, {1.0}}, 2});
    for (int ns = 0; ns < 10'000; ++ns) {  // no latency of whole nanoseconds becomes another one
        CHECK(integer_link_of({microseconds(ns / 1000.0), {1e9}}).latency_ns == ns);
    }
}

TEST_CASE("cluster: a node has the device of its range")
{
    auto cluster = two_levels();
    auto slow = device;
    slow.description.compute = {5e11};
    cluster.different = {{1, 1, slow, {}}};
    for (rank_id rank{0}; rank.value < 6; ++rank) {
        CHECK(device_of(cluster, rank) == (rank.value / 2 == 1 ? slow : device));
    }
    CHECK_FALSE(has_different_links(cluster));
    cluster.different[0].links = {std::nullopt, modelled_link{{0.0}, {1.0}}};
    CHECK(has_different_links(cluster));
    CHECK(cluster_fault(cluster).empty());
}

TEST_CASE("cluster: what cannot be is named")
{
    using Catch::Matchers::ContainsSubstring;
    auto cluster = two_levels();
    CHECK_THAT(cluster_fault(cluster, 5), ContainsSubstring("multiply up to 6 ranks, not to 5"));
    cluster.device.description.traffic = {std::numeric_limits<double>::infinity()};
    CHECK_THAT(cluster_fault(cluster), ContainsSubstring("the device of the cluster cannot be"));
    cluster = two_levels();
    cluster.levels[0].network.link.bandwidth = {0.0};
    CHECK_THAT(cluster_fault(cluster), ContainsSubstring("level 0 of the network has a link whose rate or latency cannot be"));
    for (auto const& [first, last] : {std::pair{2, 1}, std::pair{2, 3}, std::pair{-1, 1}}) {
        cluster = two_levels();
        cluster.different = {{first, last, device, {}}};
        CHECK_THAT(cluster_fault(cluster), ContainsSubstring("are no range of their own"));
    }
    cluster.different = {{0, 1, device, {}}, {1, 2, device, {}}};
    CHECK_THAT(cluster_fault(cluster), ContainsSubstring("the nodes 1 to 2 are no range of their own"));
    cluster.different = {{0, 1, device, {modelled_link{{0.0}, {-1.0}}}}};
    CHECK_THAT(cluster_fault(cluster), ContainsSubstring("a device or a link that cannot be"));
}

TEST_CASE("cluster: a link fitted to its own times is that link")
{
    modelled_link const link{microseconds(3.0), {25e9}};
    std::vector<measured_time> rows;
    for (std::int64_t size = 1; size < (1 << 28); size *= 4) {
        rows.push_back({{size}, transfer_time(link, {size})});
    }
    auto const fitted = fit_link(array_view<measured_time const>{rows});
    REQUIRE(fitted);
    CHECK(fitted->latency.count == Approx(link.latency.count));
    CHECK(fitted->bandwidth.count == Approx(link.bandwidth.count));
    rows.resize(1);
    CHECK_FALSE(fit_link(array_view<measured_time const>{rows}));
    CHECK_FALSE(fit_link(array_view<measured_time const>{}));
}
