#pragma once
// SPDX-License-Identifier: Apache-2.0

// Networks as the public tables of ASTRA-sim's figures write them: a topology, a size, a rate and a latency for each dimension.

#include <string>
#include <vector>

#include "rheo/simulate/network/integer_link.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "support/public_vectors.hpp"

namespace test {

inline rheo::network_topology topology_named(std::string const& name)
{
    REQUIRE((name == "Ring" || name == "Switch" || name == "FullyConnected"));
    return name == "Ring" ? rheo::network_topology::ring : name == "Switch" ? rheo::network_topology::switched : rheo::network_topology::full;
}

inline std::vector<rheo::network_level<rheo::integer_link>> astra_network(vector_table const& table, std::string const& line)
{
    auto const topologies = split(table.cell(line, "topology"), '|');
    auto const members = split(table.cell(line, "npus"), '|');
    auto const rates = split(table.cell(line, "GB_per_s"), '|');
    auto const latencies = split(table.cell(line, "latency_ns"), '|');
    std::vector<rheo::network_level<rheo::integer_link>> levels;
    for (std::size_t k = 0; k < topologies.size(); ++k) {
        levels.push_back({std::stoi(members[k]), topology_named(topologies[k]), {std::stod(latencies[k]), rheo::gibibytes_per_second(std::stod(rates[k]))}});
    }
    return levels;
}

}  // namespace test
