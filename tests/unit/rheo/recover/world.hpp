#pragma once
// SPDX-License-Identifier: Apache-2.0

// A state of the explored world as a small value: who is alive and in which local state (by a number that
// the model gives out), who died how, and the messages under way.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rank_model.hpp"

namespace small_job {

enum class standing : std::uint8_t { gone, alive, died, voted_no, voted_yes, died_shrinking };

inline constexpr std::size_t most_ranks = 5;

struct world {
    std::array<standing, most_ranks> who{};
    std::array<std::uint32_t, most_ranks> local{};  ///< of the living: which state, by its number
    std::uint8_t kills = 0;                         ///< still to come at most
    std::vector<std::uint64_t> messages;            ///< packed, ascending
};

inline std::uint64_t pack(message const& m)
{
    auto const u = [](auto v) { return static_cast<std::uint64_t>(v); };
    return u(m.from.value) << 61 | u(m.to.value) << 58 | u(m.kind) << 55 | u(m.item) << 51 | u(m.stamp.generation.value) << 47 | u(m.stamp.step.value) << 44 |
           u(m.stamp.attempt.value) << 42 | u(m.content);
}

inline message unpack(std::uint64_t p)
{
    auto const i = [p](int shift, int bits) { return static_cast<int>((p >> shift) & ((1U << bits) - 1)); };
    return {{i(61, 3)}, {i(58, 3)}, static_cast<message_kind>(i(55, 3)), i(51, 4), {{i(47, 4)}, {i(44, 3)}, {i(42, 2)}}, static_cast<std::uint32_t>(p)};
}

}  // namespace small_job
