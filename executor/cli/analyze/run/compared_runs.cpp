// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/analyze/run/compared_runs.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/analyze/compared_times.hpp"

namespace rheo::cli {

namespace {

using json = nlohmann::ordered_json;

using step_times = std::vector<compared_time<step_class, seconds>>;

seconds mean_step(run_analysis const& a) { return a.span / static_cast<double>(a.times.count - a.stalled); }

/// By class, what mean steps are as long as.
step_times critical_times(compared_runs const& runs)
{
    step_times times;
    for (std::size_t c = 0; c + 1 < step_class_count; ++c) {
        auto const mean = [c](run_analysis const& a) { return a.critical.of[c] / static_cast<double>(a.times.count - a.stalled); };
        times.push_back({{}, static_cast<step_class>(c), mean(runs.before.analysis), mean(runs.after.analysis)});
    }
    return times;
}

/// By rank that is in both, and class.
step_times rank_times(compared_runs const& runs)
{
    step_times times;
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

shown_table classes_table(compared_runs const& runs)
{
    std::vector<text_row> rows;
    for (auto const& time : critical_times(runs)) {
        if (time.before + time.after > mean_step(runs.before.analysis) / 1000.0) {
            rows.push_back(row_of(std::string{name_of(time.in)}, time));
        }
    }
    rows.push_back(row_of("step", step_times::value_type{{}, {}, mean_step(runs.before.analysis), mean_step(runs.after.analysis)}));
    return {
        "Critical path", "critical path of a mean step in ms", rows.size(), {{"class"}, {"before", true}, {"after", true}, {"more", true}}, std::move(rows)};
}

}  // namespace

std::string answer_of(compared_runs const& runs)
{
    return comparison("a step takes", mean_step(runs.before.analysis), mean_step(runs.after.analysis), rank_times(runs),
                      [](step_class in) { return in != step_class::bubble; });
}

analysis_document document_of(compared_runs const& runs, std::size_t most)
{
    analysis_document document{answer_of(runs)};
    for (auto const* run : {&runs.before, &runs.after}) {
        document.notes.push_back(fmt::format("{}: {}", run->folder, answer_of(*run)));
    }
    document.tables = {classes_table(runs), changes_table(rank_times(runs), most, "ranks: what changed most, in ms of a step")};
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
    all["ranks"] = json_rows(rank_times(runs), "s");
    return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string csv_of(compared_runs const& runs) { return csv_rows(rank_times(runs), "s"); }

}  // namespace rheo::cli
