#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan of a re-sharding: what moves between which ranks in which round, what stays where it is, and a certificate that sets each
// quantity beside a bound that no plan can beat. It is a value: planned on every rank alike, checked by verify(), run by the executor.

#include <array>
#include <cstddef>
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
    array_layout to;                 ///< the same tensors in the same order; formats and padding may differ
    std::vector<rank_id> live{};     ///< ascending; empty: all ranks of both layouts
    std::vector<node_id> node_of{};  ///< by rank, for every rank of both layouts; empty: nodes are not known
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
    bytes size;  ///< as it travels: in the smaller of the two formats, addends as they are held

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
    bounded_count rounds;  ///< the bound is the law of detail/fill_rounds.hpp: ceil(largest receive / budget) where elements divide the budget
    bounded_bytes peak;    ///< most bytes of these tensors at a rank at any time

    friend constexpr bool operator==(reshard_certificate const&, reshard_certificate const&) = default;
};

/// How the source layout keeps a tensor.
struct held_format {
    std::array<element_format, tensor_roles> element{};
    role_set addends{std::uint8_t{0}};

    friend constexpr bool operator==(held_format const&, held_format const&) = default;
};

struct reshard_plan {
    std::vector<layout_tensor> tensors;   ///< as the target layout has them
    std::vector<taken_place> taken;       ///< ascending by place; empty: pinned
    std::vector<sub_collection> kept;     ///< what these ranks hold and want; from their held arrays to their wanted ones
    std::vector<transfer> transfers;      ///< ascending by round, then receiver, tensor and sender
    std::vector<dropped_part> dropped{};  ///< ascending by round and rank; only in place
    std::vector<held_format> held{};      ///< by tensor; empty: formats are those of `tensors`, and nothing is added
    reshard_certificate certificate;

    friend constexpr bool operator==(reshard_plan const&, reshard_plan const&) = default;
};

/// How elements are where they are held, on the way, and where they are wanted.
struct moving_format {
    element_format held{};
    element_format travelling{};
    element_format wanted{};
    bool is_addend = false;  ///< to be added to the others of the same element, in the order of ranks

    friend constexpr bool operator==(moving_format const&, moving_format const&) = default;
};

/// Elements travel in the smaller format; addends as they are held, since a sum of rounded addends is another sum.
constexpr moving_format format_between(element_format const& held, element_format const& wanted, bool is_addend)
{
    return {held, is_addend || held.size < wanted.size ? held : wanted, wanted, is_addend};
}

/// @pre the plan has the tensor
constexpr moving_format format_of(reshard_plan const& plan, tensor_id tensor, tensor_role role)
{
    auto const r = static_cast<std::size_t>(role);
    auto const& wanted = plan.tensors[at(tensor)].element[r];
    if (at(tensor) >= plan.held.size()) {
        return {wanted, wanted, wanted};
    }
    return format_between(plan.held[at(tensor)].element[r], wanted, plan.held[at(tensor)].addends.has(role));
}

/// The roles of a tensor that are sums of addends. @pre the plan has the tensor
constexpr role_set sums_of(reshard_plan const& plan, tensor_id tensor)
{
    return at(tensor) < plan.held.size() ? plan.held[at(tensor)].addends & roles_of(plan.tensors[at(tensor)]) : role_set{std::uint8_t{0}};
}

/// The roles of a tensor that are converted or added up. @pre the plan has the tensor
constexpr role_set changed_in(reshard_plan const& plan, tensor_id tensor)
{
    auto changed = sums_of(plan, tensor).bits;
    for (std::size_t r = 0; at(tensor) < plan.held.size() && r < plan.held[at(tensor)].element.size(); ++r) {
        changed = static_cast<std::uint8_t>(changed | (plan.held[at(tensor)].element[r] != plan.tensors[at(tensor)].element[r] ? 1U << r : 0U));
    }
    return role_set{changed};
}

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
