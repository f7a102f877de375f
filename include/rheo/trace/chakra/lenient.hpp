#pragma once
// SPDX-License-Identifier: Apache-2.0

// Traces from any tool, as far as they can be played. Numbers may be in any member, nodes in any order, dependencies on control or on data. Defaults: a
// node runs on the device, a message has tag 0. A node without what playing needs is refused. The strict reader of rheo's own traces is read_rank.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rheo/trace/chakra/attribute.hpp"
#include "rheo/trace/chakra/consumer_contract.hpp"
#include "rheo/trace/chakra/dependencies.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/read_rank.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// A group as the collectives of a file call it.
struct chakra_group_name {
    std::string name;
    std::uint64_t group;  ///< chakra_group::name

    friend bool operator==(chakra_group_name const&, chakra_group_name const&) = default;
};

/// The file in which a node stands, and what its groups are called there.
struct chakra_lenient_place {
    chakra_place place;
    array_view<chakra_group_name const> names{};
    bool keeps_order = true;  ///< false: of a collective's dependencies those in `rheo_order_deps` are left out
};

struct chakra_lenient_trace {
    chakra_rank_trace trace;
    std::uint64_t absent_controls = 0;  ///< control dependencies on nodes that are not there
};

namespace detail {

/// Reads the attributes of one node; the first fault stays.
template <class OnlyWhenCalled = void>
class lenient_reader {
public:
    lenient_reader(chakra_node const& node, chakra_lenient_place const& file) : node_{&node}, file_{&file} {}

    std::string const& error() const { return error_; }
    void refuse(std::string reason) { error_ = error_.empty() ? std::move(reason) : error_; }

    std::optional<std::int64_t> number(std::string_view name)
    {
        auto const* const a = find_attribute(*node_, name);
        if (a == nullptr) {
            return std::nullopt;
        }
        auto const value = integer_of(*a);
        if (!value) {
            refuse(std::string{name} + " is no whole number below 2^63, but in " + std::string{name_of(a->member)});
        }
        return value;
    }

    std::int64_t amount(std::string_view name)
    {
        auto const value = number(name).value_or(0);
        if (value < 0) {
            refuse(std::string{name} + " is " + std::to_string(value) + "; it must be 0 or more");
        }
        return clamped_count(static_cast<std::uint64_t>(value));
    }

    std::int64_t needed(std::string_view name, std::string_view meaning)
    {
        auto const value = number(name);
        if (!value) {
            refuse(std::string{name} + " is missing; it says " + std::string{meaning});
        }
        return value.value_or(0);
    }

    void message(chakra_step& step)
    {
        bool const sends = step.type == chakra_node_type::comm_send;
        needed("comm_size", "how many bytes the message has");
        step.bytes = amount("comm_size");
        auto const peer = needed(sends ? "comm_dst" : "comm_src", sends ? "to whom the message goes" : "from whom the message comes");
        if (peer < 0 || peer >= file_->place.ranks) {
            refuse(std::string{sends ? "comm_dst is " : "comm_src is "} + std::to_string(peer) + ", but the traces are of ranks 0 to " +
                   std::to_string(file_->place.ranks - 1));
        }
        step.peer = static_cast<std::int32_t>(std::clamp<std::int64_t>(peer, 0, std::numeric_limits<std::int32_t>::max()));
        auto const tag = number("comm_tag").value_or(0);
        if (tag < std::numeric_limits<std::int32_t>::min() || tag > std::numeric_limits<std::int32_t>::max()) {
            refuse("comm_tag is " + std::to_string(tag) + "; it must have 32 bits");
        }
        step.tag = static_cast<std::int32_t>(tag);
    }

    void collective(chakra_step& step)
    {
        auto const type = needed("comm_type", "which collective it is");
        if (type < 0 || type >= chakra_collective_count) {
            refuse("comm_type is " + std::to_string(type) + ", which is no collective: they are 0 to " + std::to_string(chakra_collective_count - 1));
            return;
        }
        step.collective = static_cast<chakra_collective>(type);
        if (step.collective != chakra_collective::barrier) {
            needed("comm_size", "how many bytes the collective has");
        }
        step.bytes = amount("comm_size");
        group(step);
    }

private:
    void group(chakra_step& step)
    {
        auto const* const a = find_attribute(*node_, "pg_name");
        auto const number = a == nullptr ? std::nullopt : integer_of(*a);
        std::string const name{a == nullptr ? std::string_view{} : a->text};
        auto const called = number ? std::to_string(*number) : name;
        if (called.empty()) {
            return;  // all ranks
        }
        auto const known = std::find_if(file_->names.begin(), file_->names.end(), [&](auto const& n) { return n.name == called; });
        if (known == file_->names.end()) {
            refuse("pg_name is " + in_quotes(called) + ", which neither the groups file nor process-group metadata in this file name");
            return;
        }
        step.group = known->group;
        auto const* const group = find_group(file_->place.groups, step.group);
        if (group == nullptr || std::find(group->ranks.begin(), group->ranks.end(), file_->place.rank) == group->ranks.end()) {
            refuse("pg_name is " + in_quotes(called) + ", a group that rank " + std::to_string(file_->place.rank) + " is not in");
        }
    }

