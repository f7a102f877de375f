// SPDX-License-Identifier: Apache-2.0
// The emulation of streams: each is a queue of its own, and events order them.
#include "streams.hpp"

#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "support/catch.hpp"

using namespace rheo::cuda;
using namespace streams_test;

namespace {

void add_one(int* to) { ++*to; }

}  // namespace

TEST_CASE("streams: a late stream is waited for alone")
{
    two_streams s;
    s.put(s.a, 1);
    s.put(s.b, 2);
    emulated::put(nullptr, [&] { s.done.push_back(3); });
    CHECK(s.done.empty());
    CHECK(s.b.synchronize());
    CHECK(s.done == numbers{2});
    CHECK(s.a.synchronize());
    CHECK(s.done == numbers{2, 1});
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(s.done == numbers{2, 1, 3});
}

TEST_CASE("streams: kernels, copies, graphs go to their stream")
{
    page_locked_number const x;
    page_locked_number const y;
    two_streams s;
    REQUIRE(cudaStreamBeginCapture(s.a.handle, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    launch({s.a.handle}, {.grid = 1, .block = 1}, add_one, x.at);
    cudaGraph_t drawn = nullptr;
    cudaGraphExec_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(s.a.handle, &drawn) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&graph, drawn) == cudaSuccess);
    *y.at = 7;
    auto const put = [&](int which) {
        switch (which) {
        case 0: launch({s.a.handle}, {.grid = 1, .block = 1}, add_one, x.at); return;
        case 1: cudaMemcpyAsync(x.at, y.at, sizeof(int), cudaMemcpyDefault, s.a.handle); return;
        case 2: cudaMemsetAsync(x.at, 1, sizeof(int), s.a.handle); return;
        default: cudaGraphLaunch(graph, s.a.handle);
        }
    };
    numbers const expected{1, 7, 0x01010101, 0x01010102};
    for (int which = 0; which < 4; ++which) {
        auto const before = *x.at;
        put(which);
        CHECK(s.b.synchronize());
        CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
        CHECK(*x.at == before);
        CHECK(s.a.synchronize());
        CHECK(*x.at == expected[static_cast<std::size_t>(which)]);
    }
    put(3);
    CHECK(cudaGraphExecDestroy(graph) == cudaSuccess);
    CHECK(cudaGraphDestroy(drawn) == cudaSuccess);
    CHECK(*x.at == 0x01010102);
    CHECK(s.a.synchronize());  // a graph may go before what was launched is done
    CHECK(*x.at == 0x01010103);
}

TEST_CASE("streams: an event orders two streams")
{
    made_event const e;
    made_event const never;
    two_streams s;
    s.put(s.a, 1);
    CHECK(e.record(s.a));
    s.put(s.a, 3);
    CHECK(never.holds_back(s.b));
    CHECK(e.holds_back(s.b));
    s.put(s.b, 2);
    CHECK(s.b.synchronize());
    CHECK(s.done == numbers{1, 2});
    CHECK(s.a.synchronize());
    CHECK(s.done == numbers{1, 2, 3});
}

TEST_CASE("streams: a wait is for the record before it")
{
    made_event const e;
    two_streams s;
    s.put(s.a, 1);
    CHECK(e.record(s.a));
    CHECK(e.holds_back(s.b));
    s.put(s.b, 2);
    s.put(s.a, 3);
    CHECK(e.record(s.a));
    s.put(s.a, 4);
    CHECK(s.b.synchronize());
    CHECK(s.done == numbers{1, 2});
    CHECK(cudaEventSynchronize(e.handle) == cudaSuccess);
    CHECK(s.done == numbers{1, 2, 3});
}

TEST_CASE("streams: queries say not ready, then ready")
{
    made_event const e;
    {
        two_streams s;
        CHECK(cudaStreamQuery(s.a.handle) == cudaSuccess);
        CHECK(cudaEventQuery(e.handle) == cudaSuccess);  // it was never recorded
        s.put(s.b, 1);
        s.put(s.a, 2);
        CHECK(cudaStreamQuery(s.a.handle) == cudaErrorNotReady);
        CHECK(cudaGetLastError() == cudaSuccess);
        CHECK(s.done.empty());
        CHECK(cudaStreamQuery(s.a.handle) == cudaSuccess);
        CHECK(s.done == numbers{2});
        s.put(s.a, 3);
        CHECK(e.record(s.a));
        s.put(s.a, 4);
        CHECK(cudaEventQuery(e.handle) == cudaErrorNotReady);
        CHECK(s.done == numbers{2});
        CHECK(cudaEventQuery(e.handle) == cudaSuccess);
        CHECK(s.done == numbers{2, 3});
    }
    two_streams s{false};
    s.put(s.a, 1);
    CHECK(e.record(s.a));
    CHECK(cudaStreamQuery(s.a.handle) == cudaSuccess);
    CHECK(cudaEventQuery(e.handle) == cudaSuccess);
}

TEST_CASE("streams: a late copy to pageable memory is done")
{
    page_locked_number const x;
    int at_host = 0;
    two_streams s;
    s.put(s.b, 1);
    cudaMemsetAsync(x.at, 1, sizeof(int), s.a.handle);
    CHECK(cudaMemcpyAsync(&at_host, x.at, sizeof(int), cudaMemcpyDefault, s.a.handle) == cudaSuccess);
    CHECK(at_host == 0x01010101);
    CHECK(s.done.empty());
}

TEST_CASE("streams: a capture is of its stream alone")
{
    message m;
    made_event const e;
    two_streams s{false};
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(s.a.handle, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    s.put(s.a, 1);
    s.put(s.b, 2);
    m.put(s.b);
    CHECK(e.record(s.b));
    CHECK(s.done == numbers{2});
    CHECK(m.asked == 1);
    CHECK(cudaStreamEndCapture(s.b.handle, &graph) == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaStreamEndCapture(s.a.handle, &graph) == cudaSuccess);
    cudaGraphExec_t ready = nullptr;
    REQUIRE(cudaGraphInstantiate(&ready, graph) == cudaSuccess);
    CHECK(cudaGraphLaunch(ready, s.a.handle) == cudaSuccess);
    CHECK(s.done == numbers{2, 1});
    CHECK(cudaGraphExecDestroy(ready) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    m.may_end = true;
    CHECK(s.b.synchronize());

    auto const ends = [&](auto const& call, cudaError_t expected) {
        REQUIRE(cudaStreamBeginCapture(s.a.handle, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
        CHECK(call() == expected);
        CHECK(cudaStreamEndCapture(s.a.handle, &graph) == cudaErrorStreamCaptureInvalidated);
        CHECK(cudaGetLastError() == cudaErrorStreamCaptureInvalidated);
    };
    ends([&] { return cudaStreamWaitEvent(s.a.handle, e.handle); }, cudaErrorStreamCaptureIsolation);
    ends([&] { return cudaEventRecord(e.handle, s.a.handle); }, cudaErrorStreamCaptureUnsupported);
    ends([&] { return cudaStreamQuery(s.b.handle); }, cudaErrorStreamCaptureUnsupported);
    ends([&] { return cudaEventQuery(e.handle); }, cudaErrorStreamCaptureUnsupported);
}
