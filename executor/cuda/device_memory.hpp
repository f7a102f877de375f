#pragma once
// SPDX-License-Identifier: Apache-2.0

// Memory that the CUDA runtime gives: the device's own, and page-locked memory of the host.

#include <cstddef>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "executor/device/memory.hpp"
#include "kernels/cuda/error.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0::cuda {

/// `Take` and `Give` are the runtime's functions. `Addressed`: the processor reads and writes what they give, too.
template <auto Take, auto Give, bool Addressed>
class device_memory final : public memory {
public:
    explicit device_memory(char const* call) : call_{call} {}

    void* take(std::size_t size) override
    {
        void* place = nullptr;
        if (auto const code = Take(&place, size); code != cudaSuccess) {
            cudaGetLastError();  // reported here, not again by a later call
            throw exit_error{exit_code::environment, fmt::format("{} of {} bytes: {}", call_, size, cudaGetErrorString(code))};
        }
        check(cudaMemset(place, 0, size), "cudaMemset");
        check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");  // the queue does not wait for the default stream
        return place;
    }
    void give_back(void* place) noexcept override
    {
        if (place != nullptr) {
            Give(place);
        }
    }
    bool addressed_by_processor() const override { return Addressed; }

private:
    char const* call_;
};

using memory_of_the_device =
    device_memory<+[](void** place, std::size_t size) { return cudaMalloc(place, size); }, +[](void* place) { return cudaFree(place); }, false>;
using page_locked_memory =
    device_memory<+[](void** place, std::size_t size) { return cudaMallocHost(place, size); }, +[](void* place) { return cudaFreeHost(place); }, true>;

}  // namespace rheo::inline v0::cuda
