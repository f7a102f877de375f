// SPDX-License-Identifier: Apache-2.0
#include "executor/cuda/event_stream.hpp"

#include <cuda_runtime.h>

#include "kernels/cuda/error.hpp"

namespace rheo::inline v0::cuda {

namespace {

cudaStream_t handle(stream s) { return static_cast<cudaStream_t>(s.handle); }

}  // namespace

event_stream::event_stream()
{
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    stream_ = {made};
}

event_stream::~event_stream()
{
    for (auto const& events : {std::vector<void*>(recorded_.begin(), recorded_.end()), free_}) {
        for (auto* const event : events) {
            cudaEventDestroy(static_cast<cudaEvent_t>(event));
        }
    }
    cudaStreamDestroy(handle(stream_));
}

std::uint64_t event_stream::mark()
{
    if (free_.empty()) {
        cudaEvent_t made = nullptr;
        check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreateWithFlags");
        free_.push_back(made);
    }
    check(cudaEventRecord(static_cast<cudaEvent_t>(free_.back()), handle(stream_)), "cudaEventRecord");
    recorded_.push_back(free_.back());
    free_.pop_back();
    return ++marks_;
}

bool event_stream::passed(std::uint64_t mark)
{
    while (!recorded_.empty()) {
        auto const code = cudaEventQuery(static_cast<cudaEvent_t>(recorded_.front()));
        if (code == cudaErrorNotReady) {
            cudaGetLastError();  // no error
            break;
        }
        check(code, "cudaEventQuery");
        free_.push_back(recorded_.front());
        recorded_.pop_front();
    }
    return mark + recorded_.size() <= marks_;
}

}  // namespace rheo::inline v0::cuda
