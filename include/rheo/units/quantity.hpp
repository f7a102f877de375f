#pragma once
// SPDX-License-Identifier: Apache-2.0

// A number that knows what it measures. Seconds, joules, bytes and the rest are one template over a
// tag and a representation: sums and comparisons stay within a unit, a ratio is a plain number, and
// the few products that mean something (watt x second = joule) are written out in units/units.hpp,
// the only place with conversion factors.

#include <compare>

#include "rheo/version.hpp"

namespace rheo::inline v0 {

template <class Unit, class Rep>
struct quantity {
    Rep count{};

    friend constexpr auto operator<=>(quantity, quantity) = default;

    constexpr quantity& operator+=(quantity other)
    {
        count += other.count;
        return *this;
    }
    constexpr quantity& operator-=(quantity other)
    {
        count -= other.count;
        return *this;
    }
    friend constexpr quantity operator+(quantity a, quantity b) { return {static_cast<Rep>(a.count + b.count)}; }
    friend constexpr quantity operator-(quantity a, quantity b) { return {static_cast<Rep>(a.count - b.count)}; }
    friend constexpr quantity operator*(quantity a, Rep factor) { return {static_cast<Rep>(a.count * factor)}; }
    friend constexpr quantity operator*(Rep factor, quantity a) { return {static_cast<Rep>(a.count * factor)}; }
    friend constexpr quantity operator/(quantity a, Rep divisor) { return {static_cast<Rep>(a.count / divisor)}; }
    friend constexpr double operator/(quantity a, quantity b) { return static_cast<double>(a.count) / static_cast<double>(b.count); }
};

}  // namespace rheo::inline v0
