// SPDX-License-Identifier: Apache-2.0
// `rheo trace diff`: the first difference between two sets of Chakra traces.

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "executor/cli/trace/traces.hpp"
#include "executor/records/chakra/chakra_traces.hpp"
#include "executor/records/trace_file.hpp"
#include "rheo/trace/chakra/compare_nodes.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::cli {

namespace {

using rank_reader = chakra_reader<trace_file>;

/// The next node of a file. @throws exit_error where the file is broken
chakra_node const* next_of(rank_reader& reader, std::string const& path)
{
    auto const* const node = reader.next();
    if (!reader.error().empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", path, reader.error())};
    }
    return node;
}

struct compared_rank {
    std::string difference;  ///< empty: none
    std::size_t nodes = 0;
};

compared_rank compare_rank(std::string const& prefix_a, std::string const& prefix_b, std::int32_t rank, bool times)
{
    auto const path_a = chakra_file(prefix_a, rank);
    auto const path_b = chakra_file(prefix_b, rank);
    rank_reader a{trace_file{path_a}};
    rank_reader b{trace_file{path_b}};
    compared_rank compared;
    for (;; ++compared.nodes) {
        auto const* const node_a = next_of(a, path_a);
        auto const* const node_b = next_of(b, path_b);
        if (node_a == nullptr && node_b == nullptr) {
            return compared;
        }
        if (node_a == nullptr || node_b == nullptr) {
            auto const& more = node_a == nullptr ? *node_b : *node_a;
            compared.difference = fmt::format("rank {}: node {} ({}) is only in {}", rank, more.id, in_quotes(more.name), node_a == nullptr ? path_b : path_a);
            return compared;
        }
        if (auto const where = difference_of(*node_a, *node_b, times); !where.empty()) {
            compared.difference = fmt::format("rank {}, node {} ({}): {}", rank, node_a->id, in_quotes(node_a->name), where);
            return compared;
        }
    }
}

}  // namespace

int compare_traces(std::string const& a, std::string const& b, bool times)
{
    auto const ranks = chakra_ranks(a);
    auto const ranks_b = chakra_ranks(b);
    auto const differ = [&](std::string const& how) {
        fmt::print("{} and {} differ: {}\n", a, b, how);
        return 1;
    };
    if (ranks != ranks_b) {
        return differ(fmt::format("{} and {} ranks", ranks, ranks_b));
    }
    std::size_t nodes = 0;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        auto const compared = compare_rank(a, b, rank, times);
        if (!compared.difference.empty()) {
            return differ(compared.difference);
        }
        nodes += compared.nodes;
    }
    if (auto const groups = read_chakra_groups(a, ranks); groups != read_chakra_groups(b, ranks)) {
        return differ("their groups");
    }
    fmt::print("{} and {}: the same {} nodes of {} {}{}\n", a, b, nodes, ranks, ranks == 1 ? "rank" : "ranks",
               times ? "" : "; times were not compared (--times)");
    return 0;
}

}  // namespace rheo::cli
