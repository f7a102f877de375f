// SPDX-License-Identifier: Apache-2.0
// The analysis of a run for people: one line that answers, then findings and tables that fit a screen.

#include "executor/cli/analyze/run/analyzed_run.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "executor/cli/size_text.hpp"

namespace rheo::cli {

namespace {

shown_table breakdown_table(analyzed_run const& job)
{
    auto const& a = job.analysis;
    auto const steps = static_cast<double>(a.times.count - a.stalled);
    std::vector<text_row> rows;
    auto const add = [&](std::string_view name, seconds time) { rows.push_back({{std::string{name}, milliseconds_text(time / steps), share(time, a.span)}}); };
    add("schedule", a.breakdown.schedule);
    add("uneven operations", a.breakdown.uneven);
    add("vote", a.breakdown.vote);
    add("exposed reductions", a.breakdown.reductions);
    add("exposed messages", a.breakdown.messages);
    add("host", a.breakdown.host);
    add("step", a.span);
    return {
        "Step", "a step, from what its schedule makes it to what it was: ms, % of it", rows.size(), {{"", false}, {"ms", true}, {"%", true}}, std::move(rows)};
}

shown_table classes_table(analyzed_run const& job)
{
    auto const& a = job.analysis;
    auto const steps = static_cast<double>(a.times.count - a.stalled);
    std::vector<text_row> rows;
    for (std::size_t c = 0; c + 1 < step_class_count; ++c) {
        auto const on_path = a.critical.of[c];
        if (on_path > a.span / 1000.0 || a.saved.of[c] > a.span / 1000.0) {
            rows.push_back({{std::string{step_class_names[c]}, milliseconds_text(on_path / steps), share(on_path, a.span),
                             milliseconds_text((a.span - a.saved.of[c]) / steps)}});
        }
    }
    return {"Critical path",
            "critical path in ms and % of a step, and what a step would take without the class",
            rows.size(),
            {{"class", false}, {"ms", true}, {"%", true}, {"without", true}},
            std::move(rows)};
}

shown_table ranks_table(analyzed_run const& job, std::size_t most)
{
    std::vector<text_row> rows;
    auto const not_working = [](rank_steps const& rank) { return sum_of(rank.times) - work_of(rank.times); };
    for (auto const& rank : heaviest(job.analysis.ranks, most, not_working)) {
        auto const all = sum_of(rank.times);
        auto const& t = rank.times;
        rows.push_back({{fmt::format("{}", rank.record.rank.value), fmt::format("{}", rank.steps), fmt::format("{:.3f}", all.count), share(work_of(t), all),
                         share(t[step_class::bubble], all), share(t[step_class::message], all), share(t[step_class::reduction], all),
                         share(t[step_class::vote], all), share(t[step_class::update], all), share(t[step_class::host], all), fmt::format("{}", rank.last),
                         fmt::format("{:.3f}", rank.record.recovering.count)}});
    }
    return {"Ranks",
            "ranks: time in steps in s, the rest in % of it; last at the vote; recovering in s",
            job.analysis.ranks.size(),
            {{"rank", true},
             {"steps", true},
             {"time", true},
             {"work", true},
             {"bubble", true},
             {"messages", true},
             {"reductions", true},
             {"vote", true},
             {"update", true},
             {"host", true},
             {"last", true},
             {"recovering", true}},
            std::move(rows)};
}

shown_table links_table(analyzed_run const& job, std::size_t most)
{
    std::vector<text_row> rows;
    for (auto const& link : heaviest(job.analysis.links, most, [](link_waits const& l) { return l.exposed; })) {
        rows.push_back({{fmt::format("{}", link.from.value), fmt::format("{}", link.to.value), fmt::format("{}", link.messages), fmt::format("{}", link.waited),
                         link.largest > bytes{} ? size_text(link.largest) : "-", time_text(link.exposed / static_cast<double>(link.messages)),
                         fmt::format("{:.3f}", link.exposed.count)}});
    }
    return {"Messages",
            "messages: waited for after they were sent, the largest, waits each in the mean, all in s",
            job.analysis.links.size(),
            {{"from", true}, {"to", true}, {"messages", true}, {"waited for", true}, {"largest", true}, {"each", true}, {"all", true}},
            std::move(rows)};
}

std::vector<std::string> notes_of(analyzed_run const& job)
{
    auto const& a = job.analysis;
    std::vector<std::string> notes{fmt::format("{} steps: {} in the mean, {} in the median, {} in the 99th percentile", a.times.count, time_text(a.times.mean),
                                               time_text(a.times.median), time_text(a.times.p99))};
    if (a.slowest) {
        auto const because = a.slowest->because ? fmt::format(": rank {} spent {} more on {}", a.slowest->because->rank.value,
                                                              time_text(a.slowest->because->by), name_of(a.slowest->because->in))
                                                : std::string{};
        notes.push_back(fmt::format("the slowest, {}, took {}{}", a.slowest->step.value, time_text(a.slowest->time), because));
    }
    if (a.stalled > 0) {
        notes.push_back(fmt::format("{} took more than three times the median and are in no figure below but the ranks'", a.stalled));
    }
    notes.push_back(
        fmt::format("stages are idle for {:.1f} % of the time, by the schedule for {:.1f} %", 100.0 * a.breakdown.idle, 100.0 * a.breakdown.idle_by_schedule));
    if (a.partial > 0) {
        notes.push_back(fmt::format("{} more {} cut off by losses and are in no figure but the ranks'", a.partial, a.partial == 1 ? "step was" : "steps were"));
    }
    if (a.unmatched > 0) {
        notes.push_back(fmt::format("{} messages were received whose sending is not recorded", a.unmatched));
    }
    if (job.clocks_apart > seconds{}) {
        notes.push_back(fmt::format("clocks of hosts were up to {} apart and are aligned by the ends of votes", time_text(job.clocks_apart)));
    }
    for (auto const& message : job.run.left_out) {
        notes.push_back(fmt::format("left out: {}", message));
    }
    return notes;
}

}  // namespace

std::string answer_of(analyzed_run const& job)
{
    auto const& a = job.analysis;
    if (job.findings.empty()) {
        return fmt::format("nothing stands out: {} {} of {} in the median, of which the schedule makes {:.0f} %", a.times.count,
                           a.times.count == 1 ? "step" : "steps", time_text(a.times.median), 100.0 * (a.breakdown.schedule / a.span));
    }
    auto const answer = fmt::format("{}: {}", job.findings.front().name, job.findings.front().message);
    auto const others = job.findings.size() - 1;
    auto const more = others == 0 ? std::string{} : fmt::format("; {} more {}", others, others == 1 ? "finding" : "findings");
    return answer.size() + more.size() <= widest_line ? answer + more : answer;
}

std::string title_of(analyzed_run const& job) { return job.folder; }

analysis_document document_of(analyzed_run const& job, std::size_t most)
{
    return {answer_of(job), job.findings, notes_of(job), {breakdown_table(job), classes_table(job), ranks_table(job, most), links_table(job, most)}};
}

}  // namespace rheo::cli
