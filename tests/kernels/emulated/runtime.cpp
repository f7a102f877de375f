// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>
#include <new>

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
    *properties = {"an emulated device"};
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
    return cudaSuccess;
}

cudaError_t cudaFree(void* pointer)
{
    ::operator delete(pointer, std::align_val_t{alignment});
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    if (bytes != 0) {
        std::memcpy(to, from, bytes);
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t)
{
    if (bytes != 0) {
        std::memset(to, value, bytes);
    }
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream)
{
    *stream = nullptr;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* event)
{
    *event = nullptr;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t)
{
    *milliseconds = 0;  // it knows no time
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

namespace emulated {

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
