// SPDX-License-Identifier: Apache-2.0
// NCCL's own expectation: what a cluster's log says, and that it takes the least of what there is.
#include "rheo/simulate/network/nccl.hpp"

#include <limits>

#include "support/public_vectors.hpp"

using namespace rheo;

TEST_CASE("nccl: times and choices are those of a log")
{
    test::vector_table const table{test::read_vectors("nccl/tuner_lines.csv")};
    for (auto const& line : table.lines) {
        CAPTURE(line);
        constexpr int channels = 16;
        nccl_machine const machine{.ranks = static_cast<int>(table.integer(line, "ranks")),
                                   .nodes = static_cast<int>(table.integer(line, "nodes")),
                                   .channels = channels,
                                   .channel_bandwidth = table.number(line, "bus_GB_per_s") / channels};
        auto const protocol = table.cell(line, "protocol") == "LL" ? nccl_protocol::ll : nccl_protocol::ll128;
        REQUIRE(table.cell(line, "algorithm") == "tree");
        bytes const size{table.integer(line, "bytes")};
        auto const choice = nccl_all_reduce(machine, size);
        REQUIRE(choice);
        CHECK(choice->algorithm == nccl_algorithm::tree);
        CHECK(choice->protocol == protocol);
        CHECK(in_microseconds(choice->time) == Approx(table.number(line, "time_us")).epsilon(1e-7));
    }
}

TEST_CASE("nccl: lines follow the rules")
{
    // one node of 8 with NVLink, 10 channels of 20 GB/s: worked out by hand
    nccl_machine const ampere{.ranks = 8, .nodes = 1, .channels = 10, .channel_bandwidth = 20.0, .gpu = nccl_gpu::ampere, .has_tree_pattern = false};
    auto const us = [&](nccl_machine const& m, nccl_algorithm a, nccl_protocol p, std::int64_t size) { return in_microseconds(nccl_time(m, a, p, {size})); };
    CHECK(us(ampere, nccl_algorithm::ring, nccl_protocol::simple, 0) == Approx(8.4 + 14.0 * 3.4));
    CHECK(us(ampere, nccl_algorithm::ring, nccl_protocol::simple, 1 << 30) == Approx(8.4 + 14.0 * 3.4 + (1 << 30) / (1000.0 * 200.0 * 8.0 / 14.0)));
    CHECK(us(ampere, nccl_algorithm::ring, nccl_protocol::ll, 1 << 30) == Approx(6.6 + 14.0 * 0.6 + (1 << 30) / (1000.0 * 87.7 * 8.0 / 14.0)));
    CHECK(us(ampere, nccl_algorithm::tree, nccl_protocol::ll128, 1 << 30) ==
          Approx(14.0 + 14.0 * 1.25 + (1 << 30) / (1000.0 * 0.92 * 200.0 * 7.0 / 9.0 / 2.0)));
    // two nodes: the ring pays for the network twice, and 1.4 times for its latency from 64 B per channel and rank on
    nccl_machine two = ampere;
    two.ranks = 16;
    two.nodes = 2;
    two.cpu = nccl_cpu::amd;
    CHECK(us(two, nccl_algorithm::ring, nccl_protocol::simple, 64 * 160 - 1) ==
          Approx(8.4 + 28.0 * 6.0 + 2.0 * 14.0 + (64 * 160 - 1) / (1000.0 * 200.0 * 16.0 / 30.0)));
    CHECK(us(two, nccl_algorithm::ring, nccl_protocol::simple, 64 * 160) ==
          Approx((8.4 + 28.0 * 6.0 + 2.0 * 14.0) * 1.4 + (64 * 160) / (1000.0 * 200.0 * 16.0 / 30.0)));
    two.nvls_bandwidth = 300.0;
    CHECK(us(two, nccl_algorithm::nvls_tree, nccl_protocol::simple, 1 << 20) == Approx(25.0 + 2.0 * 14.0 + (1 << 20) / (1000.0 * 250.0)));
}

TEST_CASE("nccl: the choice is the least time")
{
    for (int const nodes : {1, 2, 3, 8}) {
        for (auto const gpu : {nccl_gpu::volta, nccl_gpu::ampere, nccl_gpu::hopper}) {
            nccl_machine const machine{.ranks = nodes * 8, .nodes = nodes, .channels = 8, .channel_bandwidth = 12.0, .gpu = gpu};
            for (std::int64_t size = 1; size < (std::int64_t{1} << 34); size *= 3) {
                auto const choice = *nccl_all_reduce(machine, {size});
                CHECK(choice.time == nccl_time(machine, choice.algorithm, choice.protocol, {size}));
                for (auto const algorithm : {nccl_algorithm::tree, nccl_algorithm::ring}) {
                    for (auto const protocol : {nccl_protocol::ll, nccl_protocol::ll128, nccl_protocol::simple}) {
                        CHECK(choice.time <= nccl_time(machine, algorithm, protocol, {size}));
                    }
                }
            }
        }
    }
}

TEST_CASE("nccl: what cannot be is refused in a sentence")
{
    nccl_machine machine{.ranks = 9, .nodes = 2, .channels = 4, .channel_bandwidth = 10.0};
    CHECK(nccl_all_reduce(machine, {1}).error() ==
          "9 ranks on 2 nodes with 4 channels: expected at least 2 ranks, as many on each node, and at least 1 channel");
    machine.ranks = 8;
    machine.channel_bandwidth = std::numeric_limits<double>::infinity();
    CHECK(nccl_all_reduce(machine, {1}).error() == "the bandwidth of a channel is above zero and finite, and so is that of NVLS where there is one");
}
