// SPDX-License-Identifier: Apache-2.0
// Published execution traces played on networks: each rank ends when the public program says, to the nanosecond.
#include <string>
#include <vector>

#include "../trace/chakra/shared_files.hpp"
#include "astra_networks.hpp"
#include "rheo/simulate/chakra/play_traces.hpp"
#include "rheo/trace/chakra/lenient.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// @param files by rank
chakra_trace_set read_job(std::vector<std::string> const& files, std::vector<chakra_group> groups)
{
    chakra_trace_set traces;
    std::vector<chakra_group_name> names;
    for (auto const& group : groups) {
        names.push_back({std::to_string(group.name), group.name});
    }
    traces.groups = with_all_ranks(std::move(groups), static_cast<std::int32_t>(files.size()));
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
        chakra_place const place{static_cast<std::int32_t>(rank), static_cast<std::int32_t>(files.size()), traces.groups};
        auto const read = read_leniently(chakra_bytes{files[rank]}, {place, names});
        INFO(read.error());
        REQUIRE(read);
        traces.ranks.push_back(read->trace);
    }
    return traces;
}

template <class Model>
played_traces<whole_nanoseconds> played(chakra_trace_set const& traces, test::vector_table const& table, std::string const& line)
{
    chakra_play_rules<Model> rules;
    rules.of_consumers = true;
    rules.chunks = static_cast<int>(table.integer(line, "chunks"));
    rules.active_chunks = static_cast<int>(table.integer(line, "active_chunks"));
    rules.handover = {table.integer(line, "endpoint_ns")};
    rules.group_handover = {10};
    rules.memory = bytes_per_nanosecond{table.number(line, "memory_1e9B_per_s")};
    auto const levels = test::astra_network(table, line);
    auto const result = play_traces<Model>(traces, levels, rules);
    INFO(result.error());
    REQUIRE(result);
    return *result;
}

}  // namespace

TEST_CASE("chakra vectors: an all-reduce takes what it does alone")
{
    auto const folder = test::chakra_folder();
    if (folder.empty()) {
        return;
    }
    std::vector<std::string> files{test::from_hex(test::bytes_of(folder / "all_reduce_81_bytes.hex"))};
    files.resize(8, test::from_hex(test::bytes_of(folder / "all_reduce_83_bytes.hex")));
    auto const traces = read_job(files, {});
    test::vector_table const table{test::read_vectors("astra/collectives.csv")};
    auto const& first = table.lines.front();
    auto const times = played<integer_contended_network>(traces, table, first);
    CHECK(times.end == whole_nanoseconds{117'780});
    for (auto const& rank : times.ranks) {
        CHECK(rank == played_rank<whole_nanoseconds>{{117'780}, {0}, {117'780}});
    }
}

TEST_CASE("chakra vectors: unequal pipelines end as published")
{
    auto const folder = test::chakra_folder();
    if (folder.empty()) {
        return;
    }
    std::vector<std::string> files;
    for (int rank = 0; rank < 4; ++rank) {
        files.push_back(test::bytes_of(folder / "two_pipelines" / ("job." + std::to_string(rank) + ".et")));
    }
    auto const traces = read_job(files, {{1, {0, 2}}, {2, {1, 3}}});
    test::vector_table const table{test::read_vectors("chakra/two_pipelines/expected.csv")};
    REQUIRE(table.lines.size() == 6);
    for (auto const& line : table.lines) {
        CAPTURE(line);
        bool const contended = table.cell(line, "network") == "contended";
        auto const times = contended ? played<integer_contended_network>(traces, table, line) : played<integer_free_network>(traces, table, line);
        std::string ends;
        for (auto const& rank : times.ranks) {
            ends += (ends.empty() ? "" : "|") + std::to_string(rank.end.count);
        }
        CHECK(ends == table.cell(line, "finish_ns_by_rank"));
    }
}
