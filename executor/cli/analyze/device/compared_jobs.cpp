// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/analyze/device/compared_jobs.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/analyze/compared_times.hpp"

namespace rheo::cli {

namespace {

using json = nlohmann::ordered_json;
using rank_times = std::vector<compared_time<time_class, whole_nanoseconds>>;

/// By rank that is in both, and class.
rank_times times_of(compared_jobs const& jobs)
{
    rank_times times;
    for (auto const& before : jobs.before.analysis.ranks) {
        auto const& others = jobs.after.analysis.ranks;
        auto const after = std::find_if(others.begin(), others.end(), [&](rank_analysis const& r) { return r.rank == before.rank; });
        for (std::size_t c = 0; after != others.end() && c < time_class_names.size(); ++c) {
            auto const in = static_cast<time_class>(c);
            times.push_back({before.rank, in, time_in(before.account, in), time_in(after->account, in)});
        }
    }
    return times;
}

whole_nanoseconds longest_span(analyzed_job const& job)
{
    whole_nanoseconds longest{};
    for (auto const& rank : job.analysis.ranks) {
        longest = std::max(longest, rank.account.span);
    }
    return longest;
}

}  // namespace

std::string answer_of(compared_jobs const& jobs)
{
    return comparison("the longest span is", longest_span(jobs.before), longest_span(jobs.after), times_of(jobs), [](time_class) { return true; });
}

analysis_document document_of(compared_jobs const& jobs, std::size_t most)
{
    analysis_document document{answer_of(jobs)};
    document.notes = {fmt::format("before: {}", answer_of(jobs.before)), fmt::format("after: {}", answer_of(jobs.after))};
    document.tables = {changes_table(times_of(jobs), most, "ranks: what changed most, in ms")};
    return document;
}

std::string title_of(compared_jobs const& jobs) { return fmt::format("{} and {}", title_of(jobs.before), title_of(jobs.after)); }

std::string json_of(compared_jobs const& jobs)
{
    json all{{"answer", answer_of(jobs)}, {"before", json::parse(json_of(jobs.before))}, {"after", json::parse(json_of(jobs.after))}};
    all["ranks"] = json_rows(times_of(jobs), "ns");
    return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string csv_of(compared_jobs const& jobs) { return csv_rows(times_of(jobs), "ns"); }

}  // namespace rheo::cli
