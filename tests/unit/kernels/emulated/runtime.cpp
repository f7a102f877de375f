// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "apart.hpp"
#include "cuda_runtime.h"

namespace {

constexpr std::size_t alignment = 256;  // cudaMalloc's
constexpr std::size_t static_limit = 48 << 10;
constexpr std::size_t opt_in_limit = 227 << 10;

cudaError_t last = cudaSuccess;

cudaError_t said(cudaError_t code)
{
    last = code == cudaSuccess ? last : code;
    return code;
}

}  // namespace

/// What is done, in this order, when it is launched.
struct CUgraph_st {
    std::vector<std::function<void()>> nodes;
};
struct CUgraphExec_st {
    std::vector<std::function<void()>> nodes;
};
/// Passed once so many things have been done of all that were put.
struct CUevent_st {
    std::uint64_t after = 0;
};

namespace {

/// What waits to be done, and memory that such work may still read or write after the call that named it.
struct pending {
    bool late = std::getenv("RHEO_EMULATED_LATE") != nullptr;
    std::deque<std::function<void()>> work;
    std::uint64_t done = 0;
    struct piece {
        std::size_t size = 0;
        bool is_own = false;  ///< the device's, not page-locked
    };
    std::map<std::byte const*, piece> devices;  ///< memory that the device addresses
    std::size_t taken = 0;                      ///< of its own
    std::size_t most_taken = 0;
    std::unique_ptr<CUgraph_st> captured;  ///< of the capture in progress
    bool capture_failed = false;
};

pending& waiting()
{
    static pending all;
    return all;
}

/// What CUDA forbids while a stream is captured, and what it says then; the capture comes to nothing.
bool forbidden()
{
    waiting().capture_failed = waiting().captured != nullptr;
    return waiting().capture_failed;
}

void finish(std::uint64_t count)
{
    while (!waiting().work.empty() && waiting().done < count) {
        auto const next = std::move(waiting().work.front());
        waiting().work.pop_front();
        ++waiting().done;
        emulated::at_work const now;
        next();
    }
}

void finish_all() { finish(waiting().done + waiting().work.size()); }

bool the_device_addresses(void const* pointer)
{
    auto const after = waiting().devices.upper_bound(static_cast<std::byte const*>(pointer));
    return after != waiting().devices.begin() && pointer < std::prev(after)->first + std::prev(after)->second.size;
}

std::map<void const*, std::size_t>& allowed()
{
    static std::map<void const*, std::size_t> bytes;
    return bytes;
}

}  // namespace

char const* cudaGetErrorName(cudaError_t code)
{
    switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    }
    return "unknown";
}

char const* cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    }
    return "unknown";
}

cudaError_t cudaGetLastError()
{
    auto const code = last;
    last = cudaSuccess;
    return code;
}

