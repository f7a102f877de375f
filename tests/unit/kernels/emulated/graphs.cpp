// SPDX-License-Identifier: Apache-2.0
// The emulation of graphs: what is captured is done when it is launched, each time, with arguments as they were and memory as it is; what CUDA forbids
// meanwhile ends the capture.
#include <array>
#include <deque>
#include <vector>

#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "support/catch.hpp"

using namespace rheo::cuda;

namespace {

void add(unsigned* to, unsigned const* from, unsigned more) { to[threadIdx.x] += from[threadIdx.x] + more; }

/// Memory of the device for four numbers.
struct numbers {
    explicit numbers(unsigned first)
    {
        void* place = nullptr;
        REQUIRE(cudaMalloc(&place, 4 * sizeof(unsigned)) == cudaSuccess);
        data = static_cast<unsigned*>(place);
        set(first);
    }
    ~numbers() { cudaFree(data); }
    numbers(numbers const&) = delete;
    numbers& operator=(numbers const&) = delete;

    /// Copied from memory of its own, because the call may return before it has been read.
    void set(unsigned first)
    {
        auto const& source = sources.emplace_back(std::array{first, first + 1, first + 2, first + 3});
        REQUIRE(cudaMemcpyAsync(data, source.data(), sizeof source, cudaMemcpyDefault) == cudaSuccess);
    }
    std::vector<unsigned> values() const
    {
        std::vector<unsigned> all(4);
        REQUIRE(cudaMemcpyAsync(all.data(), data, 4 * sizeof(unsigned), cudaMemcpyDefault) == cudaSuccess);
        REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
        return all;
    }
    unsigned* data;
    std::deque<std::array<unsigned, 4>> sources;
};

template <class Work>
cudaGraph_t captured(Work const& work)
{
    REQUIRE(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    work();
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(nullptr, &graph);
    return graph;
}

}  // namespace

TEST_CASE("graphs: captured work runs at each launch, not before")
{
    for (bool const late : {false, true}) {
        emulated::set_late(late);
        {
            numbers to{0};
            numbers from{10};
            numbers copy{0};
            unsigned more = 100;
            auto* const graph = captured([&] {
                launch({}, {.grid = 1, .block = 4}, add, to.data, static_cast<unsigned const*>(from.data), more);
                CHECK(cudaMemcpyAsync(copy.data, to.data, 4 * sizeof(unsigned), cudaMemcpyDefault) == cudaSuccess);
                CHECK(cudaMemsetAsync(from.data, 0, sizeof(unsigned)) == cudaSuccess);
            });
            REQUIRE(graph != nullptr);
            more = 7;
            CHECK(to.values() == std::vector{0U, 1U, 2U, 3U});
            cudaGraphExec_t ready = nullptr;
            REQUIRE(cudaGraphInstantiate(&ready, graph) == cudaSuccess);
            CHECK(cudaGraphDestroy(graph) == cudaSuccess);
            auto const before = emulated::work();
            CHECK(cudaGraphLaunch(ready, nullptr) == cudaSuccess);
            from.set(20);  // after the launch, in order
            CHECK(cudaGraphLaunch(ready, nullptr) == cudaSuccess);
            CHECK(copy.values() == std::vector{230U, 233U, 236U, 239U});
            CHECK(from.values() == std::vector{0U, 21U, 22U, 23U});
            CHECK(emulated::work().graphs - before.graphs == 2);
            CHECK(emulated::work().launches - before.launches == 2);
            CHECK(cudaGraphExecDestroy(ready) == cudaSuccess);
        }
        emulated::set_late(false);
    }
}

TEST_CASE("graphs: forbidden calls fail and end the capture")
{
    numbers here{1};
    numbers there{2};
    unsigned at_host[4] = {};
    void* place = nullptr;
    auto const ends = [&](auto const& call) {
        cudaError_t said = cudaSuccess;
        auto* const graph = captured([&] { said = call(); });
        CHECK(graph == nullptr);
        CHECK(said == cudaErrorStreamCaptureUnsupported);
        CHECK(cudaGetLastError() == cudaErrorStreamCaptureInvalidated);
    };
    ends([] { return cudaStreamSynchronize(nullptr); });
    ends([] { return cudaDeviceSynchronize(); });
    ends([&] { return cudaMalloc(&place, 8); });
    ends([&] { return cudaMallocHost(&place, 8); });
    ends([&] { return cudaFree(here.data); });
    ends([&] { return cudaMemset(here.data, 0, 4); });
    ends([&] { return cudaMemcpyAsync(at_host, here.data, sizeof at_host, cudaMemcpyDefault); });
    ends([&] { return cudaMemcpyAsync(here.data, at_host, sizeof at_host, cudaMemcpyDefault); });
    auto* const graph = captured([&] { CHECK(cudaMemcpyAsync(here.data, there.data, sizeof at_host, cudaMemcpyDefault) == cudaSuccess); });
    CHECK(graph != nullptr);
    cudaGraphDestroy(graph);
    CHECK(here.values() == std::vector{1U, 2U, 3U, 4U});  // it was captured, and not done
    cudaGraph_t none = nullptr;
    CHECK(cudaStreamEndCapture(nullptr, &none) == cudaErrorInvalidValue);
    cudaGetLastError();
}

TEST_CASE("graphs: the processor touches the device's own memory", "[.touch]")
{
    numbers const here{1};
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    CHECK(*const_cast<unsigned volatile*>(here.data) == 1);  // where it is apart this ends with a signal
}
