// SPDX-License-Identifier: Apache-2.0
// array_view takes what std::span takes and gives it back.
#include "rheo/units/array_view.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

struct base {
    int number = 0;
};
struct derived : base {
    int more = 0;
};

constexpr int sum(array_view<int const> numbers)
{
    int result = 0;
    for (int const number : numbers) {
        result += number;
    }
    return result;
}

template <class From, class T>
constexpr bool as_span = std::is_convertible_v<From, array_view<T>> == std::is_convertible_v<From, std::span<T>>;

/// What is or is not a view of T is what is or is not a std::span of it.
template <class T>
constexpr bool agrees_with_span =
    as_span<std::vector<T>&, T> && as_span<std::vector<T>&, T const> && as_span<std::vector<T> const&, T> && as_span<std::vector<T> const&, T const> &&
    as_span<std::vector<T>, T> && as_span<std::vector<T>, T const> && as_span<std::array<T, 3>&, T> && as_span<std::array<T, 3> const&, T const> &&
    as_span<T (&)[3], T> && as_span<T (&)[3], T const> && as_span<T const (&)[3], T> && as_span<T const (&)[3], T const> && as_span<std::span<T>, T> &&
    as_span<std::span<T>, T const> && as_span<std::span<T const>, T> && as_span<T*, T> && as_span<T, T const> && as_span<std::string, T const>;

static_assert(agrees_with_span<int> && agrees_with_span<char> && agrees_with_span<base> && agrees_with_span<derived> && agrees_with_span<int const*>);
static_assert(as_span<std::vector<derived>&, base const> && as_span<std::vector<derived>&, base>, "a derived type is wider: its array is none of its base");
static_assert(not std::is_convertible_v<array_view<int const>, array_view<int>>);
static_assert(std::is_convertible_v<array_view<int>, array_view<int const>>);
static_assert(std::is_convertible_v<array_view<int const>, std::span<int const>>);
static_assert(std::is_trivially_copyable_v<array_view<int>>);

constexpr std::array five{1, 2, 3, 4, 5};
static_assert(sum(five) == 15 && sum({}) == 0 && sum({five.data(), 2}) == 3 && sum(std::vector{1, 2}) == 3 && sum(std::span{five}) == 15);
static_assert(sum(array_view{five}.first(2)) == 3 && sum(array_view{five}.subspan(1, 3)) == 9);
static_assert(array_view{five}.front() == 1 && array_view{five}.back() == 5 && array_view{five}[2] == 3 && array_view{five}.size() == 5);
static_assert(array_view<int>{}.empty() && array_view<int>{}.begin() == array_view<int>{}.end());
static_assert(std::is_same_v<decltype(array_view{five}), array_view<int const>>);

}  // namespace

TEST_CASE("array_view: writes through like std::span", "[units]")
{
    std::vector<int> numbers{3, 1, 2};
    array_view const view{numbers};
    static_assert(std::is_same_v<decltype(view), array_view<int> const>);
    std::sort(view.begin(), view.end());
    CHECK(numbers == std::vector{1, 2, 3});
    std::span<int const> const back = view;
    CHECK(back.data() == numbers.data());
    CHECK(back.size() == 3);
    int plain[] = {7, 8};
    array_view<int>{plain}[1] = 9;
    CHECK(sum(plain) == 16);
}
