// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/records/chakra/chakra_groups.hpp"
#include "executor/records/chakra/chakra_traces.hpp"
#include "executor/records/trace_file.hpp"
#include "rheo/trace/chakra/lenient.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::string_view group_node = "process_group:init";

std::vector<std::int32_t> all_of(std::int32_t ranks)
{
    std::vector<std::int32_t> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

/// The groups of a job, and what each rank calls them: PyTorch may use one name for other ranks elsewhere.
class group_names {
public:
    explicit group_names(std::int32_t ranks) : names_(static_cast<std::size_t>(ranks)), ranks_{ranks} {}

    void add(std::int32_t rank, std::string const& name, std::vector<std::int32_t> const& members)
    {
        auto& of = names_[static_cast<std::size_t>(rank)];
        auto const is_named = [&](auto const& known) { return known.name == name; };
        if (std::find_if(of.begin(), of.end(), is_named) == of.end()) {
            bool const is_all = members.size() == static_cast<std::size_t>(ranks_);
            auto const [place, is_first] = is_all ? std::pair{groups_.end(), false} : groups_.emplace(std::pair{name, members}, 1 + groups_.size());
            of.push_back({name, is_all ? 0 : place->second});
        }
    }

    /// The default group of each rank: all ranks, named "0".
    void add_default()
    {
        for (std::int32_t rank = 0; rank < ranks_; ++rank) {
            add(rank, "0", all_of(ranks_));
        }
    }

    std::vector<chakra_group_name> const& names_at(std::int32_t rank) const { return names_[static_cast<std::size_t>(rank)]; }

    std::vector<chakra_group> groups() const
    {
        std::vector<chakra_group> all;
        for (auto const& [named, number] : groups_) {
            all.push_back({number, named.second});
        }
        return with_all_ranks(std::move(all), ranks_);
    }

private:
    std::vector<std::vector<chakra_group_name>> names_;  ///< by rank
    std::map<std::pair<std::string, std::vector<std::int32_t>>, std::uint64_t> groups_;
    std::int32_t ranks_;
};

/// The group nodes of a file. The reader of its steps reports any other fault.
void add_process_groups(std::string const& path, std::int32_t rank, std::int32_t ranks, group_names& names)
{
    chakra_reader reader{trace_file{path}};
    while (auto const* const node = reader.next()) {
        if (node->name.find(group_node) == node->name.npos || !node->inputs) {
            continue;
        }
        try {
            for (auto const& [name, members] : parse_process_groups(node->inputs->values, ranks)) {
                names.add(rank, name, members);
            }
        } catch (json_error const& wrong) {
            throw exit_error{exit_code::bad_data, fmt::format("{}: node {} ({}): its process groups: {}", path, node->id, in_quotes(node->name), wrong.what())};
        }
    }
}

}  // namespace

lenient_job read_any_chakra_traces(std::string const& prefix, bool keeps_order)
{
    auto const ranks = chakra_ranks(prefix);
    group_names names{ranks};
    lenient_job job;
    auto const listed = read_chakra_groups(prefix, ranks);
    std::vector<chakra_group_name> listed_names{{"0", 0}};
    for (auto const& group : listed) {
        listed_names.push_back({std::to_string(group.name), group.name});
    }
    if (listed.empty()) {
        for (std::int32_t rank = 0; rank < ranks; ++rank) {
            add_process_groups(chakra_file(prefix, rank), rank, ranks, names);
        }
        names.add_default();
    }
    job.traces.groups = listed.empty() ? names.groups() : with_all_ranks(listed, ranks);
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        auto const& named = listed.empty() ? names.names_at(rank) : listed_names;
        auto read = read_leniently(trace_file{chakra_file(prefix, rank)}, {{rank, ranks, job.traces.groups}, named, keeps_order});
        if (!read) {
            throw exit_error{exit_code::bad_data, fmt::format("{}: {}", chakra_file(prefix, rank), read.error())};
        }
        job.absent_controls += read->absent_controls;
        job.traces.ranks.push_back(std::move(read->trace));
    }
    return job;
}

}  // namespace rheo::inline v0
