#pragma once
// SPDX-License-Identifier: Apache-2.0

// What keeps execution traces from being played on a network, found before the start: too few devices, collectives without the form that was asked for,
// messages and collectives that do not meet.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "rheo/simulate/chakra/play_rules.hpp"
#include "rheo/simulate/collectives/chunks.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/trace/chakra/check_traces.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class Model>
std::string collective_step_fault(chakra_step const& step, std::size_t ranks, std::size_t members, chakra_play_rules<Model> const& rules)
{
    auto const most_bytes = (std::int64_t{1} << 62) / static_cast<std::int64_t>(ranks);  // all that is gathered fits
    if (step.bytes > most_bytes) {
        return " has " + std::to_string(step.bytes) + " bytes; expected at most 2^62 over all ranks";
    }
    auto const form = form_of(step.collective, rules, members == ranks);
    if (form == collective_form::halving_doubling && !std::has_single_bit(members)) {
        return " is of " + std::to_string(members) + " ranks; halving_doubling needs a power of two of them";
    }
    auto const chunks = cut_into_chunks(operation_of(step.collective), {step.bytes}, rules.chunks, static_cast<int>(ranks)).count;
    if (chunks > (std::int64_t{1} << 24) / static_cast<std::int64_t>(members)) {
        return " has " + std::to_string(chunks) + " chunks over " + std::to_string(members) + " ranks; it is too large to be played";
    }
    return {};
}

}  // namespace detail

/// Why the traces cannot be played; empty when they can. @pre groups of the traces as with_all_ranks has them, members are ranks
template <class Model>
std::string chakra_play_fault(chakra_trace_set const& traces, array_view<network_level<typename Model::link> const> levels,
                              chakra_play_rules<Model> const& rules)
{
    if (auto fault = network_fault(levels); !fault.empty()) {
        return fault;
    }
    auto const ranks = traces.ranks.size();
    if (ranks == 0 || ranks > static_cast<std::size_t>(ranks_of(levels))) {
        return "the traces are of " + std::to_string(ranks) + " ranks, the cluster has " + std::to_string(ranks_of(levels)) +
               " devices; expected a device for each rank, and at least one";
    }
    constexpr int most_chunks = 1 << 20;
    bool const has_times = rules.handover >= typename Model::time{} && Model::fits(rules.handover) && rules.group_handover >= typename Model::time{} &&
                           Model::fits(rules.group_handover) &&
                           (!rules.memory || (rules.memory->count > 0.0 && rules.memory->count <= std::numeric_limits<double>::max()));
    if (rules.chunks < 1 || rules.chunks > most_chunks || rules.active_chunks < 1 || !has_times || rules.form == collective_form::slice_owner) {
        return "collectives of traces have 1 to 2^20 chunks, at least 1 at once, finite times of at least 0, a rate of memory above 0, and no slice_owner form";
    }
    for (auto const& sentence : {check_messages(traces), check_collectives(traces)}) {
        if (!sentence.empty()) {
            return sentence;
        }
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (auto const& step : traces.ranks[rank].steps) {
            if (step.type == chakra_node_type::comm_coll) {
                auto const fault = detail::collective_step_fault(step, ranks, find_group(traces.groups, step.group)->ranks.size(), rules);
                if (!fault.empty()) {
                    return label_of(step, rank) + fault;
                }
            }
        }
    }
    return {};
}

}  // namespace rheo::inline v0
