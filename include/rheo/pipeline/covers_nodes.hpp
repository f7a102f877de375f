#pragma once
// SPDX-License-Identifier: Apache-2.0

// The coverage theorem in nodes. Positions of templates have degrees, the ranks of their groups, and a node takes consecutive positions whose degrees add up
// to its devices. A node that has lost devices takes them too, with smaller groups, as long as each has the ranks that its layers need. So with d_min, the
// most that the positions of any node of any template need at least, nodes of d_min or more devices are covered exactly as whole ones are (covers.hpp).

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "rheo/pipeline/covers.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct position_degree {
    int degree;     ///< ranks of the group
    int least = 1;  ///< the fewest with which each has the memory for its part, the shares as even as can be

    friend constexpr bool operator==(position_degree, position_degree) = default;
};

/// How many nodes of so many devices the positions fill, one after the other; 0: a position lies on two nodes, the last node is not full, or a degree is
/// below the least.
constexpr int nodes_filled(array_view<position_degree const> positions, int devices)
{
    int nodes = 0, free = 0;
    for (auto const& position : positions) {
        if (free == 0) {
            free = devices;
            ++nodes;
        }
        if (position.least < 1 || position.degree < position.least || position.degree > free) {
            return 0;
        }
        free -= position.degree;
    }
    return free == 0 ? nodes : 0;
}

/// Node -> the fewest devices with which it can take its positions. @pre nodes_filled(positions, devices) > 0
template <class OnlyWhenCalled = void>
constexpr std::vector<int> least_devices_by_node(array_view<position_degree const> positions, int devices)
{
    expects(nodes_filled(positions, devices) > 0, "the positions of a template fill whole nodes");
    std::vector<int> least;
    int free = 0;
    for (auto const& position : positions) {
        if (free == 0) {
            free = devices;
            least.push_back(0);
        }
        free -= position.degree;
        least.back() += position.least;
    }
    return least;
}

/// d_min of a template: a node with as many devices can take the place of any of its nodes. @pre nodes_filled(positions, devices) > 0
template <class OnlyWhenCalled = void>
constexpr int least_devices(array_view<position_degree const> positions, int devices)
{
    auto const by_node = least_devices_by_node(positions, devices);
    return *std::max_element(by_node.begin(), by_node.end());
}

/// The degrees of a node's positions when it has lost devices: the larger ones shrink first, none below its least.
/// @pre the positions are those of one node, and `left` is between the sum of their least and that of their degrees
template <class OnlyWhenCalled = void>
constexpr std::vector<int> degrees_on_damaged_node(array_view<position_degree const> positions, int left)
{
    std::vector<int> degrees;
    int sum = 0, least = 0;
    for (auto const& position : positions) {
        degrees.push_back(position.degree);
        sum += position.degree;
        least += position.least;
    }
    expects(least <= left && left <= sum, "a damaged node has the devices that its positions need, and no more than a whole one");
    for (; sum > left; --sum) {
        std::size_t largest = positions.size();
        for (std::size_t p = 0; p < positions.size(); ++p) {
            if (degrees[p] > positions[p].least && (largest == positions.size() || degrees[p] > degrees[largest])) {
                largest = p;
            }
        }
        --degrees[largest];
    }
    return degrees;
}

namespace detail {

template <bool Fills>
struct nodes_filled_check {
    static_assert(Fills,
                  "rheo: the degrees of a template's positions must fill whole nodes one after the other, each position on one node, none below its least");
    static constexpr bool passed = true;
};

template <int Positions, int OfTheTemplate>
struct degrees_of_template_check {
    static_assert(Positions == OfTheTemplate, "rheo: a template on nodes names the degree of each of its positions");
    static constexpr bool passed = true;
};

}  // namespace detail

/// A template whose positions have degrees, on nodes of so many devices, as a type. Degrees that do not fill whole nodes do not compile.
template <class Template, int Devices, position_degree... Positions>
struct template_on_nodes {
    using template_type = Template;

