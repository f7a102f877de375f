// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/analyze/run/compared_runs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rheo::cli {

namespace {

using json = nlohmann::ordered_json;

/// A class of one rank, or of the critical path, in a mean step.
struct compared_time {
    rank_id rank{};
    step_class in{};
    seconds before{};
    seconds after{};
};

seconds growth(compared_time const& time) { return time.after - time.before; }

seconds mean_step(run_analysis const& a) { return a.span / static_cast<double>(a.times.count - a.stalled); }

/// By class, what mean steps are as long as.
std::vector<compared_time> critical_times(compared_runs const& runs)
{
    std::vector<compared_time> times;
    for (std::size_t c = 0; c + 1 < step_class_count; ++c) {
        auto const mean = [c](run_analysis const& a) { return a.critical.of[c] / static_cast<double>(a.times.count - a.stalled); };
        times.push_back({{}, static_cast<step_class>(c), mean(runs.before.analysis), mean(runs.after.analysis)});
    }
    return times;
}

/// By rank that is in both, and class.
std::vector<compared_time> rank_times(compared_runs const& runs)
{
    std::vector<compared_time> times;
    for (auto const& before : runs.before.analysis.ranks) {
        auto const& others = runs.after.analysis.ranks;
        auto const after = std::find_if(others.begin(), others.end(), [&](rank_steps const& r) { return r.record.rank == before.record.rank; });
        if (after == others.end() || before.steps == 0 || after->steps == 0) {
            continue;
        }
        for (std::size_t c = 0; c < step_class_count; ++c) {
            times.push_back({before.record.rank, static_cast<step_class>(c), before.times.of[c] / static_cast<double>(before.steps),
                             after->times.of[c] / static_cast<double>(after->steps)});
        }
    }
    return times;
}

/// What a rank has more of than before, other than waiting for others; null: nothing.
compared_time const* most_grown(std::vector<compared_time> const& times)
{
    compared_time const* most = nullptr;
    for (auto const& time : times) {
        if (time.in != step_class::bubble && growth(time) > seconds{} && (most == nullptr || growth(time) > growth(*most))) {
            most = &time;
        }
    }
    return most;
}

text_row row_of(std::string name, compared_time const& time)
{
    return {{std::move(name), milliseconds_text(time.before), milliseconds_text(time.after), fmt::format("{:+.3f}", in_milliseconds(growth(time)))}};
}

shown_table classes_table(compared_runs const& runs)
{
    std::vector<text_row> rows;
    for (auto const& time : critical_times(runs)) {
        if (time.before + time.after > mean_step(runs.before.analysis) / 1000.0) {
            rows.push_back(row_of(std::string{name_of(time.in)}, time));
        }
    }
    rows.push_back(row_of("step", {{}, {}, mean_step(runs.before.analysis), mean_step(runs.after.analysis)}));
    return {
        "Critical path", "critical path of a mean step in ms", rows.size(), {{"class"}, {"before", true}, {"after", true}, {"more", true}}, std::move(rows)};
}

shown_table ranks_table(compared_runs const& runs, std::size_t most)
{
    auto times = rank_times(runs);
    auto const all = times.size();
    std::stable_sort(times.begin(), times.end(), [](auto const& a, auto const& b) { return std::abs(growth(a).count) > std::abs(growth(b).count); });
    times.resize(std::min(times.size(), most));
    std::vector<text_row> rows;
    for (auto const& time : times) {
        auto row = row_of(fmt::format("{}", time.rank.value), time);
        row.cells.insert(row.cells.begin() + 1, std::string{name_of(time.in)});
        rows.push_back(std::move(row));
    }
    return {"Ranks",
            "ranks: what changed most, in ms of a step",
            all,
            {{"rank", true}, {"class"}, {"before", true}, {"after", true}, {"more", true}},
            std::move(rows)};
}

}  // namespace

std::string answer_of(compared_runs const& runs)
{
    auto const before = mean_step(runs.before.analysis);
    auto const after = mean_step(runs.after.analysis);
    auto const ratio = after / before;
    if (std::abs(ratio - 1.0) < 0.02) {
        return fmt::format("no difference to speak of: a step takes {} and {}", time_text(before), time_text(after));
    }
    auto answer = fmt::format("a step takes {:.2f} times as long: {} in place of {}", ratio, time_text(after), time_text(before));
    auto const times = rank_times(runs);
    if (auto const* most = most_grown(times); ratio > 1.0 && most != nullptr) {
        answer += fmt::format("; rank {} has {} more {}", most->rank.value, time_text(growth(*most)), name_of(most->in));
    }
    return answer;
}

analysis_document document_of(compared_runs const& runs, std::size_t most)
{
    analysis_document document{answer_of(runs)};
    for (auto const* run : {&runs.before, &runs.after}) {
        document.notes.push_back(fmt::format("{}: {}", run->folder, answer_of(*run)));
    }
    document.tables = {classes_table(runs), ranks_table(runs, most)};
    return document;
}

std::string title_of(compared_runs const& runs) { return fmt::format("{} and {}", runs.before.folder, runs.after.folder); }

std::string json_of(compared_runs const& runs)
{
    json all{{"answer", answer_of(runs)}, {"before", json::parse(json_of(runs.before))}, {"after", json::parse(json_of(runs.after))}};
    all["step"] = {{"before_s", mean_step(runs.before.analysis).count}, {"after_s", mean_step(runs.after.analysis).count}};
    all["critical_path"] = json::array();
    for (auto const& time : critical_times(runs)) {
        all["critical_path"].push_back({{"class", name_of(time.in)}, {"before_s", time.before.count}, {"after_s", time.after.count}});
    }
    all["ranks"] = json::array();
    for (auto const& time : rank_times(runs)) {
        all["ranks"].push_back({{"rank", time.rank.value}, {"class", name_of(time.in)}, {"before_s", time.before.count}, {"after_s", time.after.count}});
    }
    return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string csv_of(compared_runs const& runs)
{
    std::string text = "rank,class,before_s,after_s\n";
    for (auto const& time : rank_times(runs)) {
        text += fmt::format("{},{},{},{}\n", time.rank.value, name_of(time.in), time.before.count, time.after.count);
    }
    return text;
}

}  // namespace rheo::cli
