#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where things lie that kernels compute with. A back end has up to three kinds of memory: its own, one that the processor
// addresses too, and one for messages; on the host all three are the same.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

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
};

/// The processor's own.
memory& host_memory();

/// Elements that lie in a memory. Who indexes it needs a memory that the processor addresses.
template <class T>
class array {
    static_assert(std::is_trivially_copyable_v<T>, "elements of device memory are bits");

public:
    explicit array(memory& where = host_memory()) : where_{&where} {}
    array(memory& where, std::size_t count) : array{where} { resize(count); }
    array(array&& other) noexcept : where_{other.where_}, data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
    array& operator=(array&& other) noexcept
    {
        std::swap(where_, other.where_);
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

    T* data() { return data_; }
    T const* data() const { return data_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    T const* begin() const { return data_; }
    T const* end() const { return data_ + size_; }
    T& operator[](std::size_t i) { return data_[i]; }
    T const& operator[](std::size_t i) const { return data_[i]; }

    friend bool operator==(array const& a, array const& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

private:
    memory* where_;
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace rheo::inline v0
