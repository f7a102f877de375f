#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the consumers of Chakra traces ask of a node, together: each attribute in the member that they read (in another one it counts as 0, or
// the feeder throws), the rank of the file as source of its sends and destination of its receives, groups that exist, and no collective that
// a simulator refuses. Consumers differ; a trace that keeps all of these rules is taken by each.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "rheo/trace/chakra/attribute.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The file in which a node stands.
struct chakra_place {
    std::int32_t rank = 0;
    std::int32_t ranks = 1;
    array_view<chakra_group const> groups{};
};

namespace detail {

/// Of operations or bytes of a computation. More than 2^62 is clamped to that.
constexpr std::int64_t clamped_count(std::uint64_t count) { return static_cast<std::int64_t>(std::min(count, std::uint64_t{1} << 62)); }

/// Reads the attributes of one node; the first fault stays.
template <class OnlyWhenCalled = void>
class contract_reader {
public:
    contract_reader(chakra_node const& node, chakra_place place) : node_{&node}, place_{place} {}

    std::string const& error() const { return error_; }

    /// The number of an attribute that must be there in this member.
    std::uint64_t number(std::string_view name, chakra_member member)
    {
        auto const* const a = find_attribute(*node_, name);
        if (a == nullptr) {
            refuse(std::string{name} + " is missing; consumers read it as " + std::string{name_of(member)});
            return 0;
        }
        return a->member == member ? a->bits : wrong_member(*a, member);
    }

    std::int64_t size(std::string_view name)
    {
        auto const bytes = static_cast<std::int64_t>(number(name, chakra_member::int64_val));
        if (bytes < 0) {
            refuse(std::string{name} + " is " + std::to_string(bytes) + "; it must be 0 bytes or more");
        }
        return bytes;
    }

    std::int32_t rank(std::string_view name)
    {
        auto const rank = static_cast<std::int32_t>(number(name, chakra_member::int32_val));
        if (rank < 0 || rank >= place_.ranks) {
            refuse(std::string{name} + " is " + std::to_string(rank) + ", but the traces are of ranks 0 to " + std::to_string(place_.ranks - 1));
        }
        return rank;
    }

    void optional_member(std::string_view name, chakra_member member)
    {
        if (auto const* const a = find_attribute(*node_, name); a != nullptr && a->member != member) {
            wrong_member(*a, member);
        }
    }

    void message(chakra_step& step)
    {
        step.bytes = size("comm_size");
        auto const source = rank("comm_src");
        auto const destination = rank("comm_dst");
        step.tag = static_cast<std::int32_t>(number("comm_tag", chakra_member::int32_val));
        bool const sends = step.type == chakra_node_type::comm_send;
        if ((sends ? source : destination) != place_.rank) {
            refuse(std::string{sends ? "comm_src is " : "comm_dst is "} + std::to_string(sends ? source : destination) + "; it must be the rank of the file, " +
                   std::to_string(place_.rank));
        } else if (source == destination) {
            refuse("it is a message of a rank to itself, which consumers do not take");
        }
        step.peer = sends ? destination : source;
    }

    void collective(chakra_step& step)
    {
        auto const type = number("comm_type", chakra_member::int64_val);
        step.bytes = size("comm_size");
        optional_member("comm_priority", chakra_member::int32_val);
        optional_member("involved_dim", chakra_member::bool_list);
        step.collective = type < chakra_collective_count ? static_cast<chakra_collective>(type) : chakra_collective::barrier;
        switch (step.collective) {
        case chakra_collective::all_reduce:
        case chakra_collective::all_gather:
        case chakra_collective::all_to_all:
        case chakra_collective::reduce_scatter:
        case chakra_collective::broadcast: break;
        default:
            refuse((type < chakra_collective_count ? std::string{name_of(step.collective)} : "comm_type " + std::to_string(type)) +
                   " is no collective that simulators take: they have all-reduce, all-gather, reduce-scatter, all-to-all and broadcast");
        }
        group(step);
    }

    void refuse(std::string reason) { error_ = error_.empty() ? std::move(reason) : error_; }

private:
    std::uint64_t wrong_member(chakra_attribute const& a, chakra_member expected)
    {
        refuse(std::string{a.name} + " is in " + std::string{name_of(a.member)} + "; consumers read " + std::string{name_of(expected)} + " and find 0 there");
        return 0;
    }

    void group(chakra_step& step)
    {
        auto const* const a = find_attribute(*node_, "pg_name");
        if (a == nullptr) {
            return;  // all ranks
        }
        if (a->member != chakra_member::string_val) {
            wrong_member(*a, chakra_member::string_val);
            return;
        }
        auto const* const end = a->text.data() + a->text.size();
        if (!a->text.empty()) {
            if (auto const [read, wrong] = std::from_chars(a->text.data(), end, step.group); wrong != std::errc{} || read != end) {
                refuse("pg_name is " + in_quotes(a->text) + "; it must be the name of a group, a whole number, or empty for all ranks");
                return;
            }
        }
        auto const* const group = find_group(place_.groups, step.group);
        if (group == nullptr) {
            refuse("pg_name is " + in_quotes(a->text) + ", which is no group of the groups file");
        } else if (std::find(group->ranks.begin(), group->ranks.end(), place_.rank) == group->ranks.end()) {
            refuse("pg_name is " + in_quotes(a->text) + ", a group that rank " + std::to_string(place_.rank) + " is not in");
        }
    }

    chakra_node const* node_;
    chakra_place place_;
    std::string error_;
};

}  // namespace detail

/// What playing needs of a node, or which rule it breaks. @pre place.groups as with_all_ranks has them
template <class OnlyWhenCalled = void>
result<chakra_step> keep_contract(chakra_node const& node, chakra_place place)
{
    detail::contract_reader<> reader{node, place};
    chakra_step step{.id = node.id, .duration_micros = node.duration_micros, .type = node.type};
    step.on_host = reader.number("is_cpu_op", chakra_member::bool_val) != 0;
    switch (node.type) {
    case chakra_node_type::comp:
        step.operations = detail::clamped_count(reader.number("num_ops", chakra_member::int64_val));
        step.bytes = detail::clamped_count(reader.number("tensor_size", chakra_member::uint64_val));
        break;
    case chakra_node_type::mem_load:
    case chakra_node_type::mem_store: step.bytes = detail::clamped_count(reader.number("tensor_size", chakra_member::uint64_val)); break;
    case chakra_node_type::comm_send:
    case chakra_node_type::comm_recv: reader.message(step); break;
    case chakra_node_type::comm_coll: reader.collective(step); break;
    default: reader.refuse(std::string{name_of(node.type)} + " nodes are not played; consumers want COMP, MEM or COMM nodes");
    }
    if (!node.ctrl_deps.empty()) {
        reader.refuse("it has control dependencies, which one consumer ignores; say them as data_deps");
    }
    if (!reader.error().empty()) {
        return failure{"node " + std::to_string(node.id) + " (" + in_quotes(node.name) + "): " + reader.error()};
    }
    return step;
}

}  // namespace rheo::inline v0
