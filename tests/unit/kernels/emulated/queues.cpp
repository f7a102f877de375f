// SPDX-License-Identifier: Apache-2.0
#include "queues.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "apart.hpp"

namespace {

struct queues {
    bool late = std::getenv("RHEO_EMULATED_LATE") != nullptr;
    std::shared_ptr<CUstream_st> null = std::make_shared<CUstream_st>();
    std::vector<std::shared_ptr<CUstream_st>> streams{null};
};

/// Never destroyed: work may belong to libraries that go before it.
queues& all()
{
    static auto* const they = new queues;
    return *they;
}

/// Does the first thing in a stream. False: it waits for another device.
bool step(CUstream_st& s)
{
    emulated::at_work const now;
    auto& first = s.waiting.front();
    if (first.elsewhere && !first.elsewhere()) {
        return false;
    }
    auto const taken = std::move(first);  // it may throw
    s.waiting.pop_front();
    ++s.done;
    if (taken.work) {
        taken.work();
    }
    return true;
}

/// Does what it can of a stream up to `count`, and of others what that waits for. Whether all of it is done.
bool advance(CUstream_st& s, std::uint64_t count)
{
    while (s.done < count) {
        auto const after = s.waiting.front().after;
        if ((!after.reached() && !advance(*after.stream, after.count)) || !step(s)) {
            return false;
        }
    }
    return true;
}

/// Asks the work of other devices that has come to the front; it is not late, for they work on their own.
void ask(CUstream_st& s)
{
    while (!s.waiting.empty() && !s.waiting.front().work && s.waiting.front().after.reached() && step(s)) {
    }
}

/// Their work is not waited for, so it is done when it can be.
void remove_destroyed()
{
    for (auto const& s : all().streams) {
        if (s->is_destroyed) {
            advance(*s, s->put);
        }
    }
    std::erase_if(all().streams, [](auto const& s) { return s->is_destroyed && s->done == s->put; });
}

/// A turn for the work of other devices, whenever the program waits or queries.
void turn()
{
    for (auto const& s : all().streams) {
        if (all().late) {
            ask(*s);
        } else {
            advance(*s, s->put);
        }
    }
    remove_destroyed();
}

/// A turn while the program waits for another device: that one may wait for work of any stream, so also what is before such work is not late any more.
void turn_of_all()
{
    for (auto const& s : all().streams) {
        advance(*s, all().late ? s->last_elsewhere : s->put);
    }
    remove_destroyed();
}

void add(CUstream_st& s, emulated::node some)
{
    s.waiting.push_back(std::move(some));
    ++s.put;
    if (!all().late) {
        advance(s, s.put);
    }
}

/// What a query says. Where things are done late, nothing is done for the first one.
cudaError_t query(emulated::point const& to, bool is_first)
{
    if (emulated::forbidden()) {
        return emulated::said(cudaErrorStreamCaptureUnsupported);
    }
    bool const is_late = all().late && is_first && !to.reached();
    turn();
    if (!is_late && !to.reached() && !advance(*to.stream, to.count)) {
        turn_of_all();
    }
    return !is_late && to.reached() ? cudaSuccess : cudaErrorNotReady;  // which is no error, and not remembered
}

}  // namespace

namespace emulated {

bool point::reached() const { return stream == nullptr || stream->done >= count; }

CUstream_st& queue_of(cudaStream_t stream) { return stream == nullptr ? *all().null : *stream; }

void finish(point const& to)
{
    turn();
    while (!to.reached() && !advance(*to.stream, to.count)) {
        turn_of_all();
        std::this_thread::sleep_for(std::chrono::microseconds{20});
    }
}

void finish_all()
{
    for (auto const& s : std::vector{all().streams}) {  // which may lose some meanwhile
        finish(s->end());
    }
}

void expect_nothing_elsewhere(char const* call)
{
    for (auto const& s : all().streams) {
        if (s->done < s->last_elsewhere) {
            abort_with(" while work in a stream waits for another device: on a GPU the call may wait for ever", call);
        }
    }
}

void set_late(bool late)
{
    finish_all();
    all().late = late;
}

void put(cudaStream_t stream, std::function<void()> work)
{
    if (is_captured(stream)) {
        capture(std::move(work));
    } else {
        add(queue_of(stream), {.after = {}, .work = std::move(work), .elsewhere = {}});
    }
}

void put_pending(cudaStream_t stream, std::function<bool()> work)
{
    if (is_captured(stream)) {
        abort_with("work that waits for another device cannot be captured here");
    }
    auto& s = queue_of(stream);
    s.last_elsewhere = s.put + 1;
    add(s, {.after = {}, .work = {}, .elsewhere = std::move(work)});
}

}  // namespace emulated

[[gnu::visibility("default")]] void rheo_emulated_put_pending(void* stream, int (*work)(void* context), void (*destroy)(void* context), void* context)
{
    std::shared_ptr<void> const held{context, [destroy](void* it) {
                                         if (destroy != nullptr) {
                                             destroy(it);
                                         }
                                     }};
    emulated::put_pending(static_cast<cudaStream_t>(stream), [work, held] { return work(held.get()) != 0; });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned)
{
    *stream = all().streams.emplace_back(std::make_shared<CUstream_st>()).get();
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (stream == nullptr) {
        return emulated::said(cudaErrorInvalidResourceHandle);
    }
    stream->is_destroyed = true;
    remove_destroyed();
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (emulated::forbidden()) {
        return emulated::said(cudaErrorStreamCaptureUnsupported);
    }
    emulated::finish(emulated::queue_of(stream).end());
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    auto& s = emulated::queue_of(stream);
    return query(s.end(), std::exchange(s.queried, s.put) != s.put);
}

cudaError_t cudaDeviceSynchronize()
{
    if (emulated::forbidden()) {
        return emulated::said(cudaErrorStreamCaptureUnsupported);
    }
    emulated::expect_nothing_elsewhere("cudaDeviceSynchronize");
    emulated::finish_all();
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned)
{
    *event = new CUevent_st;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

// CUDA lets a capture branch out to other streams and come back by events. This one does not.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (emulated::is_captured(stream) && emulated::forbidden()) {
        return emulated::said(cudaErrorStreamCaptureUnsupported);
    }
    *event = {.at = emulated::queue_of(stream).end(), .is_queried = false};
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (emulated::forbidden()) {
        return emulated::said(cudaErrorStreamCaptureUnsupported);
    }
    emulated::finish(event->at);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return query(event->at, !std::exchange(event->is_queried, true)); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t)
{
    *milliseconds = 0;  // it knows no time
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    if (event->at.stream == nullptr) {
        return cudaSuccess;
    }
    if (emulated::is_captured(stream) && emulated::forbidden()) {
        return emulated::said(cudaErrorStreamCaptureIsolation);
    }
    add(emulated::queue_of(stream), {.after = event->at, .work = {}, .elsewhere = {}});
    return cudaSuccess;
}
