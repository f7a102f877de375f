#pragma once
// SPDX-License-Identifier: Apache-2.0

// Traces of nodes as text: rows `time in ms, add|remove, node` in the order of time, without a header, as the traces of Bamboo and Oobleck
// are. Comments begin with #. A fault is one sentence with file and line.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/simulate/goodput/node_trace.hpp"
#include "rheo/simulate/goodput/steps_table_csv.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// Reads a trace; `name` is the file's, for the sentence. Cost: linear, log of the nodes.
template <class OnlyWhenCalled = void>
result<node_trace> parse_node_trace(std::string_view text, std::string_view name)
{
    line_reader lines{text};
    std::string_view line;
    node_trace trace;
    std::map<std::string, node_id, std::less<>> nodes;
    detail::node_presence there;
    while (detail::next_row(lines, line)) {
        auto const cells = cells_of(line);
        auto const refused = [&](std::string const& why) { return detail::at_line(name, lines.number, why); };
        if (cells.size() != 3) {
            return refused(std::to_string(cells.size()) + " cells, but 3 were expected: time in ms,add or remove,node");
        }
        node_event event{{}, {}, cells[1] == "add"};
        if (!read_number(cells[0], event.at.count) || event.at.count < 0) {
            return refused("the time is " + in_quotes(cells[0]) + ", but a whole number of milliseconds from 0 on was expected");
        }
        if (!event.comes && cells[1] != "remove") {
            return refused("the event is " + in_quotes(cells[1]) + ", but add or remove was expected");
        }
        if (cells[2].empty()) {
            return refused("the node has no name");
        }
        auto const [place, is_first] = nodes.emplace(cells[2], node_id{static_cast<std::int32_t>(trace.names.size())});
        if (is_first) {
            trace.names.emplace_back(cells[2]);
        }
        event.node = place->second;
        if (auto const fault = there.take(event, in_quotes(cells[2])); !fault.empty()) {
            return refused(fault);
        }
        trace.events.push_back(event);
    }
    if (trace.events.empty()) {
        return detail::at_line(name, lines.number, "a trace has at least one event: it ends with its last one");
    }
    return trace;
}

}  // namespace rheo::inline v0
