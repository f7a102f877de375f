#pragma once
// SPDX-License-Identifier: Apache-2.0

// Randomness without state: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011) turns (seed, step, microbatch, layer, op, element) of the unfused, uncut
// model into 32 bits, so any rank can draw any number at any time and a step redone draws the same.
// The key's own fields go through Philox once; being a bijection, it gives different streams for different keys
// of one seed. The elements of a stream are its counter, laid out in strips of 64 so that sixteen
// counters side by side fill sixteen neighbouring elements.

#include <array>
#include <compare>
#include <cstdint>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Whose random numbers these are.
struct random_key {
    std::uint64_t seed = 0;
    step_id step{};
    microbatch_id microbatch{};
    layer_id layer{};
    op_id op{};

    friend constexpr bool operator==(random_key const&, random_key const&) = default;
};

/// The key of a tensor's initial values; no operation of any step shares it.
constexpr random_key initial_values_key(std::uint64_t seed, tensor_id tensor)
{
    return {.seed = seed, .step = step_id{-1}, .layer = layer_id{tensor.value}, .op = op_id{-1}};
}

/// The key by which an update rounds a tensor; no operation of any step shares it.
constexpr random_key rounding_key(std::uint64_t seed, step_id step, tensor_id tensor)
{
    return {.seed = seed, .step = step, .microbatch = microbatch_id{tensor.value}, .layer = layer_id{-1}, .op = op_id{-1}};
}

/// One round function applied ten times, as published. Returns four random words.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key)
{
    for (int round = 0; round < 10; ++round) {
        std::uint64_t const a = std::uint64_t{0xD2511F53U} * counter[0];
        std::uint64_t const b = std::uint64_t{0xCD9E8D57U} * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
        key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
    }
    return counter;
}

/// A key made ready to draw from: what Philox gets besides the element.
struct random_stream {
    std::array<std::uint32_t, 2> key{};
    std::array<std::uint32_t, 2> high{};  ///< the upper half of the counter

    friend constexpr bool operator==(random_stream const&, random_stream const&) = default;
};

/// @pre -1 <= layer, op < 2^16 - 1
constexpr random_stream stream_of(random_key const& key)
{
    expects(key.layer.value >= -1 && key.layer.value < 0xffff && key.op.value >= -1 && key.op.value < 0xffff,
            "a random key holds layers and operations below 65535");
    auto const step = static_cast<std::uint64_t>(key.step.value);
    auto const place = (static_cast<std::uint32_t>(key.layer.value) << 16) | (static_cast<std::uint32_t>(key.op.value) & 0xffffU);
    auto const words =
        philox({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), static_cast<std::uint32_t>(key.microbatch.value), place},
               {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
    return {.key = {words[0], words[1]}, .high = {words[2], words[3]}};
}

/// The counters and words of a strip: element e is word (e / 16) % 4 of counter (e / 64) * 16 + e % 16.
inline constexpr std::uint64_t strip_elements = 64;
inline constexpr std::uint64_t strip_counters = 16;

/// The 32 random bits of one element of a stream.
constexpr std::uint32_t random_word(random_stream const& stream, std::uint64_t element)
{
    std::uint64_t const counter = element / strip_elements * strip_counters + element % strip_counters;
    return philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), stream.high[0], stream.high[1]},
                  stream.key)[element / strip_counters % 4];
}

}  // namespace rheo::inline v0
