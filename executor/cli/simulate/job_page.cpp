// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/simulate/job_page.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/report/blocks.hpp"

namespace rheo::cli {

namespace {

constexpr std::size_t most_changes_of_page = 200;

double in_s(whole_nanoseconds time) { return static_cast<double>(time.count) * 1e-9; }

/// What each step makes, per second: the mean of each of equal parts of the job. Where no step runs, nothing is made.
template <class Made>
curve rate_over_time(named_job const& named, Made const& made)
{
    constexpr int parts = 400;
    std::vector<double> sums(parts);
    auto const width = in_s(named.job.account.end) / parts;
    for (auto const& run : named.runs) {
        auto const rate = made(run) / in_s(run.step);
        auto const begin = in_s(run.begin);
        auto const end = in_s(run.end);
        for (auto k = std::min(parts - 1, static_cast<int>(begin / width)); k < parts && k * width < end; ++k) {
            sums[static_cast<std::size_t>(k)] += rate * std::max(0.0, std::min(end, (k + 1) * width) - std::max(begin, k * width));
        }
    }
    curve over{.name = named.policy};
    for (int k = 0; k < parts && width > 0.0; ++k) {
        over.x.push_back((k + 0.5) * width);
        over.y.push_back(sums[static_cast<std::size_t>(k)] / width);
    }
    return over;
}

/// What does not change within a run of steps.
template <class Value>
curve value_over_time(named_job const& named, Value const& value)
{
    curve over{.name = named.policy};
    for (auto const& run : named.runs) {
        double const now = value(run);
        if (over.y.empty() || over.y.back() != now) {
            over.x.push_back(in_s(run.begin));
            over.y.push_back(now);
            over.x.push_back(in_s(run.end));
            over.y.push_back(now);
        } else {
            over.x.back() = in_s(run.end);
        }
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

/// @param curve_of a job
template <class CurveOf>
page_block chart_of(job_report const& report, std::string name, CurveOf const& curve_of)
{
    curve_chart chart{.name = std::move(name), .marks = marks_of(report), .over_time = true, .from_zero = true};
    for (auto const& named : report.jobs) {
        chart.curves.push_back(curve_of(named));
    }
    return curves_block(chart);
}

}  // namespace

void add_step(std::vector<step_run>& runs, whole_nanoseconds begin, played_plan const& account, std::size_t ranks)
{
    auto const energy = account.computing + account.waiting;
    if (!runs.empty() && runs.back().end == begin && runs.back().step == account.time && runs.back().ranks == ranks && runs.back().energy == energy &&
        runs.back().fullest == account.fullest) {
        runs.back().end = begin + account.time;
    } else {
        runs.push_back({begin, begin + account.time, account.time, energy, ranks, account.fullest});
    }
}

std::string job_page(job_report const& report, std::string_view config)
{
    auto const thousands = static_cast<double>(tokens_per_step(*report.described)) / 1e3;
    auto curves = page_block::array();
    curves.push_back(
        chart_of(report, "thousand tokens per second", [&](named_job const& of) { return rate_over_time(of, [&](step_run const&) { return thousands; }); }));
    curves.push_back(
        chart_of(report, "power in steps, W", [](named_job const& of) { return rate_over_time(of, [](step_run const& run) { return run.energy.count; }); }));
    curves.push_back(
        chart_of(report, "ranks", [](named_job const& of) { return value_over_time(of, [](step_run const& run) { return static_cast<double>(run.ranks); }); }));
    curves.push_back(chart_of(report, "memory of the fullest rank, GiB",
                              [](named_job const& of) { return value_over_time(of, [](step_run const& run) { return in_mebibytes(run.fullest) / 1024.0; }); }));
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
