#pragma once
// SPDX-License-Identifier: Apache-2.0

// A vector that lives inside its object, so that descriptions made of it stay constexpr values: they
// can be stored in constexpr variables, compared by static_assert and copied without an allocation.

#include <array>
#include <cstddef>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

template <class T, std::size_t Capacity>
class fixed_vector {
public:
    constexpr fixed_vector() = default;

    /// @pre fewer than Capacity elements are in.
    constexpr void push_back(T const& value)
    {
        expects(size_ < Capacity, "a fixed_vector is full: the description has more parts than its type has room for");
        items_[size_++] = value;
    }

    constexpr std::size_t size() const { return size_; }
    constexpr bool empty() const { return size_ == 0; }
    constexpr T& operator[](std::size_t i) { return items_[i]; }
    constexpr T const& operator[](std::size_t i) const { return items_[i]; }
    constexpr T* begin() { return items_.data(); }
    constexpr T* end() { return items_.data() + size_; }
    constexpr T const* begin() const { return items_.data(); }
    constexpr T const* end() const { return items_.data() + size_; }
    constexpr T const& back() const { return items_[size_ - 1]; }

    friend constexpr bool operator==(fixed_vector const& a, fixed_vector const& b)
    {
        if (a.size_ != b.size_) {
            return false;
        }
        for (std::size_t i = 0; i < a.size_; ++i) {
            if (!(a.items_[i] == b.items_[i])) {
                return false;
            }
        }
        return true;
    }

private:
    std::array<T, Capacity> items_{};
    std::size_t size_ = 0;
};

}  // namespace rheo::inline v0
