#pragma once
// SPDX-License-Identifier: Apache-2.0

// Times of two jobs beside each other, by rank and class: what all comparisons of `rheo analyze` have in common.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/analyze/document.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::cli {

/// A class of a rank's time. @tparam Time seconds, or whole nanoseconds
template <class Class, class Time>
struct compared_time {
    rank_id rank{};
    Class in{};
    Time before{};
    Time after{};
};

template <class Class, class Time>
Time growth(compared_time<Class, Time> const& time)
{
    return time.after - time.before;
}

/// Name, both times and the growth, in ms.
template <class Class, class Time>
text_row row_of(std::string name, compared_time<Class, Time> const& time)
{
    auto const more = milliseconds_text(growth(time));
    return {{std::move(name), milliseconds_text(time.before), milliseconds_text(time.after), (growth(time) < Time{} ? "" : "+") + more}};
}

/// By how much a length grew, and the class of a rank that grew most, in one line. @param what "a step takes"  @param is_cause false for what only waits
template <class Class, class Time, class IsCause>
std::string comparison(std::string_view what, Time before, Time after, std::vector<compared_time<Class, Time>> const& times, IsCause const& is_cause)
{
    auto const ratio = before > Time{} ? after / before : 1.0;
    if (std::abs(ratio - 1.0) < 0.02) {
        return fmt::format("no difference to speak of: {} {} and {}", what, time_text(before), time_text(after));
    }
    auto answer = fmt::format("{} {:.2f} times as long: {} in place of {}", what, ratio, time_text(after), time_text(before));
    compared_time<Class, Time> const* most = nullptr;
    for (auto const& time : times) {
        most = is_cause(time.in) && growth(time) > Time{} && (most == nullptr || growth(time) > growth(*most)) ? &time : most;
    }
    if (ratio > 1.0 && most != nullptr) {
        answer += fmt::format("; rank {} has {} more {}", most->rank.value, time_text(growth(*most)), name_of(most->in));
    }
    return answer;
}

/// The classes of ranks that changed most.
template <class Class, class Time>
shown_table changes_table(std::vector<compared_time<Class, Time>> times, std::size_t most, std::string title)
{
    auto const all = times.size();
    std::stable_sort(times.begin(), times.end(), [](auto const& a, auto const& b) { return std::abs(growth(a).count) > std::abs(growth(b).count); });
    times.resize(std::min(times.size(), most));
    std::vector<text_row> rows;
    for (auto const& time : times) {
        auto row = row_of(fmt::format("{}", time.rank.value), time);
        row.cells.insert(row.cells.begin() + 1, std::string{name_of(time.in)});
        rows.push_back(std::move(row));
    }
    return {"Ranks", std::move(title), all, {{"rank", true}, {"class"}, {"before", true}, {"after", true}, {"more", true}}, std::move(rows)};
}

/// @param unit of the times, as keys name it: "s"
template <class Class, class Time>
nlohmann::ordered_json json_rows(std::vector<compared_time<Class, Time>> const& times, std::string const& unit)
{
    auto rows = nlohmann::ordered_json::array();
    for (auto const& time : times) {
        rows.push_back({{"rank", time.rank.value}, {"class", name_of(time.in)}, {"before_" + unit, time.before.count}, {"after_" + unit, time.after.count}});
    }
    return rows;
}

template <class Class, class Time>
std::string csv_rows(std::vector<compared_time<Class, Time>> const& times, std::string_view unit)
{
    auto text = fmt::format("rank,class,before_{},after_{}\n", unit, unit);
    for (auto const& time : times) {
        text += fmt::format("{},{},{},{}\n", time.rank.value, name_of(time.in), time.before.count, time.after.count);
    }
    return text;
}

}  // namespace rheo::cli