    static constexpr int devices = Devices;
    static constexpr std::array<position_degree, sizeof...(Positions)> positions{Positions...};
    static constexpr int size = nodes_filled(positions, Devices);  ///< in nodes: a template_set of these is a set in nodes

    static_assert(detail::degrees_of_template_check<static_cast<int>(sizeof...(Positions)), Template::size>::passed);
    static_assert(detail::nodes_filled_check<(size > 0)>::passed);

    static constexpr int fewest_devices = least_devices(positions, Devices);
};

/// d_min of a set: a node with as many devices can take the place of any node of any of its templates.
template <class Set>
inline constexpr int fewest_devices_of = 0;
template <class... Templates>
inline constexpr int fewest_devices_of<template_set<Templates...>> = std::max({Templates::fewest_devices...});

struct node_coverage_request {
    int from;      ///< fewest nodes
    int to;        ///< most nodes, inclusive
    int failures;  ///< f: at least f + 1 pipelines
    int devices;   ///< that each node has at least, damaged ones too

    friend constexpr bool operator==(node_coverage_request, node_coverage_request) = default;
};

struct node_coverage_verdict {
    coverage_verdict nodes{};  ///< of whole nodes
    int missing_devices = 0;   ///< by which the nodes are below d_min

    friend constexpr bool operator==(node_coverage_verdict const&, node_coverage_verdict const&) = default;
    constexpr explicit operator bool() const { return nodes && missing_devices == 0; }
};

/// Whether any number of nodes in the range, each with at least so many devices, is covered by at least f + 1 pipelines. Cost: that of covers; damage adds
/// O(1). @pre sizes in nodes ascend strictly from 1; 1 <= from <= to; failures >= 0  @param fewest_devices d_min of the templates
template <class OnlyWhenCalled = void>
constexpr node_coverage_verdict covers_nodes(array_view<int const> sizes, int fewest_devices, node_coverage_request request)
{
    return {covers(sizes, {request.from, request.to, request.failures}), std::max(0, fewest_devices - request.devices)};
}

/// The same for a template_set of templates on nodes.
template <class Set>
constexpr node_coverage_verdict covers_nodes(node_coverage_request request)
{
    return covers_nodes(array_view<int const>{Set::sizes}, fewest_devices_of<Set>, request);
}

/// The verdict as a sentence; empty when all is covered.
inline std::string to_string(node_coverage_verdict verdict)
{
    if (!verdict.nodes) {
        return std::to_string(verdict.nodes.first_uncovered) + (verdict.nodes.first_uncovered == 1 ? " node" : " nodes") + " cannot be covered by at least " +
               std::to_string(verdict.nodes.pipelines) + " pipelines of these templates";
    }
    return verdict ? std::string{}
                   : "a node needs " + std::to_string(verdict.missing_devices) + (verdict.missing_devices == 1 ? " device" : " devices") +
                         " more to take the place of any node of these templates";
}

namespace detail {

template <int MissingDevices>
struct devices_of_node_check {
    static_assert(MissingDevices == 0, "rheo: a node needs this many devices more (the check's parameter) to take the place of any node of these templates");
    static constexpr bool passed = true;
};

template <node_coverage_verdict Verdict>
constexpr bool is_node_coverage()
{
    bool const has_nodes = coverage_passed<Verdict.nodes>;
    bool const has_devices = devices_of_node_check<Verdict.missing_devices>::passed;
    return has_nodes && has_devices;
}

}  // namespace detail

/// `static_assert(covered_nodes<set, node_coverage_request{.from = 2, .to = 8, .failures = 1, .devices = 6}>)`: as covers_nodes. When it fails, the compiler's
/// message says the first number of nodes that is not covered, or the devices that a node lacks.
template <class Set, node_coverage_request Request>
inline constexpr bool covered_nodes = detail::is_node_coverage<covers_nodes<Set>(Request)>();

}  // namespace rheo::inline v0
