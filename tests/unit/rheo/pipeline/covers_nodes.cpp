// SPDX-License-Identifier: Apache-2.0
// Coverage in nodes against the enumeration of choices of templates, damaged nodes and their places.
#include "rheo/pipeline/covers_nodes.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "support/catch.hpp"
#include "two_and_four_stages.hpp"

using namespace rheo;

namespace {

using namespace test;

// Nodes of four devices: one node in two groups, two nodes in four.
using on_one = template_on_nodes<two, 4, position_degree{3, 1}, position_degree{1, 1}>;
using on_two = template_on_nodes<four, 4, position_degree{2, 1}, position_degree{2, 2}, position_degree{3, 1}, position_degree{1, 1}>;
using ready = template_set<on_one, on_two>;
static_assert(on_one::fewest_devices == 2 && on_two::fewest_devices == 3 && fewest_devices_of<ready> == 3);
static_assert(covered_nodes<ready, node_coverage_request{.from = 2, .to = 9, .failures = 1, .devices = 3}>);
static_assert(covers_nodes<ready>({.from = 2, .to = 9, .failures = 1, .devices = 2}).missing_devices == 1);
static_assert(covers_nodes<ready>({.from = 1, .to = 9, .failures = 1, .devices = 3}).nodes.first_uncovered == 1);

using positions = std::vector<position_degree>;

/// All choices of at least so many templates that fill the nodes: the least devices of each place.
void add_choices(std::vector<positions> const& templates, int devices, int nodes, int pipelines, std::vector<int> places, std::size_t from,
                 std::vector<std::vector<int>>& choices)
{
    if (nodes == 0 && pipelines <= 0) {
        choices.push_back(places);
    }
    for (auto t = from; t < templates.size(); ++t) {
        auto const least = least_devices_by_node(array_view<position_degree const>{templates[t]}, devices);
        if (static_cast<int>(least.size()) <= nodes) {
            auto more = places;
            more.insert(more.end(), least.begin(), least.end());
            add_choices(templates, devices, nodes - static_cast<int>(least.size()), pipelines - 1, more, t, choices);
        }
    }
}

/// Whether nodes with so many devices can take places with these needs, each way to deal them tried.
bool can_take(std::vector<int> const& needs, std::vector<int> left)
{
    std::sort(left.begin(), left.end());
    do {
        bool all = true;
        for (std::size_t i = 0; i < needs.size(); ++i) {
            all = all && left[i] >= needs[i];
        }
        if (all) {
            return true;
        }
    } while (std::next_permutation(left.begin(), left.end()));
    return false;
}

positions random_template(std::mt19937& draw, int devices, int nodes)
{
    positions made;
    for (int node = 0; node < nodes; ++node) {
        for (int free = devices; free > 0;) {
            auto const degree = 1 + static_cast<int>(draw() % static_cast<unsigned>(free));
            made.push_back({degree, 1 + static_cast<int>(draw() % static_cast<unsigned>(degree))});
            free -= degree;
        }
    }
    return made;
}

}  // namespace

TEST_CASE("covers_nodes: nodes of d_min devices count as whole ones")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 60; ++round) {
        int const devices = 2 + round % 3;
        std::vector<positions> templates;
        std::vector<int> sizes;
        int d_min = 0;
        for (int nodes = 1; nodes <= 3; ++nodes) {
            if (nodes == 1 + round % 2 || draw() % 2 == 0) {
                templates.push_back(random_template(draw, devices, nodes));
                sizes.push_back(nodes);
                REQUIRE(nodes_filled(templates.back(), devices) == nodes);
                d_min = std::max(d_min, least_devices(array_view<position_degree const>{templates.back()}, devices));
            }
        }
        REQUIRE(d_min <= devices);
        for (int nodes = 1; nodes <= 5; ++nodes) {
            for (int failures = 0; failures <= 1; ++failures) {
                std::vector<std::vector<int>> choices;
                add_choices(templates, devices, nodes, failures + 1, {}, 0, choices);
                auto const verdict = covers_nodes(sizes, d_min, {.from = nodes, .to = nodes, .failures = failures, .devices = d_min});
                REQUIRE(static_cast<bool>(verdict) == !choices.empty());
                for (int damage = 0; damage < 12 && verdict; ++damage) {  // of any nodes, by any number of devices down to d_min
                    std::vector<int> left;
                    for (int node = 0; node < nodes; ++node) {
                        left.push_back(damage == 0 ? d_min : d_min + static_cast<int>(draw() % static_cast<unsigned>(devices - d_min + 1)));
                    }
                    CHECK(std::all_of(choices.begin(), choices.end(), [&](auto const& needs) { return can_take(needs, left); }));
                }
            }
        }
        bool const is_tight = std::any_of(templates.begin(), templates.end(), [&](positions const& one) {  // one device fewer is too few for some template
            auto const needs = least_devices_by_node(array_view<position_degree const>{one}, devices);
            return !can_take(needs, std::vector<int>(needs.size(), d_min - 1));
        });
        CHECK(is_tight);
    }
}

TEST_CASE("covers_nodes: groups of a damaged node shrink to its devices")
{
    std::mt19937 draw{4};
    for (int round = 0; round < 300; ++round) {
        int const devices = 2 + round % 7;
        auto const node = random_template(draw, devices, 1);
        auto const whole = array_view<position_degree const>{node};
        for (int left = least_devices(whole, devices); left <= devices; ++left) {
            auto const degrees = degrees_on_damaged_node(whole, left);
            REQUIRE(std::accumulate(degrees.begin(), degrees.end(), 0) == left);
            for (std::size_t p = 0; p < node.size(); ++p) {
                REQUIRE(degrees[p] >= node[p].least);
                REQUIRE(degrees[p] <= node[p].degree);
            }
        }
        CHECK_THROWS_AS(degrees_on_damaged_node(whole, least_devices(whole, devices) - 1), precondition_error);
    }
}

TEST_CASE("covers_nodes: what fills no nodes; verdicts as sentences")
{
    CHECK(nodes_filled(positions{{2, 1}, {3, 1}}, 4) == 0);  // on two nodes
    CHECK(nodes_filled(positions{{2, 1}, {1, 1}}, 4) == 0);  // not full
    CHECK(nodes_filled(positions{{2, 3}, {2, 1}}, 4) == 0);  // below its least
    CHECK(nodes_filled(positions{{4, 1}, {1, 1}, {3, 1}}, 4) == 2);
    CHECK(to_string(covers_nodes<ready>({.from = 2, .to = 9, .failures = 1, .devices = 4})).empty());
    CHECK(to_string(covers_nodes<ready>({.from = 2, .to = 9, .failures = 1, .devices = 2})) ==
          "a node needs 1 device more to take the place of any node of these templates");
    CHECK(to_string(covers_nodes<ready>({.from = 1, .to = 9, .failures = 1, .devices = 4})) ==
          "1 node cannot be covered by at least 2 pipelines of these templates");
}
