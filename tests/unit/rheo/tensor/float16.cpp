// SPDX-License-Identifier: Apache-2.0
#include "rheo/tensor/float16.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"

using namespace rheo;

static_assert(float16{1.0F}.bits() == 0x3c00);
static_assert(float16{-2.0F}.bits() == 0xc000);
static_assert(float16{65504.0F}.bits() == 0x7bff);
static_assert(float16{65519.99F}.bits() == 0x7bff);
static_assert(float16{65520.0F}.bits() == 0x7c00);
static_assert(float16{0x1p-24F}.bits() == 1);
static_assert(float16{-0.0F}.bits() == 0x8000);

namespace {

/// By the definition: a sign, and a fraction of 2^-10 with or without a leading one, times a power of two.
double defined(std::uint16_t bits)
{
    int const exponent = bits >> 10 & 31;
    double const fraction = bits & 1023;
    double const size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
}

}  // namespace

TEST_CASE("float16: every half is its value and comes back")
{
    for (unsigned pattern = 0; pattern < 65536; ++pattern) {
        auto const bits = static_cast<std::uint16_t>(pattern);
        auto const half = float16::from_bits(bits);
        if ((bits & 0x7c00) == 0x7c00) {
            CHECK(((bits & 0x3ff) == 0 ? std::isinf(float{half}) : std::isnan(float{half})));
            CHECK(((bits & 0x3ff) != 0 || (std::signbit(float{half}) == ((bits & 0x8000) != 0) && float16{float{half}}.bits() == bits)));
            continue;
        }
        if (double{float{half}} != defined(bits) || std::signbit(float{half}) != std::signbit(defined(bits)) || float16{float{half}}.bits() != bits) {
            FAIL("pattern " << pattern);
        }
    }
}

TEST_CASE("float16: a float goes to the nearest, ties to even")
{
    for (unsigned pattern = 0; pattern < 0x7bff; ++pattern) {  // between each half and the next
        auto const below = static_cast<std::uint16_t>(pattern);
        auto const above = static_cast<std::uint16_t>(pattern + 1);
        auto const middle = static_cast<float>((defined(below) + defined(above)) / 2);  // exactly: one bit more
        auto const even = (below & 1) == 0 ? below : above;
        bool const right = float16{middle}.bits() == even && float16{std::nextafterf(middle, 0)}.bits() == below &&
                           float16{std::nextafterf(middle, 1e9F)}.bits() == above && float16{-middle}.bits() == (even | 0x8000);
        if (!right) {
            FAIL("above pattern " << pattern);
        }
    }
    CHECK(float16{std::numeric_limits<float>::max()}.bits() == 0x7c00);
    CHECK(float16{std::numeric_limits<float>::quiet_NaN()}.bits() == 0x7e00);
}
