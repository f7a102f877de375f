#pragma once
// SPDX-License-Identifier: Apache-2.0

// Nodes of a rank's step as a Chakra file that keeps the contract of consumers (trace/chakra/consumer_contract.hpp). What other tools do not know is in
// attributes that begin with rheo_: pipeline, stage and item (int32), the activations that a rank holds when a computation ends (rheo_memory_bytes,
// int64), dependencies that only keep an order (rheo_order_deps, uint64_list), and of a run the exact times (rheo_start_ns and rheo_duration_ns, int64).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "rheo/simulate/chakra/execution_nodes.hpp"
#include "rheo/trace/chakra/attribute.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/writer.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The version of the schema that files name.
inline constexpr std::string_view chakra_schema_version = "0.0.4";

/// When an operation of a run began and ended, since its launch.
struct execution_times {
    seconds start;
    seconds end;

    friend constexpr bool operator==(execution_times, execution_times) = default;
};

namespace detail {

/// Whole nanoseconds, rounded to the nearest.
inline std::int64_t nanoseconds_of(seconds time) { return std::llround(time.count * 1e9); }

/// The attributes of a node, in place.
class execution_attributes {
public:
    explicit execution_attributes(execution_node const& node, rank_id rank, std::string& group)
    {
        put(make_attribute("is_cpu_op", false));
        switch (node.type) {
        case chakra_node_type::comp:
            put(make_attribute("num_ops", std::max<std::int64_t>(1, node.work.computed.count)));  // one consumer divides by it
            put(make_attribute("tensor_size", static_cast<std::uint64_t>(node.work.moved.count)));
            break;
        case chakra_node_type::comm_coll:
            put(make_attribute("comm_type", std::int64_t{0}));  // an all-reduce
            put(make_attribute("comm_size", std::int64_t{node.size.count}));
            if (node.group != 0) {
                group = std::to_string(node.group);
                put(make_attribute("pg_name", group));
            }
            break;
        default: put_message(node, rank);
        }
        if (node.stage != no_stage) {
            put(make_attribute("rheo_stage", node.stage.value));
        }
        if (node.item != no_item) {
            put(make_attribute(node.type == chakra_node_type::comm_coll ? "rheo_unit" : "rheo_item", node.item));
        }
        if (node.type == chakra_node_type::comp) {
            put(make_attribute("rheo_memory_bytes", std::int64_t{node.activations.count}));
        }
        if (!node.only_in_order.empty()) {
            put({.name = "rheo_order_deps", .member = chakra_member::uint64_list, .numbers = node.only_in_order});
        }
    }

    void put(chakra_attribute const& attribute) { all_[count_++] = attribute; }
    array_view<chakra_attribute const> view() const { return {all_.data(), count_}; }

private:
    void put_message(execution_node const& node, rank_id rank)
    {
        bool const sends = node.type == chakra_node_type::comm_send;
        put(make_attribute("comm_size", std::int64_t{node.size.count}));
        put(make_attribute("comm_src", sends ? rank.value : node.peer.value));
        put(make_attribute("comm_dst", sends ? node.peer.value : rank.value));
        put(make_attribute("comm_tag", node.tag));
    }

    std::array<chakra_attribute, 12> all_{};
    std::size_t count_ = 0;
};

}  // namespace detail

/// Writes the file of a rank. `Sink` is called with its next bytes, in pieces of some 64 KiB.
/// @param times of each node, or none: not measured. A computation takes at least a microsecond where time passed: to consumers none is none.
template <class Sink>
void write_execution(Sink sink, rank_id rank, array_view<execution_node const> nodes, array_view<execution_times const> times = {})
{
    chakra_writer<Sink> writer{std::move(sink), {.version = chakra_schema_version}};
    std::string group;
    for (std::size_t id = 0; id < nodes.size(); ++id) {
        auto const& node = nodes[id];
        detail::execution_attributes attributes{node, rank, group};
        auto const name = label_of(node);
        chakra_node written{.id = id, .name = name, .type = node.type, .data_deps = node.waits_for};
        if (!times.empty()) {
            auto const start = detail::nanoseconds_of(times[id].start);
            auto const duration = std::max<std::int64_t>(0, detail::nanoseconds_of(times[id].end) - start);
            attributes.put(make_attribute("rheo_start_ns", start));
            attributes.put(make_attribute("rheo_duration_ns", duration));
            written.start_time_micros = static_cast<std::uint64_t>(std::max<std::int64_t>(0, start) / 1000);
            written.duration_micros = static_cast<std::uint64_t>(duration == 0 ? 0 : std::max<std::int64_t>(1, (duration + 500) / 1000));
        }
        written.attributes = attributes.view();
        writer.add(written);
    }
    writer.finish();
}

}  // namespace rheo::inline v0
