// SPDX-License-Identifier: Apache-2.0
// Compiled twice: with CUDA's own header and with the emulation's.
#include "device.hpp"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/error.hpp"

namespace device {

using rheo::cuda::check;

void* allocate(std::size_t bytes)
{
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
    return memory;
}

void release(void* memory) { cudaFree(memory); }

void copy_to_device(void* to, void const* from, std::size_t bytes)
{
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, nullptr), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

void copy_to_host(void* to, void const* from, std::size_t bytes)
{
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, nullptr), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

rheo::cuda::stream queue() { return {}; }

void set_order([[maybe_unused]] unsigned order)
{
#ifdef __CUDA_EMULATED__
    emulated::set_order(order);
#endif
}

scratch::scratch(std::int64_t bytes) : memory_{allocate(static_cast<std::size_t>(bytes))}, bytes_{bytes}
{
    std::vector<std::byte> const zeros(rheo::cuda::workspace::counter_bytes);
    copy_to_device(memory_, zeros.data(), zeros.size());
}

bool scratch::counters_are_zero() const
{
    std::vector<std::byte> counters(rheo::cuda::workspace::counter_bytes);
    copy_to_host(counters.data(), memory_, counters.size());
    return std::all_of(counters.begin(), counters.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace device
