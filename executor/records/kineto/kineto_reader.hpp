#pragma once
// SPDX-License-Identifier: Apache-2.0

// Traces of PyTorch's profiler (Kineto), JSON in Chrome's form: what ran on the device, the calls that launched it, and ProfilerStep# marks.
// A file is read as a stream; memory is that of the events that are kept.

#include <cstdint>
#include <optional>

#include "executor/records/kineto/json_scanner.hpp"
#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct kineto_trace {
    rank_trace trace;                  ///< in order
    std::optional<std::int32_t> rank;  ///< as the file says in distributedInfo; else the trace's is 0
    std::int64_t events = 0;           ///< of any kind in the file
    std::int64_t left_out = 0;         ///< of a kind that is kept, but without time or duration

    friend bool operator==(kineto_trace const&, kineto_trace const&) = default;
};

/// Events and launches of a file are at most so far apart, 13 days: sums of times of ranks fit 64 bits.
inline constexpr whole_nanoseconds longest_trace{std::int64_t{1} << 50};

/// Reads a trace. A refusal says at which byte what is wrong. Kept are complete events (X) of the categories kernel, gpu_memcpy and gpu_memset;
/// of *_runtime and *_driver those that launched one of them; and marks ProfilerStep#. Kernels whose names begin with nccl or rccl communicate.
/// Cost: linear; sorting where the file is not in the order of time.
result<kineto_trace> read_kineto(byte_source source);

}  // namespace rheo::inline v0
