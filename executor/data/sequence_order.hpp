#pragma once
// SPDX-License-Identifier: Apache-2.0

// Each sequence of a source once per epoch, in an order that follows from the seed, with random access to any place of it. A Feistel network permutes the
// numbers below a power of four (Luby and Rackoff, SIAM J. Comput. 1988); applied again until the result is below `count`, it permutes 0 .. count-1 (cycle
// walking: Black and Rogaway, CT-RSA 2002, section 3).

#include <bit>
#include <cstdint>

#include "rheo/tensor/random.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The next 64 bits of a fraction times count, without bias that matters: floor(fraction / 2^64 * count).
constexpr std::int64_t scaled(std::uint64_t fraction, std::int64_t count)
{
    __extension__ using wide = unsigned __int128;
    return static_cast<std::int64_t>((static_cast<wide>(fraction) * static_cast<std::uint64_t>(count)) >> 64);
}

/// Words 2 n and 2 n + 1 of a stream.
constexpr std::uint64_t random_fraction(random_stream const& stream, std::uint64_t n)
{
    return std::uint64_t{random_word(stream, 2 * n)} << 32 | random_word(stream, 2 * n + 1);
}

/// Where element i goes when `count` elements are shuffled. Cost: six random words a pass, fewer than four passes on average @pre 0 <= i < count
constexpr std::int64_t shuffled(random_stream const& stream, std::int64_t count, std::int64_t i)
{
    expects(i >= 0 && i < count, "an element that is shuffled is one of them");
    auto const half_bits = (static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(count - 1))) + 1) / 2;
    auto const mask = (std::uint64_t{1} << half_bits) - 1;
    auto x = static_cast<std::uint64_t>(i);
    do {
        auto left = x >> half_bits;
        auto right = x & mask;
        for (std::uint64_t round = 0; round < 6; ++round) {
            auto const mixed = random_word(
                {.key = stream.key, .high = {stream.high[0] ^ static_cast<std::uint32_t>(right), stream.high[1] ^ static_cast<std::uint32_t>(right >> 32)}},
                round);
            auto const next = (left ^ mixed) & mask;
            left = right;
            right = next;
        }
        x = left << half_bits | right;
    } while (x >= static_cast<std::uint64_t>(count));
    return static_cast<std::int64_t>(x);
}

}  // namespace rheo::inline v0
