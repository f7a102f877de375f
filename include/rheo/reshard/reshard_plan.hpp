#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan of a re-sharding: what moves between which ranks in which round, what stays where it is, and a certificate that sets each
// quantity beside a bound that no plan can beat. It is a value: planned on every rank alike, checked by verify(), run by the executor.

#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/reshard/array_layout.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Which ranks take the places of the target layout.
enum class rank_choice : std::uint8_t {
    pinned,       ///< those that the layout names
    any,          ///< any live rank any place, so that the fewest bytes move
    whole_nodes,  ///< any live node the places of any one node, so that the fewest bytes move
};

struct reshard_request {
    array_layout from;
    array_layout to;                      ///< the same tensors in the same order; formats and padding may differ
    std::vector<rank_id> live{};          ///< ascending; empty: all ranks of both layouts
    std::vector<node_id> node_of{};       ///< by rank, for every rank of both layouts; empty: nodes are not known
    rank_choice ranks = rank_choice::pinned;
    std::optional<bytes> round_budget{};  ///< most bytes that a rank receives in one round; none: one round
    std::optional<bytes> memory_limit{};  ///< most bytes of these tensors that a rank may have at any time; set: in place, parts are dropped on the way
    int failures = 0;                     ///< f: in place, f + 1 copies of an element stay, or as many as there are

    friend constexpr bool operator==(reshard_request const&, reshard_request const&) = default;
};

/// A box of a tensor that travels between two ranks, or an addend of one.
struct transfer {
    int round = 0;
    rank_id from;
    rank_id to;
    tensor_id tensor;
    role_set roles;
    nd_box box;
    bytes size;  ///< as it travels: in the smaller of the two formats

    friend constexpr bool operator==(transfer const&, transfer const&) = default;
};

/// At the end of a round, a rank drops what it holds of a box (in place only).
struct dropped_part {
    int round = 0;  ///< -1: before the first
    rank_id rank;
    array_part part;

    friend constexpr bool operator==(dropped_part const&, dropped_part const&) = default;
};

/// Who takes a place of the target layout.
struct taken_place {
    rank_id place;  ///< the rank as the target layout names it
    rank_id rank;   ///< the rank that takes it

    friend constexpr bool operator==(taken_place, taken_place) = default;
};

/// A quantity of the plan, and what no plan for the same request goes below.
struct bounded_bytes {
    bytes value{};
    bytes bound{};

    friend constexpr bool operator==(bounded_bytes, bounded_bytes) = default;
};

struct bounded_count {
    std::int64_t value = 0;
    std::int64_t bound = 0;

    friend constexpr bool operator==(bounded_count, bounded_count) = default;
};

struct reshard_certificate {
    bounded_bytes needed;           ///< wanted and not held; its bound is the dual value of the assignment of ranks
    bounded_bytes moved;            ///< its bound is what is needed
    bounded_bytes largest_send;     ///< of a rank; the bound is that of a flow from holders to wants, so the value is at most one row above it
    bounded_bytes largest_receive;  ///< of a rank
    bounded_bytes between_nodes;
    bounded_count rounds;
    bounded_bytes peak;             ///< most bytes of these tensors at a rank at any time

    friend constexpr bool operator==(reshard_certificate const&, reshard_certificate const&) = default;
};

struct reshard_plan {
    std::vector<layout_tensor> tensors;    ///< as the target layout has them
    std::vector<taken_place> taken;        ///< ascending by place; empty: pinned
    std::vector<sub_collection> kept;      ///< what these ranks hold and want; from their held arrays to their wanted ones
    std::vector<transfer> transfers;       ///< ascending by round, then receiver, tensor and sender
    std::vector<dropped_part> dropped{};   ///< ascending by round and rank; only in place
    reshard_certificate certificate;

    friend constexpr bool operator==(reshard_plan const&, reshard_plan const&) = default;
};

/// The rank that takes a place of the target layout. Cost: O(log places)
constexpr rank_id rank_at(reshard_plan const& plan, rank_id place)
{
    std::size_t low = 0;
    for (auto high = plan.taken.size(); low < high;) {
        auto const middle = (low + high) / 2;
        if (plan.taken[middle].place < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < plan.taken.size() && plan.taken[low].place == place ? plan.taken[low].rank : place;
}

/// The target layout with the ranks that take its places.
template <class OnlyWhenCalled = void>
constexpr array_layout with_ranks_of(reshard_plan const& plan, array_layout to)
{
    for (auto& place : to.places) {
        for (auto& rank : place.ranks) {
            rank = rank_at(plan, rank);
        }
    }
    return to;
}

}  // namespace rheo::inline v0
