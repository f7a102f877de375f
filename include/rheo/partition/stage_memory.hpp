#pragma once
// SPDX-License-Identifier: Apache-2.0

// A rule for partitions: a stage must fit into the memory of its device. What a stage keeps for good is
// the sum over its layers; what it keeps per microbatch is multiplied by the microbatches in flight, and
// that depends on the schedule: under 1F1B as many as there are stages from it to the last, under GPipe all.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct layer_memory {
    bytes persistent;      ///< parameters, gradients, optimizer
    bytes per_microbatch;  ///< activations between forward and backward

    friend constexpr bool operator==(layer_memory, layer_memory) = default;
};

/// Microbatches that a stage has in flight: the stages from it to the last, within these bounds.
struct in_flight {
    int least;
    int most;

    friend constexpr bool operator==(in_flight, in_flight) = default;
};

constexpr in_flight in_flight_one_f_one_b(int microbatches) { return {0, microbatches}; }
constexpr in_flight in_flight_gpipe(int microbatches) { return {microbatches, microbatches}; }

/// The rule; made by stage_memory_limit.
struct stage_memory {
    std::vector<std::int64_t> persistent_before;  ///< of the layers before each layer
    std::vector<std::int64_t> per_microbatch_before;
    in_flight flight;
    bytes limit;

    constexpr bytes needed(layer_span span, int stages_left) const
    {
        auto const microbatches = std::max(flight.least, std::min(stages_left, flight.most));
        auto const begin = at(span.begin);
        auto const end = at(span.end);
        return {persistent_before[end] - persistent_before[begin] + microbatches * (per_microbatch_before[end] - per_microbatch_before[begin])};
    }

    constexpr bool operator()(layer_span span, int stages_left) const { return needed(span, stages_left) <= limit; }
};

/// The rule that a stage takes at most `limit`. A tensor that two layers share counts in both.
template <class OnlyWhenCalled = void>
constexpr stage_memory stage_memory_limit(array_view<layer_memory const> layers, in_flight flight, bytes limit)
{
    stage_memory rule{{0}, {0}, flight, limit};
    for (std::size_t l = 0; l < layers.size(); ++l) {
        rule.persistent_before.push_back(rule.persistent_before[l] + layers[l].persistent.count);
        rule.per_microbatch_before.push_back(rule.per_microbatch_before[l] + layers[l].per_microbatch.count);
    }
    return rule;
}

}  // namespace rheo::inline v0
