// SPDX-License-Identifier: Apache-2.0
// The analysis for programs: whole nanoseconds, as JSON and as CSV.

#include "executor/cli/analyze/device/analyzed_job.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rheo::cli {

namespace {

using json = nlohmann::ordered_json;

/// An account with the names of its times, for JSON and CSV alike.
std::vector<std::pair<char const*, whole_nanoseconds>> times_of(device_account const& a)
{
    return {{"span_ns", a.span},
            {"idle_ns", idle(a)},
            {"busy_ns", a.busy},
            {"compute_ns", a.compute},
            {"not_compute_ns", a.busy - a.compute},
            {"communication_ns", a.communication},
            {"overlap_ns", a.overlap},
            {"exposed_communication_ns", exposed(a)},
            {"exposed_copies_ns", time_in(a, time_class::copies)},
            {"host_wait_ns", a.host_wait},
            {"kernel_wait_ns", a.kernel_wait},
            {"other_wait_ns", a.other_wait}};
}

json times_json(distribution const& d)
{
    return {{"count", d.count}, {"mean_ns", d.mean.count}, {"median_ns", d.median.count}, {"p99_ns", d.p99.count}, {"most_ns", d.most.count}};
}

json grown_json(std::optional<grown_class> const& grown) { return grown ? json{{"class", name_of(grown->in)}, {"more_ns", grown->by.count}} : json{}; }

json streams_json(rank_trace const& trace, std::vector<stream_account> const& accounts)
{
    auto streams = json::array();
    for (std::size_t s = 0; s < accounts.size(); ++s) {
        auto const& a = accounts[s];
        streams.push_back({{"device", trace.streams[s].device},
                           {"stream", trace.streams[s].number},
                           {"events", a.events},
                           {"busy_ns", a.busy.count},
                           {"host_wait_ns", a.host_wait.count},
                           {"kernel_wait_ns", a.kernel_wait.count},
                           {"other_wait_ns", a.other_wait.count}});
    }
    return streams;
}

json rank_json(analyzed_job const& job, std::size_t place)
{
    auto const& rank = job.analysis.ranks[place];
    json row{{"rank", rank.rank.value}, {"file", job.files[place]}};
    for (auto const& [name, time] : times_of(rank.account)) {
        row[name] = time.count;
    }
    row["waited_for_late_ranks_ns"] = job.analysis.stragglers.waited[place].count;
    row["streams"] = streams_json(job.traces[place], rank.streams);
    row["launches"] = {{"kernels", rank.launches.kernels}, {"short_kernels", rank.launches.short_kernels}, {"delay", times_json(rank.launches.delay)}};
    row["pageable_copies"] = {{"count", rank.copies.count}, {"time_ns", rank.copies.time.count}};
    row["steps"] = times_json(rank.steps.times);
    if (rank.steps.times.count > 0) {
        row["steps"]["slowest"] = rank.steps.slowest;
        row["steps"]["because"] = grown_json(rank.steps.because);
    }
    return row;
}

/// The last collective of each series.
json last_collectives(analyzed_job const& job)
{
    auto all = json::array();
    for (auto const& series : job.analysis.series) {
        auto const arrivals = arrivals_at(series, array_view<rank_trace const>{job.traces}, series.meetings() - 1);
        json row{{"name", series.name}, {"collectives", series.meetings()}, {"together", arrivals.together}, {"limit_ns", arrivals.limit.count}};
        row["ranks"] = row["late_ns"] = row["stragglers"] = json::array();
        for (std::size_t m = 0; m < series.traces.size(); ++m) {
            auto const rank = job.traces[series.traces[m]].rank.value;
            row["ranks"].push_back(rank);
            row["late_ns"].push_back(arrivals.late[m].count);
            if (arrivals.together && arrivals.late[m] > arrivals.limit) {
                row["stragglers"].push_back(rank);
            }
        }
        all.push_back(std::move(row));
    }
    return all;
}

}  // namespace

std::string json_of(analyzed_job const& job)
{
    auto const& report = job.analysis.stragglers;
    json all{{"answer", answer_of(job)}, {"left_out", job.left_out}};
    all["ranks"] = json::array();
    for (std::size_t place = 0; place < job.traces.size(); ++place) {
        all["ranks"].push_back(rank_json(job, place));
    }
    all["collectives"] = {{"judged", report.meetings}, {"not_ended_at_once", report.apart}};
    all["last_collectives"] = last_collectives(job);
    all["stragglers"] = json::array();
    for (auto const& s : report.stragglers) {
        all["stragglers"].push_back({{"rank", job.traces[s.trace].rank.value},
                                     {"collectives", s.times},
                                     {"steps", s.steps},
                                     {"late_ns", s.late.count},
                                     {"worst_ns", s.worst.count},
                                     {"at", job.analysis.series[s.series].name},
                                     {"because", grown_json(s.because)}});
    }
    return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string csv_of(analyzed_job const& job)
{
    std::string text = "rank";
    for (auto const& [name, time] : times_of({})) {
        text += fmt::format(",{}", name);
    }
    text += ",waited_for_late_ranks_ns,steps,step_mean_ns,step_median_ns,step_p99_ns,step_most_ns\n";
    for (std::size_t place = 0; place < job.traces.size(); ++place) {
        auto const& rank = job.analysis.ranks[place];
        text += fmt::format("{}", rank.rank.value);
        for (auto const& [name, time] : times_of(rank.account)) {
            text += fmt::format(",{}", time.count);
        }
        auto const& steps = rank.steps.times;
        text += fmt::format(",{},{},{},{},{},{}\n", job.analysis.stragglers.waited[place].count, steps.count, steps.mean.count, steps.median.count,
                            steps.p99.count, steps.most.count);
    }
    return text;
}

}  // namespace rheo::cli
