// SPDX-License-Identifier: Apache-2.0
#include "executor/records/chakra/chakra_traces.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/config/text_file.hpp"
#include "executor/records/chakra/chakra_groups.hpp"
#include "executor/records/trace_file.hpp"
#include "rheo/trace/chakra/read_rank.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

std::string chakra_file(std::string const& prefix, std::int32_t rank) { return fmt::format("{}.{}.et", prefix, rank); }

std::int32_t chakra_ranks(std::string const& prefix)
{
    std::error_code error;
    std::int32_t ranks = 0;
    while (std::filesystem::exists(chakra_file(prefix, ranks), error)) {
        ++ranks;
    }
    if (ranks == 0) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: no such file; traces are PREFIX.0.et, PREFIX.1.et, ...", chakra_file(prefix, 0))};
    }
    return ranks;
}

std::vector<chakra_group> read_chakra_groups(std::string const& prefix, std::int32_t ranks)
{
    auto const path = prefix + ".groups.json";
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
        return {};
    }
    std::ifstream file{path, std::ios::binary};
    std::string const text{std::istreambuf_iterator<char>{file}, {}};
    if (!file) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: cannot be read", path)};
    }
    try {
        return parse_chakra_groups(text, ranks);
    } catch (json_error const& wrong) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", path, wrong.what())};
    }
}

void write_chakra_groups(std::string const& prefix, std::vector<chakra_group> const& groups)
{
    auto const path = prefix + ".groups.json";
    if (groups.empty()) {
        std::error_code error;
        std::filesystem::remove(path, error);
        return;
    }
    nlohmann::ordered_json json;
    for (auto const& group : groups) {
        json[std::to_string(group.name)] = group.ranks;
    }
    write_whole(path, json.dump() + '\n');
}

chakra_trace_set read_chakra_traces(std::string const& prefix)
{
    auto const ranks = chakra_ranks(prefix);
    chakra_trace_set traces;
    traces.groups = with_all_ranks(read_chakra_groups(prefix, ranks), ranks);
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        auto read = read_rank(trace_file{chakra_file(prefix, rank)}, {rank, ranks, traces.groups});
        if (!read) {
            throw exit_error{exit_code::bad_data, fmt::format("{}: {}", chakra_file(prefix, rank), read.error())};
        }
        traces.ranks.push_back(*std::move(read));
    }
    return traces;
}

}  // namespace rheo::inline v0
