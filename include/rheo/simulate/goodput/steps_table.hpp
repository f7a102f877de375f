#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a step takes on so many nodes, measured or modelled elsewhere: all that a replay of joins and losses has to know of a model.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// No step takes longer: a product of two of them fits 64 bits.
inline constexpr whole_milliseconds longest_table_step{std::int64_t{1} << 31};

struct steps_table {
    int fewest = 1;                         ///< nodes: with fewer nothing runs
    std::vector<whole_milliseconds> times;  ///< on fewest, fewest + 1, ... nodes; with more as with the most
    double samples_per_step = 0.0;

    friend bool operator==(steps_table const&, steps_table const&) = default;
};

/// A step on so many nodes. @pre at least the fewest
constexpr whole_milliseconds step_time(steps_table const& table, int nodes)
{
    expects(nodes >= table.fewest && !table.times.empty(), "a step runs on at least the fewest nodes of its table");
    return table.times[std::min(static_cast<std::size_t>(nodes - table.fewest), table.times.size() - 1)];
}

/// What is wrong with a table, as a sentence; empty when nothing is.
template <class OnlyWhenCalled = void>
std::string steps_table_fault(steps_table const& table)
{
    if (table.times.empty() || table.fewest < 1) {
        return "a table of steps has at least one row, and at least one node in it";
    }
    for (std::size_t k = 0; k < table.times.size(); ++k) {
        if (table.times[k].count < 1 || table.times[k] > longest_table_step) {
            return "a step on " + std::to_string(table.fewest + static_cast<int>(k)) + " nodes takes " + std::to_string(table.times[k].count) +
                   " ms, but 1 to 2^31 ms were expected";
        }
    }
    return {};
}

}  // namespace rheo::inline v0
