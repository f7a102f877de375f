#pragma once
// SPDX-License-Identifier: Apache-2.0

// The queues of the stand-in for CUDA, and what its parts ask of each other.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "cuda_runtime.h"

namespace emulated {

/// A point in a stream: so many of all things that were put there are done. Without a stream it has been reached.
struct point {
    std::shared_ptr<CUstream_st> stream;
    std::uint64_t count = 0;

    bool reached() const;
};

/// One thing in a stream: work for the device, or for another one that is asked whether it is done; with neither, it holds the stream back until `after`.
struct node {
    point after;
    std::function<void()> work;
    std::function<bool()> elsewhere;
};

}  // namespace emulated

struct CUstream_st : std::enable_shared_from_this<CUstream_st> {
    std::deque<emulated::node> waiting;
    std::uint64_t put = 0;
    std::uint64_t done = 0;
    std::uint64_t last_elsewhere = 0;  ///< `done` once the last work of another device is
    std::uint64_t queried = 0;         ///< `put` at the last query
    bool is_destroyed = false;         ///< it goes once its work is done

    emulated::point end() { return {shared_from_this(), put}; }
};

/// Waiting for it means waiting for its last record.
struct CUevent_st {
    emulated::point at;
    bool is_queried = false;  ///< since it was recorded
};

namespace emulated {

/// Remembers an error for cudaGetLastError.
cudaError_t said(cudaError_t code);
[[noreturn]] void abort_with(char const* sentence, char const* call = "");

CUstream_st& queue_of(cudaStream_t stream);
/// Returns once all up to there is done, and what it waits for. Where things are done late no other ordinary work is done, unless another device is waited
/// for, which may wait for it.
void finish(point const& to);
void finish_all();
/// Aborts the program if any work waits for another device: on a GPU the call may wait for it, and that device for this one's next message.
void expect_nothing_elsewhere(char const* call);

/// What CUDA forbids while a stream is captured, and what it says then; the capture comes to nothing.
bool forbidden();
bool is_captured(cudaStream_t stream);
/// Adds it to the graph of the capture in progress.
void capture(std::function<void()> work);

}  // namespace emulated
