// SPDX-License-Identifier: Apache-2.0
// Measured devices and links become a described cluster: nodes of equal runs of ranks, the median node in common, those that are off listed.
#include "executor/train/measured/measured_cluster.hpp"

#include <string>
#include <vector>

#include "executor/config/cluster/cluster_file.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

measured_device device(double tflops, std::int32_t node, double gb_per_s = 100.0, std::int64_t gib = 16)
{
    return {{tflops * 1e12}, {gb_per_s * 1e9}, gibibytes(gib), node};
}

constexpr modelled_link quick{{1e-6}, {1e11}};
constexpr modelled_link slow{{1e-5}, {1e10}};

}  // namespace

TEST_CASE("measured_cluster: nodes are a level, and what joins them")
{
    std::vector const ranks{device(1.0, 0), device(2.0, 0), device(1.5, 1), device(1.5, 1, 100.0, 8)};
    auto const cluster = cluster_of(ranks, quick, slow);
    REQUIRE(cluster);
    CHECK(cluster_fault(*cluster, 4).empty());
    REQUIRE(cluster->levels.size() == 2);
    CHECK(cluster->levels[0] == cluster_level{"node", {2, network_topology::switched, quick}});
    CHECK(cluster->levels[1] == cluster_level{"cluster", {2, network_topology::switched, slow}});
    CHECK(cluster->device.description.compute.count == Approx(1.5e12));
    CHECK(cluster->different.empty());
    CHECK(parse_cluster(to_toml(*cluster), "again", {}) == *cluster);
    auto const one = cluster_of(std::vector{device(0.0312345, 0)}, {}, {});
    REQUIRE(one);
    CHECK(devices_of(*one) == 1);
    CHECK(one->device.description.compute.count == Approx(0.0312e12).epsilon(1e-9));  // three digits
}

TEST_CASE("measured_cluster: nodes that are off differ")
{
    std::vector<measured_device> ranks;
    for (std::int32_t node = 0; node < 5; ++node) {
        ranks.push_back(device(node == 3 ? 0.8 : 1.0 + 0.01 * node, node, node == 1 ? 120.0 : 100.0));
    }
    auto const cluster = cluster_of(ranks, {}, slow);
    REQUIRE(cluster);
    REQUIRE(cluster->different.size() == 2);
    CHECK(cluster->different[0].first == 1);
    CHECK(cluster->different[1].first == 3);
    CHECK(cluster->different[1].last == 3);
    CHECK(cluster->different[1].device.description.compute.count == Approx(0.8e12));
    CHECK(cluster_fault(*cluster, 5).empty());
    CHECK(parse_cluster(to_toml(*cluster), "again", {}) == *cluster);
}

TEST_CASE("measured_cluster: nodes that are no equal runs are refused")
{
    auto const refused = [](std::vector<measured_device> const& ranks) {
        auto const cluster = cluster_of(ranks, quick, slow);
        return cluster ? "" : cluster.error();
    };
    CHECK(
        refused({device(1, 0), device(1, 0), device(1, 1)}) ==
        "node 0 has 2 ranks, and ranks 2 to 2 are not those of node 1; expected nodes of as many ranks each, one after the other: mpirun --map-by ppr:2:node");
    CHECK(refused({device(1, 0), device(1, 1), device(1, 0), device(1, 1)}).find("ranks 2 to 2 are not those of node 2") != std::string::npos);
    CHECK(refused({}) == "no rank of node 0 was measured");
}
