// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <utility>

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

/// What waits to be done, and memory that such work may still read or write after the call that named it.
struct pending {
    bool late = std::getenv("RHEO_EMULATED_LATE") != nullptr;
    std::deque<std::function<void()>> work;
    std::map<std::byte const*, std::size_t> devices;  ///< memory that the device addresses: its own, managed and page-locked
};

pending& waiting()
{
    static pending all;
    return all;
}

void finish_all()
{
    while (!waiting().work.empty()) {
        auto const next = std::move(waiting().work.front());
        waiting().work.pop_front();
        next();
    }
}

bool the_device_addresses(void const* pointer)
{
    auto const after = waiting().devices.upper_bound(static_cast<std::byte const*>(pointer));
    return after != waiting().devices.begin() && pointer < std::prev(after)->first + std::prev(after)->second;
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
    *count = 1;
    return cudaSuccess;
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

cudaError_t cudaMalloc(void** pointer, std::size_t bytes)
{
    *pointer = ::operator new(bytes == 0 ? 1 : bytes, std::align_val_t{alignment}, std::nothrow);
    if (*pointer == nullptr) {
        return said(cudaErrorMemoryAllocation);
    }
    std::memset(*pointer, 0xff, bytes);
    waiting().devices[static_cast<std::byte*>(*pointer)] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void* pointer)
{
    finish_all();
    waiting().devices.erase(static_cast<std::byte*>(pointer));
    ::operator delete(pointer, std::align_val_t{alignment});
    return cudaSuccess;
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) { return cudaMalloc(pointer, bytes); }
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) { return cudaMalloc(pointer, bytes); }
cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : said(cudaErrorInvalidValue); }

// A copy from memory that the device does not address has read it when the call returns, and one to such memory is done then.
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (waiting().late && !the_device_addresses(from)) {
        auto const read = std::make_shared<std::unique_ptr<std::byte[]>>(new std::byte[bytes]);
        std::memcpy(read->get(), from, bytes);
        emulated::put([=] { std::memcpy(to, read->get(), bytes); });
    } else {
        emulated::put([=] { std::memcpy(to, from, bytes); });
    }
    if (!the_device_addresses(to)) {
        finish_all();
    }
    return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes)
{
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
    finish_all();
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaStreamSynchronize(nullptr); }
cudaError_t cudaEventCreate(cudaEvent_t* event)
{
    *event = nullptr;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaStreamSynchronize(nullptr); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t)
{
    *milliseconds = 0;  // it knows no time
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

namespace emulated {

void set_late(bool late)
{
    finish_all();
    waiting().late = late;
}

void put(std::function<void()> work)
{
    if (waiting().late) {
        waiting().work.push_back(std::move(work));
    } else {
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
    bool const grid_fits = c.gridDim.x >= 1 && c.gridDim.x <= 0x7fffffffU && c.gridDim.y >= 1 && c.gridDim.y <= 65535 && c.gridDim.z >= 1 &&
                           c.gridDim.z <= 65535;
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
