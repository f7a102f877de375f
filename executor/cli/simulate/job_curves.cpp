// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/simulate/job_curves.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace rheo::cli {

namespace {

constexpr std::size_t most_marks = 200;
constexpr int parts = 400;  // equal ones of a job, of each of which the mean is drawn

double in_s(whole_nanoseconds time) { return static_cast<double>(time.count) * 1e-9; }

/// How a span of time is spread over the parts of a job.
class parts_of_job {
public:
    explicit parts_of_job(whole_nanoseconds end) : width_{in_s(end) / parts} {}

    /// @param rate while the span lasts
    void add(double begin, double end, double rate)
    {
        for (auto k = std::min(parts - 1, static_cast<int>(begin / width_)); k < parts && k * width_ < end; ++k) {
            sums_[static_cast<std::size_t>(k)] += rate * std::max(0.0, std::min(end, (k + 1) * width_) - std::max(begin, k * width_));
        }
    }

    curve means(std::string name) const
    {
        curve over{.name = std::move(name)};
        for (int k = 0; k < parts && width_ > 0.0; ++k) {
            over.x.push_back((k + 0.5) * width_);
            over.y.push_back(sums_[static_cast<std::size_t>(k)] / width_);
        }
        return over;
    }

private:
    double width_;
    std::array<double, parts> sums_{};
};

/// What each step makes, per second. Where no step runs, nothing is made.
template <class Made>
curve rate_over_time(named_job const& named, Made const& made)
{
    parts_of_job over{named.job.account.end};
    for (auto const& run : named.runs) {
        over.add(in_s(run.begin), in_s(run.end), made(run) / in_s(run.step));
    }
    return over.means(named.policy);
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

std::vector<curve_mark> marks_of(named_job const& named)
{
    std::vector<curve_mark> marks;
    for (auto const& c : named.job.changes) {
        if (marks.size() < most_marks) {
            marks.push_back({in_s(c.at), fmt::format("{}, {} ranks", name_of(c.what), c.ranks)});
        }
    }
    return marks;
}

/// @param curve_of a job
template <class CurveOf>
curve_chart chart_of(job_report const& report, std::string name, CurveOf const& curve_of)
{
    curve_chart chart{.name = std::move(name), .marks = marks_of(report.jobs.front()), .over_time = true, .from_zero = true};
    for (auto const& named : report.jobs) {
        chart.curves.push_back(curve_of(named));
    }
    return chart;
}

/// The shares of the classes of time that the job has. @param end of the drawing
curve_chart bands_of(named_job const& named, whole_nanoseconds end, std::string name)
{
    constexpr std::array<int, job_time_classes.size()> colours{6, 2, 3, 1, 5, 0, 4, 7};  // lost is red, as are the marks
    curve_chart chart{.name = std::move(name), .marks = marks_of(named), .over_time = true, .is_stacked = true};
    for (std::size_t k = 0; k < job_time_classes.size(); ++k) {
        auto const [title, time] = job_time_classes[k];
        if (named.job.account.*time == whole_nanoseconds{}) {
            continue;
        }
        parts_of_job over{end};
        for (auto const& span : named.job.history) {
            if (span.into == time) {
                over.add(in_s(span.begin), in_s(span.end), 100.0);
            }
        }
        chart.curves.push_back(over.means(std::string{title}));
        chart.curves.back().colour = colours[k];
    }
    std::stable_partition(chart.curves.begin(), chart.curves.end(), [](curve const& c) { return c.name == "good"; });  // at the bottom
    return chart;
}

}  // namespace

std::vector<curve_chart> curves_of(job_report const& report)
{
    auto const thousands = static_cast<double>(tokens_per_step(*report.described)) / 1e3;
    whole_nanoseconds end{};
    for (auto const& named : report.jobs) {
        end = std::max(end, named.job.account.end);
    }
    std::vector<curve_chart> charts;
    charts.push_back(
        chart_of(report, "thousand tokens per second", [&](named_job const& of) { return rate_over_time(of, [&](step_run const&) { return thousands; }); }));
    for (auto const& named : report.jobs) {
        charts.push_back(
            bands_of(named, end, report.jobs.size() == 1 ? "accounts, % of the time" : fmt::format("accounts of {}, % of the time", named.policy)));
    }
    charts.push_back(
        chart_of(report, "power in steps, W", [](named_job const& of) { return rate_over_time(of, [](step_run const& run) { return run.energy.count; }); }));
    charts.push_back(
        chart_of(report, "ranks", [](named_job const& of) { return value_over_time(of, [](step_run const& run) { return static_cast<double>(run.ranks); }); }));
    charts.push_back(chart_of(report, "memory of the fullest rank, GiB",
                              [](named_job const& of) { return value_over_time(of, [](step_run const& run) { return in_mebibytes(run.fullest) / 1024.0; }); }));
    return charts;
}

}  // namespace rheo::cli
