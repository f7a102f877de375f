#pragma once
// SPDX-License-Identifier: Apache-2.0

// The whole proof of a schedule at one size, by the compiler: complete, in order, and free of deadlock
// once lowered. Each mistake is one sentence; the schedule, its shape, the lowering and the transport
// stand next to it in the compiler's message.

#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/core/frozen.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/transform/lowering.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What the compute order of a schedule is; what cannot be made or is not complete is taken to be in order.
struct order_proof {
    bool is_complete = true;
    bool is_ordered = true;
};

/// The program, made once for what is proved of it: each proof is counted against the compiler's limits by itself.
/// @pre error_of says none
template <Schedule S, schedule_shape Shape>
inline constexpr auto made = freeze<[] { return S::program(Shape); }>();

template <Schedule S, schedule_shape Shape>
constexpr order_proof prove_order()
{
    order_proof proof;
    if constexpr (error_of<S>(Shape) == shape_error::none) {
        auto const p = thaw(made<S, Shape>);
        proof.is_complete = complete(p, Shape.microbatches).ok;
        proof.is_ordered = !proof.is_complete || dependencies_in_order(p).ok;
    }
    return proof;
}

template <Schedule S, schedule_shape Shape, class Lowering, class Transport>
struct schedule_proof {
    static constexpr auto fault = error_of<S>(Shape);
    static_assert(fault != shape_error::ranks, "rheo: a schedule needs at least one rank");
    static_assert(fault != shape_error::microbatches, "rheo: a step has no negative number of microbatches");
    static_assert(fault != shape_error::chunks_not_taken, "rheo: this schedule has no choice of chunks per rank");
    static_assert(fault != shape_error::group_not_taken, "rheo: this schedule has no groups of microbatches");
    static_assert(fault != shape_error::slices_not_taken, "rheo: this schedule does not cut sequences into slices");
    static_assert(fault != shape_error::counts, "rheo: chunks, group and slices count from one");
    static_assert(fault != shape_error::odd_ranks, "rheo: this schedule runs in two directions and needs an even number of ranks");
    static_assert(fault != shape_error::odd_microbatches, "rheo: this schedule runs in two directions and needs an even number of microbatches");
    static_assert(fault != shape_error::odd_chunks, "rheo: a wave goes down the ranks and up again: it needs an even number of chunks per rank");
    static_assert(fault != shape_error::fewer_than_twice_the_ranks, "rheo: this schedule needs at least twice as many microbatches as ranks");
    static_assert(fault != shape_error::cyclic, "rheo: with this group of microbatches the ranks would wait for each other in a circle");
    static constexpr auto order = prove_order<S, Shape>();
    static_assert(order.is_complete, "rheo: this schedule leaves out an instruction, repeats one or puts it on a wrong rank");
    static_assert(order.is_ordered, "rheo: in this schedule ranks wait for each other in a circle: its compute order is cyclic");
    static constexpr bool ends = [] {
        if constexpr (fault == shape_error::none && order.is_complete && order.is_ordered) {
            return deadlock_free<Transport>(Lowering::lowered(thaw(made<S, Shape>))).ok;
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
