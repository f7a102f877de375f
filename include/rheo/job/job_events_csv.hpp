#pragma once
// SPDX-License-Identifier: Apache-2.0

// Events of a job as text: a header line `time_s,event,what,value`, then rows in the order of time with lose, return, drain, slow, link or well, and
// rank:5 or node:3; `value` is the factor of slow or link, else empty. Or a log of nodes that come and go (goodput/node_trace_csv.hpp): then the job starts without ranks.
// Lines that begin with # are comments. A list with a fault is rejected as a whole, with a sentence that names file and line.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rheo/job/job_event.hpp"
#include "rheo/simulate/goodput/node_trace_csv.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct listed_events {
    std::vector<job_event> events;  ///< in the order of time
    bool begins_with_ranks = true;  ///< else all come by events

    friend bool operator==(listed_events const&, listed_events const&) = default;
};

namespace detail {

/// Reads rank:5 or node:3; false when it is neither.
template <class OnlyWhenCalled = void>
bool read_subject(std::string_view cell, int ranks, int node_size, job_event& event)
{
    auto const colon = cell.find(':');
    auto const kind = cell.substr(0, colon);
    std::int32_t number = 0;
    if (colon == cell.npos || !read_number(cell.substr(colon + 1), number) || number < 0 || (kind != "rank" && kind != "node")) {
        return false;
    }
    bool const is_node = kind == "node";
    if (number > ranks) {
        event.first = event.last = rank_id{ranks};  // none of them: the presence says so
        return true;
    }
    event.first = rank_id{is_node ? number * node_size : number};
    event.last = rank_id{is_node ? std::max(event.first.value, std::min(event.first.value + node_size, ranks) - 1) : number};
    return true;
}

/// What is wrong with a row, empty when nothing is.
template <class OnlyWhenCalled = void>
std::string read_job_event(std::vector<std::string_view> const& cells, int ranks, int node_size, job_event& event)
{
    if (cells.size() < 3 || cells.size() > 4) {
        return std::to_string(cells.size()) + " cells, but 3 or 4 were expected: time_s,event,what,value";
    }
    double time = 0;
    if (!read_number(cells[0], time) || !(time >= 0.0 && time * 1e9 < static_cast<double>(latest_job_time.count))) {
        return "the time is " + in_quotes(cells[0]) + ", but a number of seconds from 0 to 4611686018 was expected";
    }
    event.at = {in_whole_nanoseconds(seconds{time})};
    auto const named = std::find(job_event_names.begin(), job_event_names.end(), cells[1]);
    if (named == job_event_names.end()) {
        return "the event is " + in_quotes(cells[1]) + ", but lose, return, drain, slow, link or well was expected";
    }
    event.kind = static_cast<job_event_kind>(named - job_event_names.begin());
    if (!read_subject(cells[2], ranks, node_size, event)) {
        return "what it happens to is " + in_quotes(cells[2]) + ", but rank:NUMBER or node:NUMBER was expected";
    }
    auto const value = cells.size() == 4 ? cells[3] : std::string_view{};
    event.value = 1.0;
    if (event.kind == job_event_kind::slow || event.kind == job_event_kind::link) {
        if (!read_number(value, event.value) || !(event.value >= 1.0 && event.value <= 1e6)) {
            return "the factor of " + std::string{cells[1]} + " is " + in_quotes(value) + ", but a number from 1 to 1e6 was expected";
        }
    } else if (!value.empty()) {
        return "only slow and link have a value, but " + std::string{cells[1]} + " has " + in_quotes(value);
    }
    return {};
}

template <class OnlyWhenCalled = void>
result<listed_events> events_of_nodes(node_trace const& trace, std::string_view name, int ranks, int node_size)
{
    listed_events listed{{}, false};
    auto const nodes = (ranks + node_size - 1) / node_size;
    if (trace.names.size() > static_cast<std::size_t>(nodes)) {
        return failure{std::string{name} + " has " + std::to_string(trace.names.size()) + " nodes, the job " + std::to_string(nodes) +
                       "; expected a node of the job for each"};
    }
    constexpr std::int64_t per_millisecond = 1'000'000;
    for (auto const& event : trace.events) {
        if (event.at.count > latest_job_time.count / per_millisecond) {
            return failure{std::string{name} + ": time " + std::to_string(event.at.count) + " ms does not fit; times of a job are at most 2^62 ns"};
        }
        rank_id const first{event.node.value * node_size};
        listed.events.push_back({{event.at.count * per_millisecond},
                                 event.comes ? job_event_kind::rejoin : job_event_kind::lose,
                                 first,
                                 rank_id{std::min(first.value + node_size, ranks) - 1}});
    }
    return listed;
}

}  // namespace detail

/// Reads a list of either form. @param name the file's, for the sentence  @param ranks of the job, `node_size` on each node. Cost: linear, log of the nodes
template <class OnlyWhenCalled = void>
result<listed_events> parse_job_events(std::string_view text, std::string_view name, int ranks, int node_size)
{
    line_reader lines{text};
    std::string_view line;
    if (!detail::next_row(lines, line) || cells_of(line).front() != "time_s") {
        auto const trace = parse_node_trace(text, name);
        return trace ? detail::events_of_nodes(*trace, name, ranks, node_size) : failure{trace.error()};
    }
    listed_events listed;
    rank_presence there{ranks, true};
    while (detail::next_row(lines, line)) {
        job_event event{};
        auto fault = detail::read_job_event(cells_of(line), ranks, node_size, event);
        if (fault.empty()) {
            fault = there.take(event);
        }
        if (!fault.empty()) {
            return detail::at_line(name, lines.number, fault);
        }
        listed.events.push_back(event);
    }
    return listed;
}

}  // namespace rheo::inline v0