    chakra_node const* node_;
    chakra_lenient_place const* file_;
    std::string error_;
};

/// Puts steps in the order of their ids, as players begin them.
template <class OnlyWhenCalled = void>
chakra_rank_trace by_ids(chakra_rank_trace const& trace)
{
    std::vector<std::uint32_t> order(trace.steps.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = static_cast<std::uint32_t>(i);
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return trace.steps[a].id < trace.steps[b].id; });
    std::vector<std::uint32_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        place[order[i]] = static_cast<std::uint32_t>(i);
    }
    chakra_rank_trace sorted;
    for (auto const i : order) {
        sorted.steps.push_back(trace.steps[i]);
        for (auto const other : trace.waits_for(i)) {
            sorted.dependencies.push_back(place[other]);
        }
        sorted.ends.push_back(sorted.dependencies.size());
    }
    return sorted;
}

}  // namespace detail

/// What playing needs of a node, or what is missing. @pre place.groups as with_all_ranks has them
template <class OnlyWhenCalled = void>
result<chakra_step> take_leniently(chakra_node const& node, chakra_lenient_place const& file)
{
    detail::lenient_reader<> reader{node, file};
    chakra_step step{.id = node.id, .duration_micros = node.duration_micros, .type = node.type};
    step.on_host = reader.number("is_cpu_op").value_or(0) != 0;
    step.exact_ns = std::max<std::int64_t>(0, reader.number("rheo_duration_ns").value_or(0));
    switch (node.type) {
    case chakra_node_type::comp: step.operations = reader.amount("num_ops"); [[fallthrough]];
    case chakra_node_type::mem_load:
    case chakra_node_type::mem_store: step.bytes = reader.amount("tensor_size"); break;
    case chakra_node_type::comm_send:
    case chakra_node_type::comm_recv: reader.message(step); break;
    case chakra_node_type::comm_coll: reader.collective(step); break;
    case chakra_node_type::metadata: break;
    default: reader.refuse("INVALID nodes cannot be played; expected COMP, MEM, COMM or METADATA nodes");
    }
    if (!reader.error().empty()) {
        return failure{"node " + std::to_string(node.id) + " (" + in_quotes(node.name) + "): " + reader.error()};
    }
    return step;
}

/// Reads a file from any tool to its end. @returns its steps by ascending id, or what is wrong, with the byte or the node
template <class Source>
result<chakra_lenient_trace> read_leniently(Source source, chakra_lenient_place const& file)
{
    chakra_reader<Source> reader{std::move(source)};
    chakra_lenient_trace read;
    chakra_dependencies<> dependencies;
    std::vector<std::uint64_t> kept;
    while (auto const* const node = reader.next()) {
        auto step = take_leniently(*node, file);
        if (!step) {
            return failure{step.error()};
        }
        read.trace.steps.push_back(*step);
        auto const* const order = file.keeps_order || node->type != chakra_node_type::comm_coll ? nullptr : find_attribute(*node, "rheo_order_deps");
        auto waits = *node;
        if (order != nullptr) {
            kept.clear();
            std::copy_if(node->data_deps.begin(), node->data_deps.end(), std::back_inserter(kept),
                         [&](std::uint64_t id) { return std::find(order->numbers.begin(), order->numbers.end(), id) == order->numbers.end(); });
            waits.data_deps = kept;
        }
        dependencies.add(waits);
    }
    if (!reader.error().empty()) {
        return failure{reader.error()};
    }
    if (auto const wrong = dependencies.finish(); !wrong.empty()) {
        return failure{wrong};
    }
    read.absent_controls = dependencies.absent_controls();
    detail::take_dependencies(dependencies, read.trace);
    auto const& steps = read.trace.steps;
    if (!std::is_sorted(steps.begin(), steps.end(), [](auto const& a, auto const& b) { return a.id < b.id; })) {
        read.trace = detail::by_ids(read.trace);
    }
    return read;
}

}  // namespace rheo::inline v0
