#pragma once
// SPDX-License-Identifier: Apache-2.0

// Elements that lie one after the other and belong to the caller: functions of the library take this where callers
// have a std::vector, a std::array, a std::span or a C array. It is std::span of any length without its constraints,
// and that is why it is there: to be sure that a vector is a contiguous range costs g++ 12 some 15 ms for each type of
// element, and plans are made of fifty: a fifth of the time to include them. A std::span is made of it as of a vector.

#include <cstddef>
#include <type_traits>

namespace rheo::inline v0 {

namespace detail {

/// Whether the data of an array are elements of T, perhaps without its const, and not of a type derived from it.
template <class Array, class T>
concept array_of = requires(Array& array, T* elements) {
    elements = array.data();
    array.size();
    requires std::is_same_v<std::remove_const_t<T>, std::remove_const_t<std::remove_pointer_t<decltype(array.data())>>>;
};

}  // namespace detail

template <class T>
class array_view {
public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    constexpr array_view() noexcept = default;
    constexpr array_view(T* first, std::size_t count) noexcept : first_{first}, count_{count} {}

    template <std::size_t Count>
    constexpr array_view(T (&array)[Count]) noexcept : first_{array}, count_{Count}
    {
    }

    /// Of a temporary it takes what that shows when it is const: of one that owns its elements no others than T const.
    template <class Array>
        requires(not std::is_same_v<std::remove_cvref_t<Array>, array_view> and
                 (detail::array_of<std::remove_reference_t<Array> const, T> or (std::is_lvalue_reference_v<Array> and detail::array_of<Array, T>)))
    constexpr array_view(Array&& array) noexcept : first_{array.data()}, count_{array.size()}
    {
    }

    constexpr T* data() const noexcept { return first_; }
    constexpr std::size_t size() const noexcept { return count_; }
    constexpr bool empty() const noexcept { return count_ == 0; }
    constexpr T* begin() const noexcept { return first_; }
    constexpr T* end() const noexcept { return first_ + count_; }
    /// @pre i < size()
    constexpr T& operator[](std::size_t i) const { return first_[i]; }
    /// @pre not empty
    constexpr T& front() const { return first_[0]; }
    /// @pre not empty
    constexpr T& back() const { return first_[count_ - 1]; }

    /// @pre count <= size()
    constexpr array_view first(std::size_t count) const { return {first_, count}; }
    /// @pre begin + count <= size()
    constexpr array_view subspan(std::size_t begin, std::size_t count) const { return {first_ + begin, count}; }

private:
    T* first_ = nullptr;
    std::size_t count_ = 0;
};

template <class Array>
array_view(Array&& array) -> array_view<std::remove_pointer_t<decltype(array.data())>>;

}  // namespace rheo::inline v0
