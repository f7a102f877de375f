#pragma once
// SPDX-License-Identifier: Apache-2.0

// Arrays that begin at a line of the cache, as numerical codes allocate them. What the ways are measured on all begins there.

#include <cstddef>
#include <new>
#include <vector>

template <class T>
struct line_allocator {
    using value_type = T;
    static constexpr std::align_val_t line{64};

    line_allocator() = default;
    template <class Other>
    line_allocator(line_allocator<Other> const&)
    {
    }

    T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), line)); }
    void deallocate(T* data, std::size_t) { ::operator delete(data, line); }

    friend bool operator==(line_allocator const&, line_allocator const&) = default;
};

template <class T>
using aligned_vector = std::vector<T, line_allocator<T>>;
