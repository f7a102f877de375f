#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a job does when it loses a node, as far as its goodput goes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class replay_kind : unsigned char {
    replay,      ///< the step of the loss runs again: Oobleck
    checkpoint,  ///< all steps since the last checkpoint run again
    salvage,     ///< what the survivors have finished of the step is kept: rheo
};

inline constexpr std::array<std::string_view, 3> replay_names{"replay", "checkpoint", "salvage"};

constexpr std::string_view name_of(replay_kind kind) { return replay_names[static_cast<std::size_t>(kind)]; }

struct replay_policy {
    replay_kind kind = replay_kind::replay;
    whole_milliseconds configure{};           ///< after a change of the nodes that take part
    whole_milliseconds checkpoint{};          ///< to write one
    std::int64_t checkpoint_every_steps = 0;  ///< of a checkpoint policy at least 1
    whole_milliseconds ready{45'000};         ///< from the moment a node comes until it can take part

    friend constexpr bool operator==(replay_policy const&, replay_policy const&) = default;
};

/// No time of a policy is longer.
inline constexpr whole_milliseconds longest_policy_phase{std::int64_t{1} << 31};

/// What is wrong with a policy, as a sentence; empty when nothing is.
template <class OnlyWhenCalled = void>
std::string replay_policy_fault(replay_policy const& policy)
{
    constexpr auto most = longest_policy_phase;
    for (auto const time : {policy.configure, policy.checkpoint, policy.ready}) {
        if (time.count < 0 || time > most) {
            return "a time of a policy is " + std::to_string(time.count) + " ms, but 0 to 2^31 ms were expected";
        }
    }
    if (policy.checkpoint_every_steps < 0 || policy.checkpoint_every_steps > most.count ||
        (policy.kind == replay_kind::checkpoint && policy.checkpoint_every_steps == 0)) {
        return "a checkpoint is written every " + std::to_string(policy.checkpoint_every_steps) + " steps, but 1 to 2^31 were expected";
    }
    return {};
}

}  // namespace rheo::inline v0
