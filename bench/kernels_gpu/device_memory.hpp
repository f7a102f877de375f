#pragma once
// SPDX-License-Identifier: Apache-2.0

// Memory of the device with something in it, for the benchmarks.

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include <cuda_runtime.h>

#include "kernels/cuda/error.hpp"
#include "kernels/cuda/workspace.hpp"
#include "kernels/exact/exact.hpp"

namespace bench {

using namespace rheo;
using rheo::cuda::check;

/// Memory of the device, released at the end.
template <class T>
class memory {
public:
    explicit memory(std::int64_t count) : count_{count}
    {
        void* all = nullptr;
        check(cudaMalloc(&all, static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(T)), "cudaMalloc");
        data_ = {static_cast<T*>(all), [](T* p) { cudaFree(p); }};
    }

    /// The values again and again, as often as they fit. They come from the host once: gigabytes by pageable copies would take longer than what is measured.
    memory(std::int64_t count, std::vector<T> const& values) : memory{count}
    {
        auto filled = std::min<std::int64_t>(std::ssize(values), count);
        auto const bytes = [](std::int64_t some) { return static_cast<std::size_t>(some) * sizeof(T); };
        check(cudaMemcpyAsync(data(), values.data(), bytes(filled), cudaMemcpyHostToDevice, nullptr), "cudaMemcpyAsync");
        while (filled < count) {
            auto const some = std::min(filled, count - filled);
            check(cudaMemcpyAsync(data() + filled, data(), bytes(some), cudaMemcpyDeviceToDevice, nullptr), "cudaMemcpyAsync");
            filled += some;
        }
        check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    }
    explicit memory(std::vector<T> const& values) : memory{std::ssize(values), values} {}

    T* data() const { return data_.get(); }
    std::int64_t size() const { return count_; }

private:
    std::int64_t count_;
    std::shared_ptr<T> data_;
};

/// Draws from the normal distribution, a million of them again and again.
template <class T>
memory<T> numbers(std::int64_t count)
{
    static auto const values = [] {
        std::mt19937 random{1};
        std::normal_distribution<float> draw;
        std::vector<T> all(std::size_t{1} << 20);
        for (auto& v : all) {
            v = static_cast<T>(draw(random));
        }
        return all;
    }();
    return {count, values};
}

struct exact_memory {
    memory<std::int64_t> sums;
    memory<accumulator_state> state{std::vector<accumulator_state>{{.scale_log2 = 20}}};

    explicit exact_memory(std::int64_t count) : sums{count, {0}} {}
    gradient_sum_of<dtype::i64> target() const { return {.sums = sums.data(), .state = state.data(), .contributions = 8}; }
};

/// The same in 32 bits, with a scale for each row.
struct row_memory {
    std::int64_t width;
    memory<std::int32_t> sums;
    memory<row_sum_state> states;

    row_memory(std::int64_t rows, std::int64_t row_width)
        : width{row_width}, sums{rows * width, {0}}, states{std::vector<row_sum_state>(static_cast<std::size_t>(rows), {.scale_log2 = 10})}
    {
    }
    gradient_sum_of<dtype::i32> target() const { return {.sums = sums.data(), .states = states.data(), .width = width, .contributions = 8}; }
};

inline cuda::workspace workspace_of(memory<char> const& scratch)
{
    check(cudaMemsetAsync(scratch.data(), 0, cuda::workspace::counter_bytes, nullptr), "cudaMemsetAsync");
    return {.memory = scratch.data(), .bytes = scratch.size()};
}

}  // namespace bench
