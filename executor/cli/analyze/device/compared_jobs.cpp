// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/analyze/device/compared_jobs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rheo::cli {

namespace {

using json = nlohmann::ordered_json;

/// A class of a rank's time.
struct compared_time {
    rank_id rank;
    time_class in;
    whole_nanoseconds before;
    whole_nanoseconds after;
};

whole_nanoseconds growth(compared_time const& time) { return time.after - time.before; }

/// By rank that is in both, and class.
std::vector<compared_time> rank_times(compared_jobs const& jobs)
{
    std::vector<compared_time> times;
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

text_row row_of(compared_time const& time)
{
    return {{fmt::format("{}", time.rank.value), std::string{name_of(time.in)}, milliseconds_text(time.before), milliseconds_text(time.after),
             fmt::format("{:+.3f}", in_milliseconds(in_seconds(growth(time))))}};
}

}  // namespace

std::string answer_of(compared_jobs const& jobs)
{
    auto const before = longest_span(jobs.before);
    auto const after = longest_span(jobs.after);
    auto const ratio = static_cast<double>(after.count) / std::max(1.0, static_cast<double>(before.count));
    if (std::abs(ratio - 1.0) < 0.02) {
        return fmt::format("no difference to speak of: the longest span is {} and {}", time_text(before), time_text(after));
    }
    auto answer = fmt::format("the longest span is {:.2f} times as long: {} in place of {}", ratio, time_text(after), time_text(before));
    auto const times = rank_times(jobs);
    auto const most = std::max_element(times.begin(), times.end(), [](auto const& a, auto const& b) { return growth(a) < growth(b); });
    if (ratio > 1.0 && most != times.end() && growth(*most) > whole_nanoseconds{}) {
        answer += fmt::format("; rank {} has {} more {}", most->rank.value, time_text(growth(*most)), name_of(most->in));
    }
    return answer;
}

analysis_document document_of(compared_jobs const& jobs, std::size_t most)
{
    analysis_document document{answer_of(jobs)};
    document.notes = {fmt::format("before: {}", answer_of(jobs.before)), fmt::format("after: {}", answer_of(jobs.after))};
    auto times = rank_times(jobs);
    auto const all = times.size();
    std::stable_sort(times.begin(), times.end(), [](auto const& a, auto const& b) { return std::abs(growth(a).count) > std::abs(growth(b).count); });
    times.resize(std::min(times.size(), most));
    std::vector<text_row> rows;
    for (auto const& time : times) {
        rows.push_back(row_of(time));
    }
    document.tables = {
        {"Ranks", "ranks: what changed most, in ms", all, {{"rank", true}, {"class"}, {"before", true}, {"after", true}, {"more", true}}, std::move(rows)}};
    return document;
}

std::string title_of(compared_jobs const& jobs) { return fmt::format("{} and {}", title_of(jobs.before), title_of(jobs.after)); }

std::string json_of(compared_jobs const& jobs)
{
    json all{{"answer", answer_of(jobs)}, {"before", json::parse(json_of(jobs.before))}, {"after", json::parse(json_of(jobs.after))}};
    all["ranks"] = json::array();
    for (auto const& time : rank_times(jobs)) {
        all["ranks"].push_back({{"rank", time.rank.value}, {"class", name_of(time.in)}, {"before_ns", time.before.count}, {"after_ns", time.after.count}});
    }
    return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string csv_of(compared_jobs const& jobs)
{
    std::string text = "rank,class,before_ns,after_ns\n";
    for (auto const& time : rank_times(jobs)) {
        text += fmt::format("{},{},{},{}\n", time.rank.value, name_of(time.in), time.before.count, time.after.count);
    }
    return text;
}

}  // namespace rheo::cli