cudaError_t cudaGetDeviceCount(int* count)
{
    char const* const absent = std::getenv("RHEO_EMULATED_ABSENT");  // the driver, or the device
    *count = absent == nullptr ? 1 : 0;
    return absent == nullptr ? cudaSuccess : said(std::string_view{absent} == "driver" ? cudaErrorInsufficientDriver : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int)
{
    *properties = {"an emulated device", 9, 0};
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int)
{
    constexpr char place[] = "0000:01:00.0";
    if (bytes < static_cast<int>(sizeof place)) {
        return said(cudaErrorInvalidValue);
    }
    std::memcpy(address, place, sizeof place);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version)
{
    *version = 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version)
{
    *version = 0;
    return cudaSuccess;
}

namespace {

/// Of the device: RHEO_EMULATED_MIB, a decimal fraction; without it more than there is.
std::size_t device_memory()
{
    char const* const mib = std::getenv("RHEO_EMULATED_MIB");
    return mib == nullptr ? std::size_t{1} << 40 : static_cast<std::size_t>(std::strtod(mib, nullptr) * (1 << 20));
}

std::size_t free_memory()
{
    auto const taken = waiting().taken;
    return device_memory() - std::min(device_memory(), taken);
}

/// RHEO_EMULATED_PEAK: a folder with a file for each process, the most bytes of the device that it had at once. Ranks may end without destructors.
void note_peak()
{
    static char const* const folder = std::getenv("RHEO_EMULATED_PEAK");
    if (folder != nullptr && waiting().taken > waiting().most_taken) {
        waiting().most_taken = waiting().taken;
        std::ofstream{std::string{folder} + '/' + std::to_string(getpid())} << waiting().most_taken << '\n';
    }
}

cudaError_t take(void** pointer, std::size_t bytes, bool is_own)
{
    bool const is_apart = is_own && emulated::apart() != nullptr;
    *pointer = nullptr;
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    if (is_own && bytes > free_memory()) {
        return said(cudaErrorMemoryAllocation);
    }
    if (is_apart) {
        *pointer = emulated::apart()->take(bytes);
    } else if (posix_memalign(pointer, alignment, bytes == 0 ? 1 : bytes) != 0) {
        *pointer = nullptr;
    }
    if (*pointer == nullptr) {
        return said(cudaErrorMemoryAllocation);
    }
    emulated::at_work const now;
    std::memset(*pointer, 0xff, bytes);
    waiting().devices[static_cast<std::byte*>(*pointer)] = {bytes, is_own};
    waiting().taken += is_own ? bytes : 0;
    note_peak();
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) { return take(pointer, bytes, true); }

cudaError_t cudaFree(void* pointer)
{
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    finish_all();
    auto const found = waiting().devices.find(static_cast<std::byte*>(pointer));
    if (emulated::apart() != nullptr && emulated::apart()->holds(pointer)) {
        emulated::apart()->give_back(pointer, found->second.size);
    } else {
        std::free(pointer);
    }
    if (found != waiting().devices.end()) {
        waiting().taken -= found->second.is_own ? found->second.size : 0;
        waiting().devices.erase(found);
    }
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total)
{
    *total = device_memory();
    *free = free_memory();
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) { return take(pointer, bytes, false); }
cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : said(cudaErrorInvalidValue); }

// A copy from memory that the device does not address may have read it when the call returns, or not before the program waits (CUDA: "might be synchronous");
// one to such memory is done then.
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (!(the_device_addresses(from) && the_device_addresses(to)) && forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    emulated::put([=] { std::memcpy(to, from, bytes); });
    if (!the_device_addresses(to)) {
        finish_all();
    }
    return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes)
{
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    cudaMemsetAsync(to, value, bytes);
    finish_all();
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t)
{
    if (bytes != 0) {
        emulated::put([=] { std::memset(to, value, bytes); });
    }
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream)
{
    *stream = nullptr;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    finish_all();
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaStreamSynchronize(nullptr); }
cudaError_t cudaEventCreate(cudaEvent_t* event)
{
    *event = new CUevent_st;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    event->after = waiting().done + waiting().work.size();
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    finish(event->after);
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t)
{
    *milliseconds = 0;  // it knows no time
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode)
{
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    waiting().captured = std::make_unique<CUgraph_st>();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph)
{
    *graph = nullptr;
    auto captured = std::exchange(waiting().captured, nullptr);
    if (captured == nullptr) {
        return said(cudaErrorInvalidValue);
    }
    if (std::exchange(waiting().capture_failed, false)) {
        return said(cudaErrorStreamCaptureInvalidated);
    }
    *graph = captured.release();
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

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready)
{
    if (waiting().captured == nullptr) {
        finish_all();  // what was launched is done before it goes
    }
    delete ready;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t)
{
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    emulated::count_graph();
    for (auto const& node : ready->nodes) {
        emulated::put(node);
    }
    return cudaSuccess;
}

namespace emulated {

void set_late(bool late)
{
    finish_all();
    waiting().late = late;
}

void put(std::function<void()> work)
{
    if (waiting().captured != nullptr) {
        waiting().captured->nodes.push_back(std::move(work));
    } else if (waiting().late) {
        waiting().work.push_back(std::move(work));
    } else {
        emulated::at_work const now;
        work();
    }
}

cudaError_t allow_shared_memory(void const* kernel, int bytes)
{
    if (bytes < 0 || static_cast<std::size_t>(bytes) > opt_in_limit) {
        return said(cudaErrorInvalidValue);
    }
    allowed()[kernel] = static_cast<std::size_t>(bytes);
    return cudaSuccess;
}

cudaError_t checked_launch(cudaLaunchConfig_t const& c, void const* kernel)
{
    auto const threads = std::uint64_t{c.blockDim.x} * c.blockDim.y * c.blockDim.z;
    bool const block_fits = threads >= 1 && threads <= 1024 && c.blockDim.z <= 64;
    bool const grid_fits =
        c.gridDim.x >= 1 && c.gridDim.x <= 0x7fffffffU && c.gridDim.y >= 1 && c.gridDim.y <= 65535 && c.gridDim.z >= 1 && c.gridDim.z <= 65535;
    if (!block_fits || !grid_fits) {
        return said(cudaErrorInvalidConfiguration);
    }
    auto const found = allowed().find(kernel);
    if (c.dynamicSmemBytes > (found == allowed().end() ? static_limit : std::max(found->second, static_limit))) {
        return said(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

}  // namespace emulated
