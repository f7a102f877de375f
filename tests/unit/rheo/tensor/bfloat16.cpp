// SPDX-License-Identifier: Apache-2.0
#include "rheo/tensor/bfloat16.hpp"

#include <cmath>
#include <limits>
#include <type_traits>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
constexpr std::uint16_t rounded(std::uint32_t bits) { return bfloat16{float_of(bits)}.bits(); }

static_assert(std::is_trivially_copyable_v<bfloat16> && std::is_trivially_default_constructible_v<bfloat16> && std::is_standard_layout_v<bfloat16>);
static_assert(std::is_convertible_v<bfloat16, float> && !std::is_convertible_v<float, bfloat16>, "only rounding has to be explicit");

static_assert(bfloat16{1.0F}.bits() == 0x3f80 && bfloat16{-2.0F}.bits() == 0xc000 && bfloat16{0.0F}.bits() == 0 && bfloat16{-0.0F}.bits() == 0x8000);
static_assert(rounded(0x3f808000) == 0x3f80 && rounded(0x3f818000) == 0x3f82, "ties go to even");
static_assert(rounded(0x3f808001) == 0x3f81 && rounded(0x3f807fff) == 0x3f80, "others to the nearest");
static_assert(rounded(0x7f7f7fff) == 0x7f7f && rounded(0x7f7f8000) == 0x7f80, "beyond the largest it is infinite");
static_assert(rounded(0x7f800000) == 0x7f80 && rounded(0xff800000) == 0xff80);
static_assert(rounded(0x7f800001) == 0x7fff && rounded(0xffc00000) == 0x7fff, "what is not a number stays none, whatever it carried");
static_assert(rounded(0x00008000) == 0x0000 && rounded(0x00018000) == 0x0002 && rounded(0x00000001) == 0, "subnormal values round alike");

static_assert(stochastically_rounded(float_of(0x3f800001), 0).bits() == 0x3f80 && stochastically_rounded(float_of(0x3f800001), 0xffff).bits() == 0x3f81);
static_assert(stochastically_rounded(float_of(0x3f800001), 0x7fff0000).bits() == 0x3f80, "the lower half of the word alone counts");
static_assert(stochastically_rounded(float_of(0x7f7fffff), 0xffff).bits() == 0x7f7f && stochastically_rounded(float_of(0xff7fffff), 0xffff).bits() == 0xff7f,
              "what is finite stays finite");
static_assert(stochastically_rounded(float_of(0x7f800000), 0xffff).bits() == 0x7f80 && stochastically_rounded(float_of(0x7f800001), 0).bits() == 0x7fff);

}  // namespace

TEST_CASE("bfloat16: stochastic rounding is exact in the mean")
{
    // of all words the upper neighbour gets as many as the value is above the lower one, in units of a 65536th of their distance
    for (std::uint32_t const upper : {0x0000U, 0x0001U, 0x007fU, 0x3f80U, 0x3fffU, 0x7f7eU}) {
        for (std::uint32_t const lower : {0x0000U, 0x0001U, 0x4321U, 0x8000U, 0xffffU}) {
            for (std::uint32_t const sign : {0U, 0x80000000U}) {
                std::uint32_t ups = 0;
                for (std::uint32_t word = 0; word < 0x10000; ++word) {
                    auto const bits = std::uint32_t{stochastically_rounded(float_of(sign | upper << 16 | lower), word).bits()} ^ sign >> 16;
                    if (bits != upper && bits != upper + 1) {
                        FAIL("no neighbour: " << bits);
                    }
                    ups += bits - upper;
                }
                CHECK(ups == lower);
            }
        }
    }
}

TEST_CASE("bfloat16: every value survives the way to float and back")
{
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
        float const value = bfloat16::from_bits(static_cast<std::uint16_t>(bits));
        bool const number = !std::isnan(value);
        if (bfloat16{value}.bits() != (number ? bits : 0x7fff)) {
            FAIL("bits " << bits);
        }
    }
}

TEST_CASE("bfloat16: rounding is to the nearest")
{
    // floats between neighbours a < b of one sign: the middle is exact in float, and decides
    for (std::uint32_t upper = 0; upper < 0x7f7f; ++upper) {
        for (std::uint32_t const lower : {0x0001U, 0x4321U, 0x7fffU, 0x8000U, 0x8001U, 0xfedcU}) {
            for (std::uint32_t const sign : {0U, 0x80000000U}) {
                float const value = float_of(sign | upper << 16 | lower);
                double const below = double{float_of(sign | upper << 16)};
                double const above = double{float_of(sign | (upper + 1) << 16)};
                double const to_below = std::fabs(double{value} - below);
                double const to_above = std::fabs(above - double{value});
                bool const up = to_above < to_below || (to_above == to_below && upper % 2 == 1);
                if (double{float{bfloat16{value}}} != (up ? above : below)) {
                    FAIL("value " << value);
                }
            }
        }
    }
}
