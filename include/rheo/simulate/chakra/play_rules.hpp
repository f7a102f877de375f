#pragma once
// SPDX-License-Identifier: Apache-2.0

// By which rules execution traces are played on a network: those of their consumers, so that times can be compared to the nanosecond, or
// rheo's own, in which everything that is ready goes at once.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/simulate/collectives/collective.hpp"
#include "rheo/simulate/collectives/message_order.hpp"
#include "rheo/simulate/network/integer_link.hpp"
#include "rheo/simulate/network/model_time.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/topology/cluster.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// @tparam Model of the network (network_model.hpp)
template <class Model>
struct chakra_play_rules {
    /// Per rank one message or collective under way at once, by ascending id; receives are free. A message enters the network when its send begins.
    /// Computations take their duration, at least a nanosecond, and a broadcast takes its own. Else all that is ready is under way, and
    /// a message enters the network when its send and its receive have begun.
    bool of_consumers = false;
    std::optional<collective_form> form{};  ///< of collectives that have it; none: see form_of()
    int chunks = 1;
    int active_chunks = 1;
    typename Model::time handover{};
    typename Model::time group_handover{};         ///< in groups that are not all ranks
    std::optional<typename Model::rate> memory{};  ///< at which what came is added; none: in no time
    std::vector<device_description> devices{};     ///< by rank, for computations without a duration; none: they take no time
    /// Links of ranks that are not those of their levels; they outlive the playing. None: all are.
    rank_links<typename Model::link> const* links = nullptr;
    bool joins_equal_ranks = true;  ///< plays ranks that do the same up to their numbers once, where no links differ
    bool keeps_spans = false;       ///< begin and end of each step, for pictures
};

/// What a collective of a trace is on the network. A barrier is a sum of nothing.
constexpr collective operation_of(chakra_collective what)
{
    switch (what) {
    case chakra_collective::all_gather: return collective::all_gather;
    case chakra_collective::reduce_scatter:
    case chakra_collective::reduce_scatter_block: return collective::reduce_scatter;
    case chakra_collective::all_to_all: return collective::all_to_all;
    case chakra_collective::broadcast: return collective::broadcast;
    case chakra_collective::reduce: return collective::reduce;
    case chakra_collective::gather: return collective::gather;
    case chakra_collective::scatter: return collective::scatter;
    default: return collective::all_reduce;
    }
}

/// The form of a collective: the one that was asked for where it has it, else a ring, for an all-to-all direct messages, and a tree for what has
/// a root and for barriers. Consumers play rings; another form they have in groups of all ranks alone.
template <class Model>
constexpr collective_form form_of(chakra_collective what, chakra_play_rules<Model> const& rules, bool is_all_ranks)
{
    auto const operation = operation_of(what);
    if (what == chakra_collective::barrier || is_tree_only(operation)) {
        return collective_form::tree;
    }
    if (rules.form && has_form(operation, *rules.form) && (is_all_ranks || !rules.of_consumers)) {
        return *rules.form;
    }
    bool const is_tree = operation == collective::broadcast;
    bool const is_direct = operation == collective::all_to_all && !rules.of_consumers;
    return is_tree ? collective_form::tree : is_direct ? collective_form::direct : collective_form::ring;
}

namespace detail {

template <class Model>
typename Model::time model_time_of_micros(std::uint64_t micros)
{
    if constexpr (has_whole_time<Model>) {
        constexpr auto most = static_cast<std::uint64_t>(endless_nanoseconds.count) / 1000;
        return micros > most ? endless_nanoseconds : whole_nanoseconds{static_cast<std::int64_t>(micros * 1000)};
    } else {
        return microseconds(static_cast<double>(micros));
    }
}

}  // namespace detail

/// How long a computation, or a load or store of memory, takes: its duration, to the nanosecond where rheo measured it; where it has none, what the device needs to compute or to
/// move its bytes, whichever is longer (roofline: Williams, Waterman, Patterson 2009).
template <class Model>
typename Model::time computation_time(chakra_step const& step, std::size_t rank, chakra_play_rules<Model> const& rules)
{
    auto const measured = detail::model_time_of_micros<Model>(step.duration_micros);
    if (rules.of_consumers) {
        return std::max(measured, detail::model_time<Model>(nanoseconds(1.0)));
    }
    if (step.exact_ns > 0) {
        return detail::model_time<Model>(nanoseconds(static_cast<double>(step.exact_ns)));
    }
    if (step.duration_micros > 0 || rank >= rules.devices.size() || step.on_host) {
        return measured;
    }
    auto const& device = rules.devices[rank];
    return detail::model_time<Model>(std::max(flops{step.operations} / device.compute, bytes{step.bytes} / device.traffic));
}

}  // namespace rheo::inline v0
