// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler, one per rank, or a set of Chakra execution traces.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/analyze/device/analyzed_job.hpp"
#include "executor/records/chakra/chakra_profile.hpp"
#include "executor/records/chakra/chakra_traces.hpp"
#include "executor/records/kineto/kineto_reader.hpp"
#include "executor/records/trace_file.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// A file's trace; its rank is its place among the files where it does not say.
kineto_trace read_trace(std::string const& file, std::size_t place)
{
    auto read = read_kineto(trace_file{file});
    if (!read) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", file, read.error())};
    }
    if (read->trace.events.empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: nothing ran on a device: none of its {} events is a kernel or a copy", file, read->events)};
    }
    if (!read->rank) {
        read->trace.rank.value = static_cast<std::int32_t>(place);
    }
    return *std::move(read);
}

analyzed_job read_job(std::vector<std::string> const& files)
{
    std::vector<rank_trace> traces;
    std::int64_t left_out = 0;
    for (auto const& file : files) {
        auto read = read_trace(file, traces.size());
        left_out += read.left_out;
        traces.push_back(std::move(read.trace));
    }
    std::vector<std::size_t> order(files.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return traces[a].rank < traces[b].rank; });
    analyzed_job job;
    job.left_out = left_out;
    for (auto const k : order) {
        if (!job.traces.empty() && job.traces.back().rank == traces[k].rank) {
            throw exit_error{exit_code::bad_data,
                             fmt::format("{} and {} are both of rank {}; expected one file per rank", job.files.back(), files[k], traces[k].rank.value)};
        }
        job.files.push_back(files[k]);
        job.traces.push_back(std::move(traces[k]));
    }
    return job;
}

}  // namespace

analyzed_job analyze_prefix(std::string const& prefix)
{
    analyzed_job job;
    auto const ranks = chakra_ranks(prefix);
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        auto profile = read_chakra_profile(chakra_file(prefix, rank), rank_id{rank});
        job.left_out += profile.left_out;
        if (!profile.trace.events.empty()) {  // a lost rank has no nodes
            job.files.push_back(chakra_file(prefix, rank));
            job.traces.push_back(std::move(profile.trace));
        }
    }
    if (job.traces.empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: no node has a time, so there is nothing to analyze; expected traces of a run", prefix)};
    }
    job.analysis = analyze(array_view<rank_trace const>{job.traces});
    return job;
}

analyzed_job analyze_files(std::vector<std::string> const& files)
{
    auto job = read_job(files);
    job.analysis = analyze(array_view<rank_trace const>{job.traces});
    return job;
}

}  // namespace rheo::cli
