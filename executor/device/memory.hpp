#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where things lie that kernels compute with. A backend has its own memory and one for messages; on the host both are the same, on a device
// the processor looks at what lies in its own by copies alone.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

class memory {
public:
    memory() = default;
    memory(memory const&) = delete;
    memory& operator=(memory const&) = delete;
    virtual ~memory() = default;

    /// Zeros, from a cache line on. @throws std::bad_alloc and what the device's runtime says
    virtual void* take(std::size_t size) = 0;
    virtual void give_back(void* place) noexcept = 0;
    /// Several at once, so that many of middling size may lie in few large pages; each is given back by itself.
    virtual std::vector<void*> take_all(std::span<std::size_t const> sizes);
    /// Whether the processor may read and write it.
    virtual bool addressed_by_processor() const = 0;
};

/// The processor's own.
memory& host_memory();

/// Elements that lie in a memory. Who looks at them by index or iterator needs one that the processor addresses.
template <class T>
class array {
    static_assert(std::is_trivially_copyable_v<T>, "elements of device memory are bits");

public:
    explicit array(memory& where = host_memory()) : where_{&where}, addressed_{where.addressed_by_processor()} {}
    array(memory& where, std::size_t count) : array{where} { resize(count); }
    array(array&& other) noexcept
        : where_{other.where_}, addressed_{other.addressed_}, data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)}
    {
    }
    array& operator=(array&& other) noexcept
    {
        std::swap(where_, other.where_);
        std::swap(addressed_, other.addressed_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~array() { where_->give_back(data_); }

    /// What it held is gone when the size is another: zeros.
    void resize(std::size_t count)
    {
        if (count != size_) {
            where_->give_back(std::exchange(data_, nullptr));
            size_ = 0;
            data_ = count == 0 ? nullptr : static_cast<T*>(where_->take(count * sizeof(T)));
            size_ = count;
        }
    }

    /// Elements that its memory has given; what it held is gone.
    void adopt(T* taken, std::size_t count)
    {
        where_->give_back(std::exchange(data_, taken));
        size_ = count;
    }

    T* data() { return data_; }
    T const* data() const { return data_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* begin() { return here(); }
    T* end() { return here() + size_; }
    T const* begin() const { return here(); }
    T const* end() const { return here() + size_; }
    T& operator[](std::size_t i) { return here()[i]; }
    T const& operator[](std::size_t i) const { return here()[i]; }

    friend bool operator==(array const& a, array const& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

private:
    T* here() const
    {
        expects(addressed_, "elements in a device's memory are copied before the processor looks at them");
        return data_;
    }

    memory* where_;
    bool addressed_;
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace rheo::inline v0
