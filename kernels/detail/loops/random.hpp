#pragma once
// SPDX-License-Identifier: Apache-2.0

// The words of a stream by Philox, sixteen counters side by side, and the initial values that are made of them, by Box
// and Muller.

#include "kernels/detail/loops/exponential.hpp"

namespace rheo::inline v0::detail {
namespace {

void random_strips(stream_parts const& stream, std::uint64_t first_strip, count_t strips, std::uint32_t* words)
{
    for (count_t s = 0; s < strips; ++s) {
        std::uint64_t const first = (first_strip + static_cast<std::uint64_t>(s)) * 16;
        std::uint32_t c0[16];
        std::uint32_t c1[16];
        std::uint32_t c2[16];
        std::uint32_t c3[16];
        for (std::uint32_t l = 0; l < 16; ++l) {
            c0[l] = static_cast<std::uint32_t>(first) + l;  // first is a multiple of 16: no carry
            c1[l] = static_cast<std::uint32_t>(first >> 32);
            c2[l] = stream.high[0];
            c3[l] = stream.high[1];
        }
        std::uint32_t k0 = stream.key[0];
        std::uint32_t k1 = stream.key[1];
        for (int round = 0; round < 10; ++round) {
            for (int l = 0; l < 16; ++l) {
                std::uint64_t const a = std::uint64_t{0xD2511F53U} * c0[l];
                std::uint64_t const b = std::uint64_t{0xCD9E8D57U} * c2[l];
                c0[l] = static_cast<std::uint32_t>(b >> 32) ^ c1[l] ^ k0;
                c1[l] = static_cast<std::uint32_t>(b);
                c2[l] = static_cast<std::uint32_t>(a >> 32) ^ c3[l] ^ k1;
                c3[l] = static_cast<std::uint32_t>(a);
            }
            k0 += 0x9E3779B9U;
            k1 += 0xBB67AE85U;
        }
        memcpy(words + s * 64, c0, sizeof c0);
        memcpy(words + s * 64 + 16, c1, sizeof c1);
        memcpy(words + s * 64 + 32, c2, sizeof c2);
        memcpy(words + s * 64 + 48, c3, sizeof c3);
    }
}

void normal_values(stream_parts const& stream, count_t first, count_t n, double mean, double deviation, float* out)
{
    // a strip of 64 words makes 32 elements: words 2 e and 2 e + 1 belong to element e
    for (count_t strip = first / 32; strip * 32 < first + n; ++strip) {
        std::uint32_t words[64];
        random_strips(stream, static_cast<std::uint64_t>(strip), 1, words);
        float values[32];
        for (int l = 0; l < 32; ++l) {
            values[l] = static_cast<float>(mean + deviation * normal_of(words[2 * l], words[2 * l + 1]));
        }
        count_t const begin = strip * 32 < first ? first - strip * 32 : 0;
        count_t const end = strip * 32 + 32 > first + n ? first + n - strip * 32 : 32;
        memcpy(out + strip * 32 + begin - first, values + begin, static_cast<size_t>(end - begin) * sizeof(float));
    }
}

}  // namespace
}  // namespace rheo::inline v0::detail
