#pragma once
// SPDX-License-Identifier: Apache-2.0

// The half of IEEE 754: 5 bits of exponent, 10 of fraction. Files of weights have it; nothing here computes in it. Each value is a float exactly, and a
// float is rounded once.

#include <bit>
#include <cstdint>

namespace rheo::inline v0 {

/// A float rounded to 11 significant bits within +-65504, kept in 16.
class float16 {
public:
    float16() = default;

    /// The nearest, ties to even; from 65520 on it is infinite; what is not a number becomes 0x7e00.
    constexpr explicit float16(float value) : bits_{rounded(std::bit_cast<std::uint32_t>(value))} {}

    /// The value, exactly.
    constexpr operator float() const
    {
        auto const sign = std::uint32_t{bits_ & 0x8000U} << 16;
        auto const exponent = bits_ >> 10 & 0x1fU;
        auto const fraction = std::uint32_t{bits_ & 0x3ffU};
        if (exponent == 0) {
            auto const size = static_cast<float>(fraction) * 0x1p-24F;
            return sign != 0 ? -size : size;
        }
        return std::bit_cast<float>(sign | (exponent == 0x1fU ? 0x7f800000U : (exponent + 112U) << 23) | fraction << 13);
    }

    constexpr std::uint16_t bits() const { return bits_; }

    static constexpr float16 from_bits(std::uint16_t bits)
    {
        float16 result{};
        result.bits_ = bits;
        return result;
    }

private:
    static constexpr std::uint16_t rounded(std::uint32_t bits)
    {
        auto const sign = bits >> 16 & 0x8000U;
        auto const size = bits & 0x7fffffffU;
        if (size > 0x7f800000U) {
            return 0x7e00;
        }
        if (size >= 0x477ff000U) {  // 65520, half a step above the largest
            return static_cast<std::uint16_t>(sign | 0x7c00U);
        }
        if (size < 0x38800000U) {  // below 2^-14 steps are 2^-24, as those of floats from 1/2 on
            auto const stepped = std::bit_cast<float>(size) + 0.5F;
            return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(stepped) - 0x3f000000U));
        }
        return static_cast<std::uint16_t>(sign | (((size + 0xfffU + (size >> 13 & 1U)) >> 13) - (112U << 10)));
    }

    std::uint16_t bits_;
};

static_assert(sizeof(float16) == 2 && alignof(float16) == 2, "a float16 is 16 bits in memory");

}  // namespace rheo::inline v0
