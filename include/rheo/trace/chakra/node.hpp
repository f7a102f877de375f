#pragma once
// SPDX-License-Identifier: Apache-2.0

// A node of a Chakra execution trace: something that a rank does, and what it waits for. A file is one metadata message, then the nodes of one
// rank. Both are views: they own nothing.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rheo/trace/chakra/attribute.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

enum class chakra_node_type : std::uint8_t { invalid, metadata, mem_load, mem_store, comp, comm_send, comm_recv, comm_coll };

inline constexpr int chakra_node_type_count = 8;

/// The name in the schema.
constexpr std::string_view name_of(chakra_node_type type)
{
    constexpr std::string_view names[] = {"INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL"};
    return names[static_cast<std::size_t>(type)];
}

/// What the attribute `comm_type` of a collective says.
enum class chakra_collective : std::uint8_t {
    all_reduce,
    reduce,
    all_gather,
    gather,
    scatter,
    broadcast,
    all_to_all,
    reduce_scatter,
    reduce_scatter_block,
    barrier,
};

inline constexpr int chakra_collective_count = 10;

constexpr std::string_view name_of(chakra_collective c)
{
    constexpr std::string_view names[] = {"ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER", "SCATTER", "BROADCAST",
                                          "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};
    return names[static_cast<std::size_t>(c)];
}

/// What PyTorch notes about the tensors of an operation, as texts.
struct chakra_io {
    std::string_view values{};
    std::string_view shapes{};
    std::string_view types{};

    friend constexpr bool operator==(chakra_io const&, chakra_io const&) = default;
};

struct chakra_node {
    std::uint64_t id = 0;
    std::string_view name{};
    chakra_node_type type = chakra_node_type::invalid;
    array_view<std::uint64_t const> ctrl_deps{};
    array_view<std::uint64_t const> data_deps{};
    std::uint64_t start_time_micros = 0;
    std::uint64_t duration_micros = 0;
    std::optional<chakra_io> inputs{};
    std::optional<chakra_io> outputs{};
    array_view<chakra_attribute const> attributes{};
};

/// The first message of a file.
struct chakra_metadata {
    std::string_view version{};
    array_view<chakra_attribute const> attributes{};
};

/// The attribute of that name of a node or of metadata; none: null.
constexpr chakra_attribute const* find_attribute(chakra_node const& node, std::string_view name) { return find_attribute(node.attributes, name); }

}  // namespace rheo::inline v0
