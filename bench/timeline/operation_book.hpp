#pragma once
// SPDX-License-Identifier: Apache-2.0

// What operations and messages take in a turn: a stage of the same layers on the same rank has the same operations in every
// family that has it, so families are foretold from the same times as far as they have the same stages.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "rheo/schedule/cost.hpp"

namespace bench {

/// Whose operations: those of these layers, on that rank, on so many slices of a microbatch.
struct stage_on_rank {
    int first_layer = 0;
    int end_layer = 0;
    int rank = 0;
    int slices = 1;

    friend auto operator<=>(stage_on_rank const&, stage_on_rank const&) = default;
};

/// A mean that grows; 0 of nothing.
struct mean_time {
    double sum = 0;  ///< seconds
    int count = 0;

    void add(double seconds)
    {
        sum += seconds;
        ++count;
    }
    rheo::seconds value() const { return {count > 0 ? sum / count : 0}; }
};

struct operation_book {
    std::map<stage_on_rank, std::array<mean_time, 4>> operations;  ///< forward, backward, input gradient, weight gradient
    std::map<std::int64_t, mean_time> messages;                    ///< by their bytes

    /// Notes what was measured: times of 0 were not.
    void add(stage_on_rank const& where, rheo::stage_cost const& took)
    {
        double const each[] = {took.forward.count, took.backward.count, took.input_gradient.count, took.weight_gradient.count};
        for (std::size_t k = 0; k < std::size(each); ++k) {
            if (each[k] > 0) {
                operations[where][k].add(each[k]);
            }
        }
    }

    /// What they took, 0 where that was not measured; transfers are left at 0. @pre something was
    rheo::stage_cost at(stage_on_rank const& where) const
    {
        auto const& each = operations.at(where);
        return {each[0].value(), each[1].value(), each[2].value(), each[3].value(), {}, {}};
    }

    /// A message of that size. @pre one was measured
    rheo::seconds at(rheo::bytes size) const { return messages.at(size.count).value(); }
};

}  // namespace bench
