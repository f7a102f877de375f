#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the tests of streams have in common.

#include <functional>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "support/catch.hpp"

namespace streams_test {

using numbers = std::vector<int>;

struct late {
    explicit late(bool is_late = true) { emulated::set_late(is_late); }
    ~late() { emulated::set_late(false); }
    late(late const&) = delete;
    late& operator=(late const&) = delete;
};

struct made_stream {
    made_stream() { REQUIRE(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess); }
    ~made_stream() { cudaStreamDestroy(handle); }
    made_stream(made_stream const&) = delete;
    made_stream& operator=(made_stream const&) = delete;

    void put(std::function<void()> work) const { emulated::put(handle, std::move(work)); }
    bool synchronize() const { return cudaStreamSynchronize(handle) == cudaSuccess; }
    cudaStream_t handle = nullptr;
};

struct made_event {
    made_event() { REQUIRE(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming) == cudaSuccess); }
    ~made_event() { cudaEventDestroy(handle); }
    made_event(made_event const&) = delete;
    made_event& operator=(made_event const&) = delete;

    bool record(made_stream const& s) const { return cudaEventRecord(handle, s.handle) == cudaSuccess; }
    bool holds_back(made_stream const& s) const { return cudaStreamWaitEvent(s.handle, handle) == cudaSuccess; }
    cudaEvent_t handle = nullptr;
};

/// Work in two streams that notes its number when it is done.
struct two_streams {
    numbers done;
    late as_late_as_it_may;
    made_stream a;
    made_stream b;

    explicit two_streams(bool is_late = true) : as_late_as_it_may{is_late} {}
    void put(made_stream const& s, int number)
    {
        s.put([this, number] { done.push_back(number); });
    }
};

/// What another device does: it is done once it is let through.
struct message {
    bool may_end = false;
    int asked = 0;

    void put(made_stream const& s)
    {
        emulated::put_pending(s.handle, [this] {
            ++asked;
            return may_end;
        });
    }
};

/// Memory for one number that the processor may read at any time.
struct page_locked_number {
    page_locked_number()
    {
        void* place = nullptr;
        REQUIRE(cudaMallocHost(&place, sizeof(int)) == cudaSuccess);
        at = static_cast<int*>(place);
        *at = 0;
    }
    ~page_locked_number() { cudaFreeHost(at); }
    page_locked_number(page_locked_number const&) = delete;
    page_locked_number& operator=(page_locked_number const&) = delete;
    int* at = nullptr;
};

}  // namespace streams_test
