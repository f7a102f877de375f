#pragma once
// SPDX-License-Identifier: Apache-2.0

// The whole proof of a schedule at one size, by the compiler: complete, in order, and free of deadlock
// once lowered. Each mistake is one sentence; the schedule, its shape, the lowering and the transport
// stand next to it in the compiler's message.

#include "rheo/schedule/complete.hpp"
#include "rheo/schedule/deadlock.hpp"
#include "rheo/schedule/lowering.hpp"
#include "rheo/schedule/schedule.hpp"

namespace rheo::inline v0 {

namespace detail {

template <Schedule S, schedule_shape Shape, class Lowering, class Transport>
struct schedule_proof {
    static_assert(Shape.ranks >= 1, "rheo: a schedule needs at least one rank");
    static_assert(Shape.microbatches >= 0, "rheo: a step has no negative number of microbatches");
    static constexpr bool is_complete = complete(S::program(Shape), Shape.microbatches).ok;
    static_assert(is_complete, "rheo: this schedule leaves out an instruction, repeats one or puts it on a wrong rank");
    static constexpr bool is_ordered = !is_complete || dependencies_in_order(S::program(Shape)).ok;
    static_assert(is_ordered, "rheo: in this schedule ranks wait for each other in a circle: its compute order is cyclic");
    static constexpr bool ends = [] {
        if constexpr (is_complete && is_ordered) {
            return deadlock_free<Transport>(Lowering::lowered(S::program(Shape))).ok;
        } else {
            return true;
        }
    }();
    static_assert(ends, "rheo: this schedule, lowered like this, hangs under this transport");
    static constexpr bool value = true;
};

}  // namespace detail

/// True, or the compiler's refusal with a sentence.
template <Schedule S, schedule_shape Shape, class Lowering = pair_insertion, class Transport = rendezvous>
inline constexpr bool proved = detail::schedule_proof<S, Shape, Lowering, Transport>::value;

}  // namespace rheo::inline v0
