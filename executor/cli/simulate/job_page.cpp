// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/simulate/job_page.hpp"

#include <utility>

#include <fmt/format.h>

#include "executor/report/blocks.hpp"

namespace rheo::cli {

namespace {

constexpr std::size_t most_changes_of_page = 200;

double in_s(whole_nanoseconds time) { return static_cast<double>(time.count) * 1e-9; }

/// A value over time, constant in each run of steps and 0 between them, where no step runs.
template <class Value>
curve curve_over_time(named_job const& named, Value const& value)
{
    curve over{.name = named.policy};
    auto const add = [&](whole_nanoseconds at, double y) {
        over.x.push_back(in_s(at));
        over.y.push_back(y);
    };
    auto last = whole_nanoseconds{};
    for (auto const& run : named.runs) {
        if (last < run.begin) {
            add(last, 0.0);
            add(run.begin, 0.0);
        }
        add(run.begin, value(run));
        add(run.end, value(run));
        last = run.end;
    }
    return over;
}

/// Changes of the members of the first policy are marked.
std::vector<curve_mark> marks_of(job_report const& report)
{
    std::vector<curve_mark> marks;
    for (auto const& c : report.jobs.front().job.changes) {
        if (marks.size() < most_changes_of_page) {
            marks.push_back({in_s(c.at), fmt::format("{}, {} ranks", name_of(c.what), c.ranks)});
        }
    }
    return marks;
}

template <class Value>
page_block chart_of(job_report const& report, std::string name, Value const& value)
{
    curve_chart chart{.name = std::move(name), .marks = marks_of(report), .over_time = true, .from_zero = true};
    for (auto const& named : report.jobs) {
        chart.curves.push_back(curve_over_time(named, value));
    }
    return curves_block(chart);
}

}  // namespace

void add_step(std::vector<step_run>& runs, whole_nanoseconds begin, played_plan const& account, std::size_t ranks)
{
    auto const energy = account.computing + account.waiting;
    if (!runs.empty() && runs.back().end == begin && runs.back().step == account.time && runs.back().ranks == ranks && runs.back().energy == energy) {
        runs.back().end = begin + account.time;
    } else {
        runs.push_back({begin, begin + account.time, account.time, energy, ranks});
    }
}

std::string job_page(job_report const& report, std::string_view config)
{
    auto const tokens = static_cast<double>(tokens_per_step(*report.described));
    auto curves = page_block::array();
    curves.push_back(chart_of(report, "tokens per second", [&](step_run const& run) { return tokens / in_s(run.step); }));
    curves.push_back(chart_of(report, "power of all devices, W", [](step_run const& run) { return run.energy.count / in_s(run.step); }));
    curves.push_back(chart_of(report, "ranks", [](step_run const& run) { return static_cast<double>(run.ranks); }));
    auto sections = page_block::array();
    sections.push_back(section("Accounts", page_block::array({note_block(headline_of(report)), text_block(accounts_text(report))})));
    sections.push_back(section("Over time", std::move(curves)));
    for (auto const& named : report.jobs) {
        if (auto const text = changes_text(named.job, most_changes_of_page); !text.empty()) {
            sections.push_back(section(fmt::format("Changes of the members: {}", named.policy), page_block::array({text_block(text)})));
        }
    }
    return page_of(page_block{{"title", fmt::format("{}, simulated", config)},
                              {"sections", std::move(sections)},
                              {"footer", "rheo " RHEO_VERSION ". This page loads nothing from a network."}});
}

}  // namespace rheo::cli
