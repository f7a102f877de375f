// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "queues.hpp"

using emulated::said;

namespace {

constexpr std::size_t static_limit = 48 << 10;
constexpr std::size_t opt_in_limit = 227 << 10;

cudaError_t last = cudaSuccess;

std::map<void const*, std::size_t>& allowed()
{
    static std::map<void const*, std::size_t> bytes;
    return bytes;
}

}  // namespace

namespace emulated {

cudaError_t said(cudaError_t code)
{
    last = code == cudaSuccess ? last : code;
    return code;
}

void abort_with(char const* sentence, char const* call)
{
    std::fprintf(stderr, "the emulated device: %s%s\n", call, sentence);
    std::abort();
}

}  // namespace emulated

char const* cudaGetErrorName(cudaError_t code)
{
    switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureIsolation: return "cudaErrorStreamCaptureIsolation";
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
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureIsolation: return "dependency created on uncaptured work in another stream";
    }
    return "unknown";
}

cudaError_t cudaGetLastError()
{
    auto const code = last;
    last = cudaSuccess;
    return code;
}

namespace {

/// RHEO_EMULATED_DEVICES: processes with a device each. A process uses one of them.
int devices()
{
    char const* const count = std::getenv("RHEO_EMULATED_DEVICES");
    return count == nullptr ? 1 : std::atoi(count);
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count)
{
    char const* const absent = std::getenv("RHEO_EMULATED_ABSENT");  // the driver, or the device
    *count = absent == nullptr ? devices() : 0;
    return absent == nullptr ? cudaSuccess : said(std::string_view{absent} == "driver" ? cudaErrorInsufficientDriver : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) { return device >= 0 && device < devices() ? cudaSuccess : said(cudaErrorInvalidValue); }

[[gnu::visibility("default")]] int rheo_emulated_multiprocessors()
{
    char const* const given = std::getenv("RHEO_EMULATED_MULTIPROCESSORS");
    return given == nullptr ? 132 : std::atoi(given);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int)
{
    auto const* const named = std::getenv("RHEO_EMULATED_CAPABILITY");
    int const capability = named != nullptr ? std::atoi(named) : 90;
    *properties = {"an emulated device", capability / 10, capability % 10, rheo_emulated_multiprocessors()};
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int device)
{
    char place[] = "0000:01:00.0";
    if (bytes < static_cast<int>(sizeof place) || device < 0 || device >= devices()) {
        return said(cudaErrorInvalidValue);
    }
    place[6] = static_cast<char>('1' + device);
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
