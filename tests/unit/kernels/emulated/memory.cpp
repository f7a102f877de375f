// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <unistd.h>

#include "apart.hpp"
#include "queues.hpp"

using emulated::forbidden;
using emulated::said;

namespace {

constexpr std::size_t alignment = 256;  // cudaMalloc's

struct memory {
    struct piece {
        std::size_t size = 0;
        bool is_own = false;  ///< the device's, not page-locked
    };
    std::map<std::byte const*, piece> pieces;  ///< that the device addresses
    std::size_t taken = 0;                     ///< of its own
    std::size_t most_taken = 0;
};

memory& all()
{
    static memory pieces;
    return pieces;
}

bool the_device_addresses(void const* pointer)
{
    auto const after = all().pieces.upper_bound(static_cast<std::byte const*>(pointer));
    return after != all().pieces.begin() && pointer < std::prev(after)->first + std::prev(after)->second.size;
}

/// Of the device: RHEO_EMULATED_MIB, a decimal fraction; without it more than there is.
std::size_t device_memory()
{
    char const* const mib = std::getenv("RHEO_EMULATED_MIB");
    return mib == nullptr ? std::size_t{1} << 40 : static_cast<std::size_t>(std::strtod(mib, nullptr) * (1 << 20));
}

std::size_t free_memory()
{
    auto const taken = all().taken;
    return device_memory() - std::min(device_memory(), taken);
}

/// RHEO_EMULATED_PEAK: a folder with a file for each process, the most bytes of the device that it had at once. Ranks may end without destructors.
void note_peak()
{
    static char const* const folder = std::getenv("RHEO_EMULATED_PEAK");
    if (folder != nullptr && all().taken > all().most_taken) {
        all().most_taken = all().taken;
        std::ofstream{std::string{folder} + '/' + std::to_string(getpid())} << all().most_taken << '\n';
    }
}

cudaError_t take(void** pointer, std::size_t bytes, bool is_own, char const* call)
{
    bool const is_apart = is_own && emulated::apart() != nullptr;
    *pointer = nullptr;
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    emulated::expect_nothing_elsewhere(call);
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
    all().pieces[static_cast<std::byte*>(*pointer)] = {bytes, is_own};
    all().taken += is_own ? bytes : 0;
    note_peak();
    return cudaSuccess;
}

cudaError_t give_back(void* pointer, char const* call)
{
    if (pointer == nullptr) {
        return cudaSuccess;
    }
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    emulated::expect_nothing_elsewhere(call);
    emulated::finish_all();
    auto const found = all().pieces.find(static_cast<std::byte*>(pointer));
    if (emulated::apart() != nullptr && emulated::apart()->holds(pointer)) {
        emulated::apart()->give_back(pointer, found->second.size);
    } else {
        std::free(pointer);
    }
    if (found != all().pieces.end()) {
        all().taken -= found->second.is_own ? found->second.size : 0;
        all().pieces.erase(found);
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) { return take(pointer, bytes, true, "cudaMalloc"); }
cudaError_t cudaFree(void* pointer) { return give_back(pointer, "cudaFree"); }

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total)
{
    *total = device_memory();
    *free = free_memory();
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) { return take(pointer, bytes, false, "cudaMallocHost"); }
cudaError_t cudaFreeHost(void* pointer) { return give_back(pointer, "cudaFreeHost"); }

// A copy from memory that the device does not address may have read it when the call returns, or not before the program waits (CUDA: "might be synchronous");
// one to such memory is done then.
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (!(the_device_addresses(from) && the_device_addresses(to)) && forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    emulated::put(stream, [=] { std::memcpy(to, from, bytes); });
    if (!the_device_addresses(to)) {
        emulated::finish(emulated::queue_of(stream).end());
    }
    return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes)
{
    if (forbidden()) {
        return said(cudaErrorStreamCaptureUnsupported);
    }
    cudaMemsetAsync(to, value, bytes);
    emulated::finish_all();
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream)
{
    if (bytes != 0) {
        emulated::put(stream, [=] { std::memset(to, value, bytes); });
    }
    return cudaSuccess;
}
