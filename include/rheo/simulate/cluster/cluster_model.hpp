#pragma once
// SPDX-License-Identifier: Apache-2.0

// A cluster as it is described to simulations of whole jobs: its devices, the levels of its network from the inside out, the nodes that are not
// like the others, its storage, and how long a recovery takes. The members of the innermost level are a node. Planning counts with the
// coarser cluster_description (topology/cluster.hpp).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "rheo/simulate/cluster/recovery_times.hpp"
#include "rheo/simulate/network/fitted.hpp"
#include "rheo/simulate/network/fitted_path.hpp"
#include "rheo/simulate/network/integer_link.hpp"
#include "rheo/simulate/network/nccl.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/topology/cluster.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct cluster_device {
    device_description description;
    watts computing{};
    watts waiting{};

    friend constexpr bool operator==(cluster_device, cluster_device) = default;
};

struct cluster_level {
    std::string name;  ///< of its groups: node, rack, ...
    network_level<> network;
    std::vector<fitted_line> lines{};  ///< of measured messages (fitted_path.hpp); none: not measured

    friend bool operator==(cluster_level const&, cluster_level const&) = default;
};

/// Nodes that have another device, or other links.
struct node_difference {
    std::int32_t first;  ///< node
    std::int32_t last;
    cluster_device device;
    std::vector<std::optional<modelled_link>> links;  ///< by level, as far as they differ; fewer than levels: the rest does not

    friend bool operator==(node_difference const&, node_difference const&) = default;
};

/// Where checkpoints go.
struct cluster_storage {
    bytes_per_second read;  ///< of all nodes together
    bytes_per_second write;
    std::optional<bytes_per_second> node_read{};  ///< the most of one node; none: no limit of its own
    std::optional<bytes_per_second> node_write{};

    friend constexpr bool operator==(cluster_storage const&, cluster_storage const&) = default;
};

struct cluster_model {
    cluster_device device;
    std::vector<cluster_level> levels;       ///< from the inside out
    std::vector<node_difference> different;  ///< ranges ascend
    std::optional<cluster_storage> storage;
    std::optional<recovery_times> recovery;
    std::optional<nccl_machine> nccl{};  ///< what NCCL finds on it; ranks and nodes are those of a reduction

    friend bool operator==(cluster_model const&, cluster_model const&) = default;
};

/// A link for models in whole nanoseconds. A latency is taken to the nearest picosecond: seconds hold no round number of nanoseconds.
inline integer_link integer_link_of(modelled_link link) { return {std::round(link.latency.count * 1e12) / 1e3, {link.bandwidth.count / 1e9}}; }

/// A link as a network model counts. @tparam Link modelled_link, integer_link or fitted_path
template <class Link>
Link link_as(modelled_link link)
{
    if constexpr (std::is_same_v<Link, integer_link>) {
        return integer_link_of(link);
    } else {
        return {link};
    }
}

/// The levels of the network as a network model counts.
template <class Link = modelled_link>
std::vector<network_level<Link>> network_of(cluster_model const& cluster)
{
    std::vector<network_level<Link>> levels;
    for (auto const& level : cluster.levels) {
        auto const& n = level.network;
        levels.push_back({n.members, n.topology, link_as<Link>(n.link), n.links_per_member});
        if constexpr (std::is_same_v<Link, fitted_path>) {
            levels.back().link.lines = level.lines;
        }
    }
    return levels;
}

/// @pre cluster_fault is empty
inline int devices_of(cluster_model const& cluster)
{
    int devices = 1;
    for (auto const& level : cluster.levels) {
        devices *= level.network.members;
    }
    return devices;
}

/// @pre cluster_fault is empty
inline int nodes_of(cluster_model const& cluster) { return devices_of(cluster) / cluster.levels.front().network.members; }

/// The difference that a node has; none: null.
inline node_difference const* difference_of(cluster_model const& cluster, std::int32_t node)
{
    auto const found =
        std::upper_bound(cluster.different.begin(), cluster.different.end(), node, [](std::int32_t n, node_difference const& d) { return n < d.first; });
    return found != cluster.different.begin() && node <= (found - 1)->last ? &*(found - 1) : nullptr;
}

/// @pre cluster_fault is empty, a device of the cluster
inline cluster_device const& device_of(cluster_model const& cluster, rank_id rank)
{
    auto const* const different = difference_of(cluster, rank.value / cluster.levels.front().network.members);
    return different == nullptr ? cluster.device : different->device;
}

inline bool has_different_links(cluster_model const& cluster)
{
    return std::any_of(cluster.different.begin(), cluster.different.end(),
                       [](auto const& d) { return std::any_of(d.links.begin(), d.links.end(), [](auto const& link) { return link.has_value(); }); });
}

namespace detail {

constexpr bool is_finite_rate(double rate) { return rate > 0.0 && rate <= std::numeric_limits<double>::max(); }
constexpr bool is_finite_amount(double amount) { return amount >= 0.0 && amount <= std::numeric_limits<double>::max(); }

constexpr bool is_usable_device(cluster_device const& d)
{
    return is_finite_rate(d.description.compute.count) && is_finite_rate(d.description.traffic.count) && d.description.memory.count > 0 &&
           is_finite_amount(d.computing.count) && is_finite_amount(d.waiting.count);
}

}  // namespace detail

/// What is wrong with a cluster for `devices` devices (0: for any number), as a sentence; empty when nothing is.
template <class OnlyWhenCalled = void>
std::string cluster_fault(cluster_model const& cluster, std::int64_t devices = 0)
{
    if (!detail::is_usable_device(cluster.device)) {
        return "the device of the cluster cannot be: rates and memory are above zero, powers at least zero, and all are finite";
    }
    if (auto fault = network_fault(array_view<network_level<> const>{network_of(cluster)}, devices); !fault.empty()) {
        return fault;
    }
    for (auto const& level : cluster.levels) {
        if (!is_usable_link(fitted_path{level.network.link, level.lines})) {
            return "the measured messages of the level " + level.name + " take times that cannot be: expected finite ones of at least 0";
        }
    }
    if (cluster.nccl) {
        auto machine = *cluster.nccl;
        machine.ranks = 2;
        machine.nodes = 1;
        if (auto fault = nccl_fault(machine); !fault.empty()) {
            return fault;
        }
    }
    std::int32_t free = 0;
    for (auto const& d : cluster.different) {
        auto const range = "the nodes " + std::to_string(d.first) + " to " + std::to_string(d.last);
        if (d.first < free || d.last < d.first || d.last >= nodes_of(cluster)) {
            return range + " are no range of their own: expected ascending ranges, without a node twice, of nodes below " + std::to_string(nodes_of(cluster));
        }
        if (!detail::is_usable_device(d.device) || d.links.size() > cluster.levels.size() ||
            std::any_of(d.links.begin(), d.links.end(), [](auto const& link) { return link && !is_usable_link(*link); })) {
            return range + " have a device or a link that cannot be: rates are above zero, latencies at least zero, and all are finite";
        }
        free = d.last + 1;
    }
    return {};
}

}  // namespace rheo::inline v0
