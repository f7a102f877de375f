#pragma once
// SPDX-License-Identifier: Apache-2.0

// What one rank of a group sends and receives, one thing after the other, in the forms that go step by step: ring,
// halving-doubling and tree. Each step is computed when it is needed: a ring of 10,000 ranks has 200 million of them.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "rheo/simulate/collectives/chunks.hpp"
#include "rheo/simulate/collectives/collective.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class step_kind : unsigned char { send, receive, end };

struct collective_step {
    step_kind kind;
    int peer = 0;          ///< place of the receiver; of receives nothing is asked but the key
    std::int64_t key = 0;  ///< which message of the receiver this is
    bytes size{};          ///< of a send
    bytes added{};         ///< of a receive: of the sum that is made before what is next

    friend constexpr bool operator==(collective_step const&, collective_step const&) = default;
};

namespace detail {

/// Sends and receives in turn. @param added of the sums after receive k
constexpr collective_step in_turn(std::int64_t step, std::int64_t messages, int peer, bytes size, bytes added)
{
    if (step == 2 * messages) {
        return {step_kind::end};
    }
    return step % 2 == 0 ? collective_step{step_kind::send, peer, step / 2, size, {}} : collective_step{step_kind::receive, 0, step / 2, {}, added};
}

constexpr collective_step ring_step(collective_phase const& phase, int place, std::int64_t step)
{
    auto const n = std::int64_t{phase.members};
    auto const next = (place + 1) % phase.members;
    bytes const part{phase.size.count / n};
    switch (phase.operation) {
    case collective::all_reduce: return in_turn(step, 2 * (n - 1), next, part, step / 2 < n - 1 ? part : bytes{});
    case collective::reduce_scatter: return in_turn(step, n - 1, next, part, part);
    case collective::all_gather: return in_turn(step, n - 1, next, phase.size, {});
    case collective::all_to_all: return in_turn(step, n * (n - 1) / 2, next, part, {});
    default: break;  // broadcast
    }
    if (place > 0 && step == 0) {
        return {step_kind::receive, 0, 0, {}, {}};
    }
    bool const sends = place + 1 < phase.members && step == (place > 0 ? 1 : 0);
    return sends ? collective_step{step_kind::send, next, 0, phase.size, {}} : collective_step{step_kind::end};
}

/// @pre members is a power of two
constexpr collective_step halving_doubling_step(collective_phase const& phase, int place, std::int64_t step)
{
    auto const levels = std::countr_zero(static_cast<unsigned>(phase.members));
    auto const k = static_cast<int>(step / 2) + 1;
    if (phase.operation == collective::all_gather) {
        auto const messages = levels;
        return k > messages ? collective_step{step_kind::end} : in_turn(step, messages, place ^ (phase.members >> k), {phase.size.count << (k - 1)}, {});
    }
    auto const messages = phase.operation == collective::all_reduce ? 2 * levels : levels;
    if (k > messages) {
        return {step_kind::end};
    }
    auto const way = k <= levels ? k : 2 * levels + 1 - k;            // there and back
    bytes const added{k < levels ? phase.size.count >> (k + 1) : 0};  // the size of the next message
    return in_turn(step, messages, place ^ (1 << (way - 1)), {phase.size.count >> way}, added);
}

/// What goes between a place of a tree and its parent: all, or what the places below it have of it.
constexpr bytes tree_message(collective_phase const& phase, int place)
{
    std::int64_t const below = place == 0 ? phase.members : std::min(1 << std::countr_zero(static_cast<unsigned>(place)), phase.members - place);
    switch (phase.operation) {
    case collective::gather: return {below * phase.size.count};
    case collective::scatter: return {below * (phase.size.count / phase.members)};
    default: return phase.size;
    }
}

/// Children of a place are those at distance 1, 2, 4, ... below its lowest set bit: MPICH's binomial tree. Key c: from child c, key 32: from the parent.
constexpr collective_step tree_step(collective_phase const& phase, int place, std::int64_t step)
{
    constexpr std::int64_t from_parent = 32;
    auto const rounds = std::bit_width(static_cast<unsigned>(phase.members - 1));
    auto const own = place == 0 ? static_cast<int>(rounds) : std::countr_zero(static_cast<unsigned>(place));
    int children = 0;
    while (children < own && place + (1 << children) < phase.members) {
        ++children;
    }
    bool const goes_up_only = phase.operation == collective::reduce || phase.operation == collective::gather;
    if (goes_up_only || phase.operation == collective::all_reduce) {
        if (step < children) {
            return {step_kind::receive, 0, step, {}, phase.operation == collective::gather ? bytes{} : phase.size};
        }
        step -= children;
        if (place > 0 && step == 0) {
            return {step_kind::send, place - (1 << own), own, tree_message(phase, place), {}};
        }
        step -= place > 0 ? 1 : 0;
    }
    if (place > 0 && step == 0 && !goes_up_only) {
        return {step_kind::receive, 0, from_parent, {}, {}};
    }
    step -= place > 0 ? 1 : 0;
    if (step >= children || goes_up_only) {
        return {step_kind::end};
    }
    auto const child = place + (1 << (children - 1 - step));
    return {step_kind::send, child, from_parent, tree_message(phase, child), {}};
}

}  // namespace detail

/// Step number `step` of the rank at that place of its group. @pre ring, halving_doubling or tree, and has_form of it
constexpr collective_step step_of(collective_form form, collective_phase const& phase, int place, std::int64_t step)
{
    switch (form) {
    case collective_form::halving_doubling: return detail::halving_doubling_step(phase, place, step);
    case collective_form::tree: return detail::tree_step(phase, place, step);
    default: return detail::ring_step(phase, place, step);
    }
}

/// Reduce, gather and scatter have a root and are trees.
constexpr bool is_tree_only(collective operation)
{
    return operation == collective::reduce || operation == collective::gather || operation == collective::scatter;
}

/// Which collectives have which forms, as far as this library knows.
constexpr bool has_form(collective operation, collective_form form)
{
    switch (form) {
    case collective_form::ring:
    case collective_form::direct: return !is_tree_only(operation);
    case collective_form::halving_doubling: return operation != collective::all_to_all && operation != collective::broadcast && !is_tree_only(operation);
    case collective_form::tree: return operation == collective::all_reduce || operation == collective::broadcast || is_tree_only(operation);
    case collective_form::slice_owner: return operation == collective::all_reduce;
    }
    return false;
}

/// The first element that a place owns.
constexpr std::int64_t slice_begin(std::int64_t elements, int members, int place) { return elements * place / members; }

/// The slice of elements that a place owns, in bytes of `element` each: the executor's, which differ by one element at most.
constexpr bytes owned_slice(std::int64_t elements, int members, int place, int element)
{
    return {(slice_begin(elements, members, place + 1) - slice_begin(elements, members, place)) * element};
}

}  // namespace rheo::inline v0
