// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/equal_pipelines.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

std::string format_sum(std::vector<int> const& numbers)
{
    if (numbers.size() <= most_listed) {
        return fmt::format("{}", fmt::join(numbers, " + "));
    }
    std::vector<std::string> runs;
    for (auto first = numbers.begin(); first != numbers.end();) {
        auto const last = std::find_if(first, numbers.end(), [&](int n) { return n != *first; });
        runs.push_back(last - first == 1 ? fmt::format("{}", *first) : fmt::format("{} x {}", last - first, *first));
        first = last;
    }
    if (runs.size() > most_listed) {
        auto const rest = runs.size() - most_listed;
        runs.resize(most_listed);
        runs.push_back(fmt::format("... ({} more runs)", rest));
    }
    return fmt::format("{}", fmt::join(runs, " + "));
}

std::string format_numbers(std::vector<int> const& ascending)
{
    if (ascending.size() <= most_listed) {
        return fmt::format("{}", fmt::join(ascending, ", "));
    }
    std::vector<std::string> runs;
    for (std::size_t first = 0, last = 0; first < ascending.size(); first = last) {
        for (last = first + 1; last < ascending.size() && ascending[last] == ascending[last - 1] + 1; ++last) {
        }
        runs.push_back(last - first == 1 ? fmt::format("{}", ascending[first]) : fmt::format("{} to {}", ascending[first], ascending[last - 1]));
    }
    if (runs.size() > most_listed) {
        auto const end = runs.back();
        runs.resize(most_listed - 1);
        runs.push_back("... " + end);
    }
    return fmt::format("{}", fmt::join(runs, ", "));
}

memory_parts const& memory_of(std::span<rank_memory const> memory, rank_id rank)
{
    auto const found = std::partition_point(memory.begin(), memory.end(), [&](rank_memory const& one) { return one.rank < rank; });
    expects(found != memory.end() && found->rank == rank, "what a plan leads to is of another plan");
    return found->parts;
}

std::vector<std::vector<std::size_t>> kinds_of_pipelines(plan const& p, std::span<rank_memory const> memory)
{
    using kind = std::tuple<std::vector<int>, std::size_t, std::vector<bool>, std::vector<std::vector<recompute_level>>, std::vector<bytes>>;
    std::vector<std::vector<std::size_t>> kinds;
    std::map<kind, std::size_t> seen;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const& pipeline = p.pipelines[i];
        auto const& levels = p.recompute.levels;
        std::vector<bytes> needed;
        for (auto const rank : memory.empty() ? std::vector<rank_id>{} : ranks_of(pipeline)) {
            needed.push_back(needed_bytes(memory_of(memory, rank)));
        }
        kind of{kind_of(pipeline), p.work[i].size(), p.recompute.stages.empty() ? std::vector<bool>{} : recomputed_stages(p, i),
                i < levels.size() ? levels[i] : std::vector<std::vector<recompute_level>>{}, needed};
        auto const [place, is_new] = seen.emplace(std::move(of), kinds.size());
        if (is_new || p.pipelines.size() <= most_listed) {
            kinds.push_back({i});
        } else {
            kinds[place->second].push_back(i);
        }
    }
    return kinds;
}

}  // namespace rheo::inline v0
