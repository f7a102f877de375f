#pragma once
// SPDX-License-Identifier: Apache-2.0

// Nodes that come and go, as logs of clusters and spot markets have them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct node_event {
    whole_milliseconds at;
    node_id node;
    bool comes;  ///< else it goes

    friend constexpr bool operator==(node_event, node_event) = default;
};

struct node_trace {
    std::vector<node_event> events;  ///< in the order of time
    std::vector<std::string> names;  ///< of the nodes

    friend bool operator==(node_trace const&, node_trace const&) = default;
};

/// The end of time: sums with it fit 64 bits.
inline constexpr whole_milliseconds latest_trace_time{std::int64_t{1} << 62};

namespace detail {

/// Who is there, event by event.
struct node_presence {
    std::vector<bool> present;
    whole_milliseconds last{};

    /// What is wrong with the next event, as a sentence that goes on from its place; empty when nothing is.
    template <class OnlyWhenCalled = void>
    std::string take(node_event event, std::string const& name)
    {
        if (event.at < last) {
            return "time " + std::to_string(event.at.count) + " is before that of the event before it, " + std::to_string(last.count) +
                   "; events come in the order of time, from 0 on";
        }
        if (event.at > latest_trace_time) {
            return "time " + std::to_string(event.at.count) + " ms does not fit: it is at most 2^62";
        }
        last = event.at;
        if (rheo::at(event.node) >= present.size()) {
            present.resize(rheo::at(event.node) + 1, false);
        }
        if (present[rheo::at(event.node)] == event.comes) {
            return event.comes ? name + " is added, but it is there; a node comes back after it was removed"
                               : name + " is removed, but it is not there; a node goes once, after it was added";
        }
        present[rheo::at(event.node)] = event.comes;
        return {};
    }
};

}  // namespace detail

/// What is wrong with a trace, as a sentence; empty when nothing is.
template <class OnlyWhenCalled = void>
std::string node_trace_fault(node_trace const& trace)
{
    if (trace.events.empty()) {
        return "a trace has at least one event: it ends with its last one";
    }
    detail::node_presence there;
    for (std::size_t k = 0; k < trace.events.size(); ++k) {
        auto const& event = trace.events[k];
        auto const place = "event " + std::to_string(k) + ": ";
        if (event.node.value < 0 || at(event.node) >= trace.names.size()) {
            return place + "node " + std::to_string(event.node.value) + " has no name";
        }
        if (auto const fault = there.take(event, trace.names[at(event.node)]); !fault.empty()) {
            return place + fault;
        }
    }
    return {};
}

}  // namespace rheo::inline v0
