#pragma once
// SPDX-License-Identifier: Apache-2.0

// What NCCL itself expects of an all-reduce, and which algorithm and protocol it would therefore take: its tuner is a latency
// and a bandwidth for each pair of them. The constants are those of src/graph/tuning.cc in NCCL 2.23.4. The times are
// choices, not measurements: small messages take longer than they say.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class nccl_algorithm : unsigned char { tree, ring, nvls_tree };
enum class nccl_protocol : unsigned char { ll, ll128, simple };
enum class nccl_gpu : unsigned char { volta, ampere, hopper };
enum class nccl_cpu : unsigned char { intel, amd, other };

/// The names in files.
inline constexpr std::array<std::string_view, 3> nccl_gpu_names{"volta", "ampere", "hopper"};
inline constexpr std::array<std::string_view, 3> nccl_cpu_names{"intel", "amd", "other"};

/// What NCCL finds when it starts; a log with NCCL_DEBUG_SUBSYS=GRAPH,TUNING shows it.
struct nccl_machine {
    int ranks;
    int nodes;
    int channels;
    double channel_bandwidth;  ///< GB/s of 10^9 bytes: inside a node for one or two nodes, else between them
    nccl_gpu gpu = nccl_gpu::hopper;
    nccl_cpu cpu = nccl_cpu::intel;
    bool has_nvlink = true;        ///< inside a node; else PCI
    bool has_tree_pattern = true;  ///< the graph's pattern is TREE, not one that balances the ends
    double nvls_bandwidth = 0.0;   ///< GB/s of the NVLS tree's bus; 0: the machine has none

    friend constexpr bool operator==(nccl_machine const&, nccl_machine const&) = default;
};

struct nccl_choice {
    nccl_algorithm algorithm;
    nccl_protocol protocol;
    seconds time;

    friend constexpr bool operator==(nccl_choice const&, nccl_choice const&) = default;
};

namespace detail {

using nccl_row = std::array<double, 3>;  ///< by protocol, or by number of nodes: one, two, more

constexpr std::array<nccl_row, 3> nccl_base_us{{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {0.0, 0.0, 0.0}}};  // by algorithm, as the next three
constexpr std::array<nccl_row, 3> nccl_nvlink_us{{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0.0, 0.0, 25.0}}};
constexpr std::array<nccl_row, 3> nccl_pci_us{{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0.0, 0.0, 0.0}}};
constexpr std::array<nccl_row, 3> nccl_net_us{{{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}, {0.0, 0.0, 14.0}}};
constexpr nccl_row nccl_overhead_us{1.0, 2.0, 1.0};      // by processor
constexpr nccl_row nccl_ll_one_node{39.0, 87.7, 141.0};  // by GPU
constexpr nccl_row nccl_ll_two_nodes{39.0, 22.5, 39.0};  // by processor; others as Intel
constexpr nccl_row nccl_ll_more_nodes{20.4, 19.0, 20.4};
constexpr std::array<nccl_row, 3> nccl_ring_ll128{{{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}}};  // by GPU, then nodes
constexpr std::array<nccl_row, 3> nccl_tree_ll128{{{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}}};
constexpr std::array<nccl_row, 3> nccl_tree_simple{{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}}};
constexpr std::array<std::array<double, 24>, 3> nccl_tree_correction{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

template <class Kind>
constexpr std::size_t index_of(Kind kind)
{
    return static_cast<std::size_t>(kind);
}

/// Of the tree in the middle of its sizes, by floor(log2(bytes / 64)).
constexpr double tree_correction(nccl_protocol protocol, bytes size)
{
    auto const powers = std::bit_width(static_cast<std::uint64_t>(size.count) / 64);  // 0 below 64 bytes
    return powers >= 1 && powers <= 23 ? nccl_tree_correction[index_of(protocol)][static_cast<std::size_t>(powers - 1)] : 1.0;
}

/// Latency in microseconds and bandwidth in GB/s.
struct nccl_line {
    double latency_us;
    double bandwidth;
};

constexpr nccl_line nccl_line_of(nccl_machine const& m, nccl_algorithm algorithm, nccl_protocol protocol, bytes size)
{
    auto const a = index_of(algorithm);
    auto const p = index_of(protocol);
    auto const nodes = static_cast<std::size_t>(std::min(m.nodes, 3) - 1);
    auto const gpu = index_of(m.gpu);
    auto const cpu = index_of(m.cpu);
    double const inside = m.has_nvlink ? nccl_nvlink_us[a][p] : nccl_pci_us[a][p];
    double const ll_most = m.nodes == 1 ? nccl_ll_one_node[gpu] : m.nodes == 2 ? nccl_ll_two_nodes[cpu] : nccl_ll_more_nodes[cpu];
    double const bus = m.channels * m.channel_bandwidth;
    double const net = nccl_net_us[a][p];
    auto const rounds = static_cast<double>(std::bit_width(static_cast<unsigned>(m.nodes)) - 1);
    if (algorithm == nccl_algorithm::nvls_tree) {
        return {inside + 2.0 * rounds * net, m.nvls_bandwidth * 5.0 / 6.0};
    }
    double const per_node = static_cast<double>(m.ranks) / m.nodes;
    if (algorithm == nccl_algorithm::tree) {
        double shared = std::min(0.92 * bus, m.channels * nccl_tree_simple[gpu][nodes]);
        if (protocol == nccl_protocol::ll) {
            shared = std::min(shared / 3.8, ll_most);
        } else if (protocol == nccl_protocol::ll128) {
            shared = std::min(shared * (m.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0), m.channels * nccl_tree_ll128[gpu][nodes]);
        }
        double const pattern = m.has_tree_pattern ? 0.85 : 1.0;
        return {nccl_base_us[a][p] + 2.0 * ((per_node - 1.0) * inside + rounds * net), shared * pattern / 2.0 * tree_correction(protocol, size)};
    }
    double const steps = 2.0 * (m.ranks - 1);
    double const between = 2.0 * (m.nodes - 1);
    double const overhead = m.nodes == 1 ? 0.0 : nccl_overhead_us[cpu] * (protocol == nccl_protocol::simple ? 3.0 : 1.0);
    double const hop = m.ranks == m.nodes ? nccl_net_us[index_of(nccl_algorithm::tree)][p] : net;
    double latency = nccl_base_us[a][p] + (steps - between) * std::max(inside, overhead) + between * hop;
    double shared = bus;
    if (protocol == nccl_protocol::ll) {
        shared = std::min(bus / 2.0, ll_most);
    } else if (protocol == nccl_protocol::ll128) {
        shared = std::min(0.92 * bus, m.channels * nccl_ring_ll128[gpu][nodes]);
    } else if (m.nodes > 1 && static_cast<double>(size.count) / (static_cast<double>(m.channels) * m.ranks) >= 64.0) {
        latency *= m.gpu == nccl_gpu::volta ? 1.9 : 1.4;
    }
    return {latency, shared * m.ranks / steps};
}

}  // namespace detail

