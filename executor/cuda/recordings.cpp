// SPDX-License-Identifier: Apache-2.0
#include "executor/cuda/recordings.hpp"

#include <cuda_runtime.h>

#include "kernels/cuda/error.hpp"

namespace rheo::inline v0::cuda {

void recordings::destroy::operator()(CUgraphExec_st* graph) const { cudaGraphExecDestroy(graph); }

recordings::~recordings() { cudaStreamSynchronize(static_cast<cudaStream_t>(queue_->in_order().handle)); }

/// What was launched is done before it goes.
void recordings::forget()
{
    queue_->wait();
    known_.clear();
}

auto recordings::recorded(std::function<void()> const& work) -> graph
{
    auto* const stream = static_cast<cudaStream_t>(queue_->in_order().handle);
    // other threads of the rank write checkpoints and may ask for memory meanwhile
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t drawn = nullptr;
    try {
        work();
    } catch (...) {
        cudaStreamEndCapture(stream, &drawn);
        if (drawn != nullptr) {
            cudaGraphDestroy(drawn);
        }
        cudaGetLastError();  // the work has reported it
        throw;
    }
    check(cudaStreamEndCapture(stream, &drawn), "cudaStreamEndCapture");
    cudaGraphExec_t ready = nullptr;
    auto const code = cudaGraphInstantiate(&ready, drawn, 0);
    cudaGraphDestroy(drawn);
    check(code, "cudaGraphInstantiate");
    return graph{ready};
}

void recordings::perform(slot const& which, std::function<void()> const& work)
{
    if (which.empty()) {
        work();
        return;
    }
    if (arrangement_ != queue_->arrangement() || known_.size() > most) {
        forget();
        arrangement_ = queue_->arrangement();
    }
    auto const place = known_.find(which);
    if (place == known_.end()) {
        work();  // alone: it may ask for memory; what throws is not known afterwards
        known_.try_emplace(which);
        return;
    }
    if (place->second == nullptr) {
        place->second = recorded(work);
    }
    check(cudaGraphLaunch(place->second.get(), static_cast<cudaStream_t>(queue_->in_order().handle)), "cudaGraphLaunch");
}

}  // namespace rheo::inline v0::cuda
