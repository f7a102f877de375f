#pragma once
// SPDX-License-Identifier: Apache-2.0

// A small job whose steps take some seconds, its simulation with the sums of its accounts, and events by rank.

#include <utility>
#include <vector>

#include "rheo/job/cluster_request.hpp"
#include "rheo/job/simulate_job.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

namespace test {

using namespace rheo;

inline constexpr recovery_times phases{{0.5}, {0.125}, {0.125}, {0.25}, {0.0625}, {0.125}, {0.125}, {1.0}, {0.125}};
inline constexpr modelled_link no_time{{0.0}, {1e30}};

inline job_description small_job(int ranks, std::vector<int> pipelines, modelled_link links = no_time)
{
    job_description job{.model = gpt_model({.vocabulary = 32, .context = 8, .width = 16, .heads = 2, .blocks = 6}),
                        .request = {.schedule = one_f_one_b{}, .microbatches = 8, .microbatch = {1, 8}, .pipelines = std::move(pipelines)},
                        .cluster = {.device = {{{1e5}, {1e9}, gibibytes(1)}, {300}, {100}},
                                    .levels = {{"machine", {ranks, network_topology::full, links}}},
                                    .different = {},
                                    .storage = cluster_storage{{1e6}, {1e6}},
                                    .recovery = phases},
                        .ranks = ranks,
                        .steps = 6};
    job.request = on_cluster(job.request, job.cluster);
    return job;
}

/// By class. Spans follow each other from time 0.
inline std::vector<whole_nanoseconds> sums_of(std::vector<job_time_span> const& history)
{
    std::vector<whole_nanoseconds> sums(job_time_classes.size());
    whole_nanoseconds now{};
    for (auto const& span : history) {
        CHECK(span.begin == now);
        CHECK(span.begin < span.end);
        now = span.end;
        for (std::size_t k = 0; k < sums.size(); ++k) {
            sums[k] += job_time_classes[k].time == span.into ? span.end - span.begin : whole_nanoseconds{};
        }
    }
    return sums;
}

inline std::vector<whole_nanoseconds> classes_of(job_account const& account)
{
    std::vector<whole_nanoseconds> all;
    for (auto const& c : job_time_classes) {
        all.push_back(account.*c.time);
    }
    return all;
}

template <class Model = free_network>
simulated_job simulated(job_description const& job, job_policy policy = job_policy::rheo, std::vector<job_event> events = {})
{
    auto out = simulate_job<Model>(job, policy, job_event_source{std::move(events)});
    REQUIRE(out.error() == "");
    CHECK(total_time(out->account) == out->account.end);
    CHECK(total_time(out->good) == out->account.good);
    CHECK(sums_of(out->history) == classes_of(out->account));
    return *std::move(out);
}

inline job_event lost(int rank, seconds at) { return {{in_whole_nanoseconds(at)}, job_event_kind::lose, rank_id{rank}, rank_id{rank}}; }
inline job_event back(int rank, seconds at) { return {{in_whole_nanoseconds(at)}, job_event_kind::rejoin, rank_id{rank}, rank_id{rank}}; }
inline seconds in_s(whole_nanoseconds time) { return nanoseconds(static_cast<double>(time.count)); }

inline whole_nanoseconds step_time(job_description job)
{
    job.steps = 1;
    return simulated(job).account.end;
}

}  // namespace test
