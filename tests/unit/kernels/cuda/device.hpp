#pragma once
// SPDX-License-Identifier: Apache-2.0

// The device that the tests of the CUDA kernels run on: a GPU, or its emulation on the processor. The tests are compiled once and
// linked with either device.cpp, so it is the same test.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cuda/stream.hpp"
#include "kernels/cuda/workspace.hpp"

namespace device {

void* allocate(std::size_t bytes);
void release(void* memory);
void copy_to_device(void* to, void const* from, std::size_t bytes);
void copy_to_host(void* to, void const* from, std::size_t bytes);

/// How many orders of threads and blocks there are to try; on a GPU this many repetitions.
inline constexpr unsigned orders = 4;
/// From now on blocks and threads run in this order: 0 forward, 1 backward, others shuffled.
void set_order(unsigned order);

rheo::cuda::stream queue();

/// Elements in the device's memory, with more beside them that must stay as they are. `offset` elements before the first make it start at an
/// address that is not aligned.
template <class T>
class array {
public:
    explicit array(std::vector<T> const& values, std::size_t offset = 0) : size_{values.size()}, before_{margin / sizeof(T) + offset}
    {
        guarded_.assign(before_ + size_ + margin / sizeof(T), T{});
        std::memset(static_cast<void*>(guarded_.data()), 0x5b, guarded_.size() * sizeof(T));
        std::copy(values.begin(), values.end(), guarded_.begin() + static_cast<std::ptrdiff_t>(before_));
        memory_ = static_cast<T*>(allocate(bytes()));
        copy_to_device(memory_, guarded_.data(), bytes());
    }
    /// Poisoned: each byte is 0xff, which is not a number in any format of floats.
    explicit array(std::int64_t count, std::size_t offset = 0) : array(poisoned(static_cast<std::size_t>(count)), offset) {}
    ~array() { release(memory_); }
    array(array const&) = delete;
    array& operator=(array const&) = delete;

    T* data() const { return memory_ + before_; }

    std::vector<T> host() const
    {
        std::vector<T> all(guarded_.size());
        copy_to_host(all.data(), memory_, bytes());
        return {all.begin() + static_cast<std::ptrdiff_t>(before_), all.begin() + static_cast<std::ptrdiff_t>(before_ + size_)};
    }

    /// Whether what lies beside the elements is untouched.
    bool margins_kept() const
    {
        std::vector<T> all(guarded_.size());
        copy_to_host(all.data(), memory_, bytes());
        auto const same = [&](std::size_t first, std::size_t count) {
            return std::memcmp(all.data() + first, guarded_.data() + first, count * sizeof(T)) == 0;
        };
        return same(0, before_) && same(before_ + size_, guarded_.size() - before_ - size_);
    }

private:
    static constexpr std::size_t margin = 256;

    static std::vector<T> poisoned(std::size_t count)
    {
        std::vector<T> values(count);
        std::memset(static_cast<void*>(values.data()), 0xff, count * sizeof(T));
        return values;
    }

    std::size_t bytes() const { return guarded_.size() * sizeof(T); }

    std::size_t size_;
    std::size_t before_;
    std::vector<T> guarded_;
    T* memory_ = nullptr;
};

/// A workspace whose counters are zero.
class scratch {
public:
    explicit scratch(std::int64_t bytes);
    ~scratch() { release(memory_); }
    scratch(scratch const&) = delete;
    scratch& operator=(scratch const&) = delete;

    operator rheo::cuda::workspace() const { return {.memory = memory_, .bytes = bytes_}; }
    /// Whether the kernels left the counters as they found them.
    bool counters_are_zero() const;

private:
    void* memory_;
    std::int64_t bytes_;
};

}  // namespace device
