// SPDX-License-Identifier: Apache-2.0
// Units: what may be added, compared and multiplied, and what does not compile. The compiler decides all of it.
#include "rheo/units/units.hpp"

#include <concepts>

using namespace rheo;

namespace {

template <class A, class B>
concept addable = requires(A a, B b) { a + b; };
template <class A, class B>
concept comparable = requires(A a, B b) { a < b; };
template <class A, class B>
concept multipliable = requires(A a, B b) { a * b; };

template <class... Units>
constexpr bool strangers()
{
    constexpr auto to_all = []<class A>() { return ((std::same_as<A, Units> || (!addable<A, Units> && !comparable<A, Units>)) && ...); };
    return (to_all.template operator()<Units>() && ...) && ((addable<Units, Units> && comparable<Units, Units>) && ...);
}

}  // namespace

// Within a unit sums and comparisons, between two units neither.
static_assert(strangers<seconds, joules, watts, megahertz, bytes, flops, bytes_per_second>());
static_assert(!addable<seconds, double> && !comparable<bytes, std::int64_t> && !multipliable<seconds, seconds>);
static_assert(!std::convertible_to<double, seconds> && !std::convertible_to<seconds, double>);

// The products that mean something.
static_assert(watts{300} * seconds{2} == joules{600} && seconds{2} * watts{300} == joules{600});
static_assert(joules{600} / seconds{2} == watts{300});
static_assert(bytes{1000} / bytes_per_second{500} == seconds{2});
static_assert(std::same_as<decltype(seconds{1} / seconds{2}), double> && seconds{1} / seconds{2} == 0.5);
static_assert(bytes{1} / bytes{4} == 0.25);

// Counting within a unit.
static_assert(seconds{1} + seconds{2} - seconds{0.5} == seconds{2.5} && 2.0 * seconds{1.5} == seconds{3} && seconds{3} * 2.0 / 4.0 == seconds{1.5});
static_assert(bytes{7} * std::int64_t{3} == bytes{21} && bytes{7} / std::int64_t{2} == bytes{3});
static_assert([] {
    bytes sum;
    sum += bytes{5};
    sum -= bytes{2};
    return sum == bytes{3} && bytes{2} < bytes{3};
}());

// Conversions.
static_assert(milliseconds(1500) == seconds{1.5} && in_milliseconds(seconds{0.25}) == 250 && in_microseconds(seconds{0.25}) == 250000);
static_assert(kibibytes(1) == bytes{1024} && mebibytes(2) == kibibytes(2048) && gibibytes(1) == mebibytes(1024));
static_assert(in_mebibytes(mebibytes(3) + kibibytes(512)) == 3.5);
static_assert(in_whole_nanoseconds(microseconds(2)) == 2000 && in_whole_nanoseconds(seconds{0}) == 0);
static_assert(in_whole_nanoseconds(nanoseconds(1.4)) == 1 && in_whole_nanoseconds(nanoseconds(1.6)) == 2);
static_assert(in_whole_nanoseconds(seconds{86400}) == 86'400'000'000'000);
