#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which events are the two ends of a message, found from each event alone: the send, and the computation that has the message as its input. The receive is
// neither: it is posted before the message is there, often before the message is sent. An end whose event names no peer is none, so an old record has no ends.

#include <cstdint>
#include <optional>
#include <utility>

#include "rheo/tensor/digest.hpp"
#include "rheo/trace/event.hpp"

namespace rheo::inline v0 {

/// Between two events: from the one that sends to the one that takes what was sent.
struct message_end {
    std::uint64_t message;  ///< the same at both ends. Different messages of an attempt differ; an evaluation may repeat those of a step, one after the other
    bool is_sent;
    bool is_gradient;

    friend constexpr bool operator==(message_end, message_end) = default;
};

/// The end of a message that an event is, if it is one.
constexpr std::optional<message_end> message_end_of(trace_event const& e)
{
    bool const computes = e.activity == activity::forward || e.activity == activity::backward || e.activity == activity::input_gradient;
    bool const sends = e.activity == activity::send_activation || e.activity == activity::send_gradient;
    if ((!computes && !sends) || e.peer == no_rank) {
        return std::nullopt;
    }
    bool const is_gradient = e.activity != activity::forward && e.activity != activity::send_activation;
    auto const [from, to] = sends ? std::pair{e.rank, e.peer} : std::pair{e.peer, e.rank};
    auto const taken_at = std::int64_t{e.stage.value} + (sends ? other_end_of(e.activity) : 0);
    std::uint64_t message = 0;
    for (std::int64_t const part : {std::int64_t{from.value}, std::int64_t{to.value}, std::int64_t{e.pipeline.value}, taken_at, std::int64_t{e.item},
                                    std::int64_t{is_gradient}, std::int64_t{e.generation.value}, e.step.value, std::int64_t{e.attempt.value}}) {
        message = mix_bits(message + 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(part));
    }
    return message_end{message, sends, is_gradient};
}

}  // namespace rheo::inline v0
