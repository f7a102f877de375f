// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include "queues.hpp"

using emulated::said;

/// What is done, in this order, when it is launched.
struct CUgraph_st {
    std::vector<std::function<void()>> nodes;
};
struct CUgraphExec_st {
    std::vector<std::function<void()>> nodes;
};

namespace {

/// The capture in progress; there is one at a time.
struct capture_of_stream {
    CUstream_st* stream = nullptr;
    std::unique_ptr<CUgraph_st> graph;
    bool failed = false;
} capturing;

}  // namespace

namespace emulated {

bool forbidden()
{
    capturing.failed = capturing.graph != nullptr;
    return capturing.failed;
}

bool is_captured(cudaStream_t stream) { return capturing.graph != nullptr && capturing.stream == &queue_of(stream); }

void capture(std::function<void()> work) { capturing.graph->nodes.push_back(std::move(work)); }

}  // namespace emulated

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    if (emulated::forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    capturing = {.stream = &emulated::queue_of(stream), .graph = std::make_unique<CUgraph_st>(), .failed = false};
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph)
{
    *graph = nullptr;
    if (!emulated::is_captured(stream)) {
        return said(cudaErrorInvalidValue);
    }
    auto captured = std::exchange(capturing, {});
    if (captured.failed) {
        return said(cudaErrorStreamCaptureInvalidated);
    }
    *graph = captured.graph.release();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long)
{
    *ready = new CUgraphExec_st{graph->nodes};
    return cudaSuccess;
}

// What was launched and is not done yet stays in its stream.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready)
{
    delete ready;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream)
{
    if (emulated::is_captured(stream) && emulated::forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    emulated::count_graph();
    for (auto const& node : ready->nodes) {
        emulated::put(stream, node);
    }
    return cudaSuccess;
}
