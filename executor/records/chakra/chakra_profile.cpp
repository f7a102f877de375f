// SPDX-License-Identifier: Apache-2.0
#include "executor/records/chakra/chakra_profile.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/records/trace_file.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// Later than this no clock is: 10^18 ns are 31 years.
constexpr std::uint64_t most_microseconds = 1'000'000'000'000'000;

std::optional<std::int64_t> number(chakra_node const& node, std::string_view name)
{
    auto const* const a = find_attribute(node, name);
    return a == nullptr ? std::nullopt : integer_of(*a);
}

struct node_span {
    whole_nanoseconds begin;
    whole_nanoseconds end;
};

/// None where the node has no time.
std::optional<node_span> span_of(chakra_node const& node)
{
    constexpr auto most = static_cast<std::int64_t>(most_microseconds) * 1000;
    auto const exact_start = number(node, "rheo_start_ns");
    auto const exact_duration = number(node, "rheo_duration_ns");
    if (exact_start && exact_duration && *exact_start >= -most && *exact_start <= most && *exact_duration >= 0 && *exact_duration <= most) {
        return node_span{{*exact_start}, {*exact_start + *exact_duration}};
    }
    if (node.duration_micros == 0 || node.duration_micros > most_microseconds || node.start_time_micros > most_microseconds) {
        return std::nullopt;
    }
    auto const begin = static_cast<std::int64_t>(node.start_time_micros) * 1000;
    return node_span{{begin}, {begin + static_cast<std::int64_t>(node.duration_micros) * 1000}};
}

/// Computations, sends, receives, collectives and memory are on streams of these numbers.
std::uint16_t stream_of(chakra_node_type type)
{
    switch (type) {
    case chakra_node_type::comp: return 0;
    case chakra_node_type::comm_send: return 1;
    case chakra_node_type::comm_recv: return 2;
    case chakra_node_type::comm_coll: return 3;
    default: return 4;
    }
}

/// Texts, each once.
class name_table {
public:
    explicit name_table(std::vector<std::string>& names) : names_{&names} {}

    std::uint32_t operator()(std::string name)
    {
        auto const [known, is_new] = places_.try_emplace(std::move(name), static_cast<std::uint32_t>(names_->size()));
        if (is_new) {
            names_->push_back(known->first);
        }
        return known->second;
    }

private:
    std::vector<std::string>* names_;
    std::map<std::string, std::uint32_t> places_;
};

/// Operation and group: equal on all members.
std::string series_of(chakra_node const& node)
{
    auto const type = number(node, "comm_type").value_or(-1);
    auto const* const group = find_attribute(node, "pg_name");
    auto const operation =
        type >= 0 && type < chakra_collective_count ? std::string{name_of(static_cast<chakra_collective>(type))} : fmt::format("collective {}", type);
    return group == nullptr || group->text.empty() ? operation : fmt::format("{} of group {}", operation, group->text);
}

bool is_on_device(chakra_node const& node)
{
    bool const has_work =
        node.type == chakra_node_type::comp || stream_of(node.type) != 4 || node.type == chakra_node_type::mem_load || node.type == chakra_node_type::mem_store;
    return has_work && number(node, "is_cpu_op").value_or(0) == 0;
}

}  // namespace

chakra_profile read_chakra_profile(std::string const& path, rank_id rank)
{
    chakra_profile profile;
    auto& trace = profile.trace;
    trace.rank = rank;
    trace.streams = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}};
    name_table names{trace.names};
    name_table collectives{trace.collectives};
    chakra_reader<trace_file> reader{trace_file{path}};
    while (auto const* const node = reader.next()) {
        if (!is_on_device(*node)) {
            continue;
        }
        auto const span = span_of(*node);
        if (!span) {
            ++profile.left_out;
            continue;
        }
        auto const stream = stream_of(node->type);
        trace.events.push_back({.begin = span->begin,
                                .end = span->end,
                                .name = names(std::string{node->name}),
                                .collective = node->type == chakra_node_type::comm_coll ? collectives(series_of(*node)) : no_collective,
                                .stream = stream,
                                .work = stream == 0   ? device_work::compute
                                        : stream == 4 ? device_work::memory
                                                      : device_work::communication});
    }
    if (!reader.error().empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", path, reader.error())};
    }
    put_in_order(trace);
    return profile;
}

}  // namespace rheo::inline v0