/// What is wrong with the description, as a sentence; empty when nothing is.
template <class OnlyWhenCalled = void>
std::string nccl_fault(nccl_machine const& m)
{
    auto const is_rate = [](double rate) { return rate > 0.0 && rate <= std::numeric_limits<double>::max(); };
    if (m.nodes < 1 || m.ranks < 2 || m.ranks % m.nodes != 0 || m.channels < 1) {
        return std::to_string(m.ranks) + " ranks on " + std::to_string(m.nodes) + " nodes with " + std::to_string(m.channels) +
               " channels: expected at least 2 ranks, as many on each node, and at least 1 channel";
    }
    if (!is_rate(m.channel_bandwidth) || (m.nvls_bandwidth != 0.0 && !is_rate(m.nvls_bandwidth))) {
        return "the bandwidth of a channel is above zero and finite, and so is that of NVLS where there is one";
    }
    return {};
}

/// What NCCL expects of that algorithm and protocol. @pre nccl_fault is empty, size >= 0; an NVLS tree is simple and has a bandwidth
constexpr seconds nccl_time(nccl_machine const& m, nccl_algorithm algorithm, nccl_protocol protocol, bytes size)
{
    auto const line = detail::nccl_line_of(m, algorithm, protocol, size);
    return microseconds(line.latency_us + static_cast<double>(size.count) / (1000.0 * line.bandwidth));
}

/// NCCL's choice: the least time. @pre size >= 0
template <class OnlyWhenCalled = void>
result<nccl_choice> nccl_all_reduce(nccl_machine const& m, bytes size)
{
    if (auto fault = nccl_fault(m); !fault.empty()) {
        return failure{fault};
    }
    nccl_choice best{{}, {}, {std::numeric_limits<double>::infinity()}};
    for (auto const algorithm : {nccl_algorithm::tree, nccl_algorithm::ring, nccl_algorithm::nvls_tree}) {
        for (auto const protocol : {nccl_protocol::ll, nccl_protocol::ll128, nccl_protocol::simple}) {
            if (algorithm == nccl_algorithm::nvls_tree && (m.nvls_bandwidth == 0.0 || protocol != nccl_protocol::simple)) {
                continue;
            }
            if (auto const time = nccl_time(m, algorithm, protocol, size); time < best.time) {
                best = {algorithm, protocol, time};
            }
        }
    }
    return best;
}

}  // namespace rheo::inline v0
