#pragma once
// SPDX-License-Identifier: Apache-2.0

// All that this folder says of the traces of a job, in one value, and the one thing that its ranks wait for most.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/analyze/device/device_account.hpp"
#include "rheo/analyze/device/launch_account.hpp"
#include "rheo/analyze/device/meetings.hpp"
#include "rheo/analyze/device/pageable_copies.hpp"
#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/analyze/device/step_times.hpp"
#include "rheo/analyze/device/stragglers.hpp"
#include "rheo/analyze/device/stream_account.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct rank_analysis {
    rank_id rank;
    device_account account;
    std::vector<stream_account> streams;  ///< in the order of the trace's
    launch_account launches;
    step_times steps;
    pageable_copies copies;

    friend bool operator==(rank_analysis const&, rank_analysis const&) = default;
};

struct job_analysis {
    std::vector<rank_analysis> ranks;  ///< in the order of the traces
    device_account total;              ///< of all ranks together
    std::vector<meeting_series> series;
    straggler_report stragglers;

    friend bool operator==(job_analysis const&, job_analysis const&) = default;
};

/// @pre the traces are in order. Cost: some passes over the events, and one more for each straggler and member.
template <class OnlyWhenCalled = void>
job_analysis analyze(array_view<rank_trace const> traces)
{
    job_analysis job;
    for (auto const& trace : traces) {
        job.ranks.push_back({trace.rank, account_of(trace), stream_accounts(trace), launches_of(trace), steps_of(trace), pageable_copies_of(trace)});
        job.total += job.ranks.back().account;
    }
    job.series = find_meetings(traces);
    job.stragglers = find_stragglers(traces, array_view<meeting_series const>{job.series});
    return job;
}

/// What is less than one in so many of the time is not worth a word.
inline constexpr std::int64_t worth_a_word = 20;

/// The class of time, other than computation, of which there is most; nothing where it is less than a twentieth.
constexpr std::optional<time_class> most_waited_for(device_account const& total)
{
    auto most = time_class::communication;
    for (std::size_t c = 1; c < time_class_names.size(); ++c) {
        most = time_in(total, static_cast<time_class>(c)) > time_in(total, most) ? static_cast<time_class>(c) : most;
    }
    auto const worth = total.span.count > 0 && time_in(total, most).count >= total.span.count / worth_a_word;
    return worth ? std::optional{most} : std::nullopt;
}

}  // namespace rheo::inline v0
