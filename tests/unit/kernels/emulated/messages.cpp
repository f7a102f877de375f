// SPDX-License-Identifier: Apache-2.0
// The emulation of work that waits for another device, as a message does: it holds back its own stream alone, goes on while the program waits, and
// forbids what may wait for it on a GPU.
#include <csignal>
#include <cstdio>
#include <functional>

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>

#include "streams.hpp"
#include "support/catch.hpp"

using namespace streams_test;

namespace {

/// Whether a process of its own ends with SIGABRT there.
bool aborts(std::function<void()> const& work)
{
    auto const child = fork();
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);  // not Catch2's report
        rlimit const no_core{0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        (void)std::freopen("/dev/null", "w", stderr);
        alarm(10);  // what waits for ever does not abort
        work();
        _exit(0);
    }
    int status = 0;
    REQUIRE(child > 0);
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

TEST_CASE("messages: a message holds back its own stream alone")
{
    for (bool const is_late : {false, true}) {
        message m;
        made_event const e;
        two_streams s{is_late};
        s.put(s.a, 1);
        m.put(s.a);
        CHECK(e.record(s.a));
        s.put(s.a, 2);
        s.put(s.b, 3);
        CHECK(s.b.synchronize());
        CHECK(s.done == (is_late ? numbers{3} : numbers{1, 3}));
        CHECK(cudaStreamQuery(s.a.handle) == cudaErrorNotReady);
        CHECK(cudaStreamQuery(s.a.handle) == cudaErrorNotReady);
        CHECK(cudaEventQuery(e.handle) == cudaErrorNotReady);
        auto const asked = m.asked;
        CHECK(asked > 0);
        CHECK(s.b.synchronize());
        CHECK(m.asked > asked);
        m.may_end = true;
        CHECK(s.b.synchronize());
        CHECK(s.done == (is_late ? numbers{3, 1} : numbers{1, 3, 2}));
        CHECK(cudaEventQuery(e.handle) == cudaSuccess);
        auto const last = m.asked;
        CHECK(s.a.synchronize());
        CHECK(s.done == (is_late ? numbers{3, 1, 2} : numbers{1, 3, 2}));
        CHECK(m.asked == last);
    }
}

TEST_CASE("messages: a wait ends when the message does")
{
    for (bool const is_late : {false, true}) {
        int asked = 0;
        made_event const e;
        two_streams s{is_late};
        auto const put_message = [&] { emulated::put_pending(s.a.handle, [&] { return ++asked % 5 == 0; }); };
        put_message();
        s.put(s.a, 1);
        CHECK(s.a.synchronize());
        CHECK(asked == 5);
        CHECK(s.done == numbers{1});
        put_message();
        CHECK(e.record(s.a));
        CHECK(e.holds_back(s.b));
        s.put(s.b, 2);
        CHECK(s.done == numbers{1});
        CHECK(s.b.synchronize());
        CHECK(asked == 10);
        CHECK(s.done == numbers{1, 2});
    }
}

TEST_CASE("messages: a wait sends what is behind late work elsewhere")
{
    message answer;  // to what is sent in another stream
    two_streams s;
    answer.put(s.a);
    s.put(s.b, 1);
    emulated::put_pending(s.b.handle, [&] { return answer.may_end = true; });
    s.put(s.b, 2);
    CHECK(s.a.synchronize());
    CHECK(s.done == numbers{1});
}

TEST_CASE("messages: calls that may wait for a message abort")
{
    message m;
    page_locked_number const x;
    two_streams s{false};
    void* place = nullptr;
    m.put(s.a);
    CHECK(aborts([&] { cudaMalloc(&place, 8); }));
    CHECK(aborts([&] { cudaMallocHost(&place, 8); }));
    CHECK(aborts([&] { cudaFree(x.at); }));
    CHECK(aborts([&] { cudaFreeHost(x.at); }));
    CHECK(aborts([] { cudaDeviceSynchronize(); }));
    CHECK(cudaFree(nullptr) == cudaSuccess);
    CHECK(cudaFreeHost(nullptr) == cudaSuccess);
    m.may_end = true;
    CHECK(s.a.synchronize());
    CHECK_FALSE(aborts([] { cudaDeviceSynchronize(); }));
}

TEST_CASE("messages: a message in a captured stream aborts")
{
    message m;
    two_streams s{false};
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(s.a.handle, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(aborts([&] { m.put(s.a); }));
    CHECK_FALSE(aborts([&] { m.put(s.b); }));
    CHECK(cudaStreamEndCapture(s.a.handle, &graph) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("messages: a destroyed stream still ends its work")
{
    CHECK(cudaStreamDestroy(nullptr) == cudaErrorInvalidResourceHandle);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    for (bool const is_late : {false, true}) {
        message m;
        two_streams s{is_late};
        {
            made_stream const c;
            s.put(c, 1);
            m.put(c);
            s.put(c, 2);
        }
        CHECK(s.done == numbers{1});
        CHECK(s.b.synchronize());
        CHECK(s.done == numbers{1});
        m.may_end = true;
        CHECK(s.b.synchronize());
        CHECK(s.done == numbers{1, 2});
    }
}

TEST_CASE("messages: a library opened later finds the entry")
{
    auto* const entry = reinterpret_cast<decltype(&rheo_emulated_put_pending)>(dlsym(RTLD_DEFAULT, "rheo_emulated_put_pending"));
    REQUIRE(entry != nullptr);
    struct counts {
        int asked = 0;
        int destroyed = 0;
    } of;
    two_streams s{false};
    auto* const third = +[](void* context) { return static_cast<int>(++static_cast<counts*>(context)->asked == 3); };
    auto* const destroy = +[](void* context) { ++static_cast<counts*>(context)->destroyed; };
    entry(s.a.handle, third, destroy, &of);
    CHECK(of.asked == 1);
    CHECK(of.destroyed == 0);
    CHECK(s.a.synchronize());
    CHECK(of.asked == 3);
    CHECK(of.destroyed == 1);
    of.asked = 2;
    entry(s.a.handle, third, nullptr, &of);
    CHECK(cudaStreamQuery(s.a.handle) == cudaSuccess);
    CHECK(of.asked == 3);
    CHECK(of.destroyed == 1);
}
