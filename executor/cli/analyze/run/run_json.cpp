// SPDX-License-Identifier: Apache-2.0
// The analysis of a run for programs: seconds, as JSON and as CSV.

#include "executor/cli/analyze/run/analyzed_run.hpp"

#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rheo::cli {

namespace {

using json = nlohmann::ordered_json;

std::string key_of(step_class c)
{
    std::string key{name_of(c)};
    for (auto& letter : key) {
        letter = letter == ' ' ? '_' : letter;
    }
    return key + "_s";
}

json classes_json(class_times const& times)
{
    auto object = json::object();
    for (std::size_t c = 0; c < step_class_count; ++c) {
        object[key_of(static_cast<step_class>(c))] = times.of[c].count;
    }
    return object;
}

json steps_json(run_analysis const& a)
{
    json steps{{"count", a.times.count},
               {"partial", a.partial},
               {"stalled", a.stalled},
               {"stalled_for_s", a.stalled_for.count},
               {"span_s", a.span.count},
               {"mean_s", static_cast<double>(a.times.mean.count) * 1e-9},
               {"median_s", static_cast<double>(a.times.median.count) * 1e-9},
               {"p99_s", static_cast<double>(a.times.p99.count) * 1e-9}};
    if (a.slowest) {
        steps["slowest"] = {{"step", a.slowest->step.value}, {"attempt", a.slowest->attempt.value}, {"time_s", a.slowest->time.count}, {"because", nullptr}};
        if (auto const& because = a.slowest->because) {
            steps["slowest"]["because"] = {{"rank", because->rank.value}, {"class", name_of(because->in)}, {"more_s", because->by.count}};
        }
    }
    return steps;
}

json ranks_json(analyzed_run const& job)
{
    auto ranks = json::array();
    for (auto const& rank : job.analysis.ranks) {
        json row{{"rank", rank.record.rank.value},
                 {"steps", rank.steps},
                 {"in_steps", classes_json(rank.times)},
                 {"critical_s", rank.critical.count},
                 {"slack_s", rank.slack.count},
                 {"last_at_vote", rank.last},
                 {"recovering_s", rank.record.recovering.count},
                 {"evaluating_s", rank.record.evaluating.count},
                 {"span_s", (rank.record.end - rank.record.begin).count}};
        for (auto const& pace : job.paces) {
            if (pace.rank == rank.record.rank) {
                row["slowness"] = slowness(pace);
            }
        }
        ranks.push_back(std::move(row));
    }
    return ranks;
}

}  // namespace

std::string json_of(analyzed_run const& job)
{
    auto const& a = job.analysis;
    json all{{"answer", answer_of(job)}, {"run", job.folder}};
    all["findings"] = json::array();
    for (auto const& finding : job.findings) {
        all["findings"].push_back(
            {{"name", finding.name}, {"share", finding.share}, {"message", finding.message}, {"detail", finding.detail}, {"change", finding.advice}});
    }
    all["steps"] = steps_json(a);
    all["bubble"] = {{"measured", a.breakdown.idle}, {"by_schedule", a.breakdown.idle_by_schedule}};
    all["breakdown"] = {{"schedule_s", a.breakdown.schedule.count},     {"uneven_s", a.breakdown.uneven.count},     {"vote_s", a.breakdown.vote.count},
                        {"reductions_s", a.breakdown.reductions.count}, {"messages_s", a.breakdown.messages.count}, {"host_s", a.breakdown.host.count}};
    all["critical_path"] = classes_json(a.critical);
    all["saved_without"] = classes_json(a.saved);
    all["ranks"] = ranks_json(job);
    all["links"] = json::array();
    for (auto const& link : a.links) {
        all["links"].push_back({{"from", link.from.value},
                                {"to", link.to.value},
                                {"messages", link.messages},
                                {"waited", link.waited},
                                {"exposed_s", link.exposed.count},
                                {"largest_bytes", link.largest.count}});
    }
    all["unmatched"] = a.unmatched;
    all["clocks_apart_s"] = job.clocks_apart.count;
    all["left_out"] = job.run.left_out;
    return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string csv_of(analyzed_run const& job)
{
    std::string text = "rank,steps,span_s,recovering_s,evaluating_s,critical_s,slack_s,last_at_vote";
    for (std::size_t c = 0; c < step_class_count; ++c) {
        text += "," + key_of(static_cast<step_class>(c));
    }
    text += "\n";
    for (auto const& rank : job.analysis.ranks) {
        text += fmt::format("{},{},{},{},{},{},{},{}", rank.record.rank.value, rank.steps, (rank.record.end - rank.record.begin).count,
                            rank.record.recovering.count, rank.record.evaluating.count, rank.critical.count, rank.slack.count, rank.last);
        for (auto const time : rank.times.of) {
            text += fmt::format(",{}", time.count);
        }
        text += "\n";
    }
    return text;
}

}  // namespace rheo::cli
