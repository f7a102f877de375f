#pragma once
// SPDX-License-Identifier: Apache-2.0

// The upper half of a float: its sign, its exponent and the first 7 bits of its fraction. It is a format to store in,
// not to compute in: an operation reads it as float, exactly, and rounds once when it stores. The layout is that of
// every device's own bfloat16, and so is the rounding, so that a value is the same bits wherever it was rounded.

#include <bit>
#include <cstdint>

namespace rheo::inline v0 {

/// A float rounded to 8 significant bits, kept in 16.
class bfloat16 {
public:
    bfloat16() = default;

    /// The nearest, ties to even; beyond the largest it is infinite; what is not a number becomes 0x7fff.
    constexpr explicit bfloat16(float value) : bits_{rounded(std::bit_cast<std::uint32_t>(value))} {}

    /// The value, exactly.
    constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }

    constexpr std::uint16_t bits() const { return bits_; }

    static constexpr bfloat16 from_bits(std::uint16_t bits)
    {
        bfloat16 result{};
        result.bits_ = bits;
        return result;
    }

private:
    static constexpr std::uint16_t rounded(std::uint32_t bits)
    {
        if ((bits & 0x7fffffffU) > 0x7f800000U) {
            return 0x7fff;
        }
        return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
    }

    std::uint16_t bits_;
};

/// Stochastic rounding: one of the two neighbours of a float, chosen so that the mean over all words is exact. Adds the lower 16 bits of `word` and
/// truncates. Finite values stay finite; infinities and NaN convert as in bfloat16{value}.
constexpr bfloat16 stochastically_rounded(float value, std::uint32_t word)
{
    auto const bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7f800000U) == 0x7f800000U) {
        return bfloat16{value};
    }
    auto const up = bits + (word & 0xffffU);
    return bfloat16::from_bits(static_cast<std::uint16_t>(((up & 0x7f800000U) == 0x7f800000U ? bits : up) >> 16));
}

static_assert(sizeof(bfloat16) == 2 && alignof(bfloat16) == 2, "a bfloat16 is 16 bits in memory");

}  // namespace rheo::inline v0
