#pragma once
// SPDX-License-Identifier: Apache-2.0

// The digest of state: the sum mod 2^128 of hash(tensor, role, index, bits) over all elements. A sum
// does not depend on order, so neither layout, nor plan, nor number of threads can change it; every
// element counts, at its place. It distinguishes states; it is no defence against an adversary.

#include <cstdint>
#include <string>
#include <string_view>

#include "rheo/tensor/collection.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

struct state_digest {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    friend constexpr bool operator==(state_digest, state_digest) = default;

    constexpr state_digest& operator+=(state_digest other)
    {
        low += other.low;
        high += other.high + (low < other.low ? 1 : 0);
        return *this;
    }
};

/// A bijective mix of 64 bits in which every input bit reaches every output bit (the finaliser of
/// Stafford's Mix13, as used by SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t mix_bits(std::uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/// Hash of a text; the same everywhere.
constexpr std::uint64_t hash_text(std::string_view text)
{
    std::uint64_t hash = 0x9e3779b97f4a7c15U + text.size();
    for (char const c : text) {
        hash = mix_bits(hash ^ static_cast<unsigned char>(c));
    }
    return hash;
}

/// What the elements of a tensor's role have in common.
constexpr std::uint64_t digest_key(std::string_view tensor, tensor_role role) { return mix_bits(hash_text(tensor) + static_cast<std::uint64_t>(role) + 1); }

/// Of one element, given as a 32-bit pattern. @param position its row-major index within the whole tensor
constexpr state_digest digest_of_element(std::uint64_t key, std::uint64_t position, std::uint32_t pattern)
{
    auto const low = mix_bits(mix_bits(key + position * 0x9e3779b97f4a7c15U) ^ pattern);
    return {mix_bits(low + 0xd1b54a32d192ed03U), low};
}

/// Digest of consecutive elements of one tensor's role, given as 32-bit patterns.
/// @param first the row-major index of the first element within the whole tensor.
constexpr state_digest digest_of(std::string_view tensor, tensor_role role, std::int64_t first, array_view<std::uint32_t const> bits)
{
    auto const key = digest_key(tensor, role);
    state_digest sum;
    auto position = static_cast<std::uint64_t>(first);
    for (auto const pattern : bits) {
        sum += digest_of_element(key, position++, pattern);
    }
    return sum;
}

/// Digest of numbers in their order, of whatever is no state: a plan, a program.
class sequence_digest {
public:
    constexpr explicit sequence_digest(std::string_view name) : hash_{hash_text(name)} {}

    constexpr void mix(std::int64_t value)
    {
        hash_ = mix_bits(hash_ ^ mix_bits(static_cast<std::uint64_t>(value) + 0x9e3779b97f4a7c15U));
        sum_ += {mix_bits(hash_ + 1), hash_};
    }
    constexpr state_digest value() const { return sum_; }

private:
    std::uint64_t hash_;
    state_digest sum_{};
};

/// 32 hexadecimal digits.
inline std::string to_string(state_digest digest)
{
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text(32, '0');
    for (std::size_t i = 0; i < 16; ++i) {
        text[15 - i] = digits[(digest.high >> (4 * i)) & 15U];
        text[31 - i] = digits[(digest.low >> (4 * i)) & 15U];
    }
    return text;
}

}  // namespace rheo::inline v0
