#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the time of a rank in a step is spent on. Each nanosecond is in exactly one class.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class step_class : std::uint8_t {
    forward,
    backward,
    input_gradient,
    weight_gradient,
    recompute,
    update,
    message,    ///< exposed: from when sender and receiver were there until the message was; and the calls
    reduction,  ///< exposed: from the last holder's post to the sum; and the calls
    vote,       ///< from when the last rank was through to the end of the vote: totals, and what optimizer shards gather, are part of it
    host,       ///< between two operations, waiting for nobody
    bubble,     ///< waiting for another rank's work
};

inline constexpr std::array<std::string_view, 11> step_class_names{
    "forward", "backward", "input gradient", "weight gradient", "recompute", "update", "messages", "reductions", "vote", "host", "bubble"};
inline constexpr std::size_t step_class_count = step_class_names.size();

constexpr std::string_view name_of(step_class c) { return step_class_names[static_cast<std::size_t>(c)]; }

/// True for the operations of a step's stages.
constexpr bool is_work(step_class c) { return c <= step_class::recompute; }

/// The class of the time that an activity itself takes, without what it waits for. @pre it is one of a step
constexpr step_class class_of(activity a)
{
    switch (a) {
    case activity::forward: return step_class::forward;
    case activity::backward: return step_class::backward;
    case activity::input_gradient: return step_class::input_gradient;
    case activity::weight_gradient: return step_class::weight_gradient;
    case activity::recompute: return step_class::recompute;
    case activity::send_activation:
    case activity::receive_activation:
    case activity::send_gradient:
    case activity::receive_gradient: return step_class::message;
    case activity::post_reduction:
    case activity::await_reduction: return step_class::reduction;
    case activity::decide: return step_class::vote;
    case activity::update: return step_class::update;
    default: return step_class::host;
    }
}

/// A time for each class.
struct class_times {
    std::array<seconds, step_class_count> of{};

    constexpr seconds& operator[](step_class c) { return of[static_cast<std::size_t>(c)]; }
    constexpr seconds operator[](step_class c) const { return of[static_cast<std::size_t>(c)]; }

    constexpr class_times& operator+=(class_times const& other)
    {
        for (std::size_t c = 0; c < of.size(); ++c) {
            of[c] += other.of[c];
        }
        return *this;
    }

    friend constexpr bool operator==(class_times const&, class_times const&) = default;
};

constexpr seconds sum_of(class_times const& times)
{
    seconds sum{};
    for (auto const time : times.of) {
        sum += time;
    }
    return sum;
}

/// Forwards, backwards and what belongs to them.
constexpr seconds work_of(class_times const& times)
{
    seconds sum{};
    for (std::size_t c = 0; is_work(static_cast<step_class>(c)); ++c) {
        sum += times.of[c];
    }
    return sum;
}

}  // namespace rheo::inline v0
