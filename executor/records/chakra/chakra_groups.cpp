// SPDX-License-Identifier: Apache-2.0
#include "executor/records/chakra/chakra_groups.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <numeric>
#include <system_error>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::inline v0 {

namespace {

std::uint64_t group_name(std::string const& key)
{
    std::uint64_t name = 0;
    auto const* const end = key.data() + key.size();
    auto const [read, wrong] = std::from_chars(key.data(), end, name);
    if (wrong != std::errc{} || read != end || name == 0 || std::to_string(name) != key) {
        throw json_error{fmt::format("names a group {}; names are whole numbers above 0", in_quotes(key))};
    }
    return name;
}

}  // namespace

std::vector<chakra_group> parse_chakra_groups(std::string_view text, std::int32_t ranks)
{
    auto const json = parse_strict(text, 2);
    if (!json.is_object()) {
        throw json_error{R"(is no object; groups look like {"1": [0, 2], "2": [1, 3]})"};
    }
    std::vector<chakra_group> groups;
    for (auto const& [key, members] : json.items()) {
        chakra_group group{group_name(key), {}};
        if (!members.is_array() || members.empty()) {
            throw json_error{fmt::format("group {}: expected a list of ranks", key)};
        }
        for (auto const& member : members) {
            group.ranks.push_back(static_cast<std::int32_t>(integer_of(member, "a rank of a group", {0, ranks - 1})));
        }
        auto sorted = group.ranks;
        std::sort(sorted.begin(), sorted.end());
        if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
            throw json_error{fmt::format("group {}: names a rank twice", key)};
        }
        groups.push_back(std::move(group));
    }
    std::sort(groups.begin(), groups.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
    return groups;
}

std::vector<std::pair<std::string, std::vector<std::int32_t>>> parse_process_groups(std::string_view values, std::int32_t ranks)
{
    auto const begin = values.find("[{");
    auto const end = values.rfind("}]");
    if (begin == values.npos || end == values.npos || end < begin) {
        throw json_error{R"(has no list like [{"pg_name": "1", "ranks": [0, 2]}])"};
    }
    std::vector<std::pair<std::string, std::vector<std::int32_t>>> groups;
    for (auto const& group : parse_strict(values.substr(begin, end + 2 - begin), 6)) {
        auto const& name = member(group, "pg_name");
        std::vector<std::int32_t> members;
        for (auto const& rank : list_member(group, "ranks")) {
            members.push_back(static_cast<std::int32_t>(integer_of(rank, "a rank of a process group", {0, ranks - 1})));
        }
        auto sorted = members;
        std::sort(sorted.begin(), sorted.end());
        if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
            throw json_error{"names a rank twice in a process group"};
        }
        if (members.empty()) {
            members.resize(static_cast<std::size_t>(ranks));
            std::iota(members.begin(), members.end(), 0);
        }
        groups.emplace_back(name.is_number_integer() ? name.dump() : text_member(group, "pg_name"), std::move(members));
    }
    return groups;
}

}  // namespace rheo::inline v0
