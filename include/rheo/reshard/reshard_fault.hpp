#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is wrong with a layout, a request or a plan: a value that names the culprits, and the sentence that people read. One sentence
// serves the compiler (static_assert) and the refusal at run time.

#include <cstdint>
#include <string_view>

#include "rheo/reshard/array_layout.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/fixed_text.hpp"

namespace rheo::inline v0 {

enum class reshard_error : std::uint8_t {
    none,
    // of a layout
    bad_shape,       ///< a negative length, or a padding below the shape
    bad_element,     ///< a negative size of an element, or one beyond 64 bits in all roles together
    name_twice,      ///< two tensors have one name
    bad_rank,        ///< a rank below 0, or too large
    rank_twice,      ///< a rank is listed twice
    no_such_tensor,  ///< a part of a tensor that the layout does not have
    no_such_role,    ///< a part in roles that the tensor does not have
    dimensions,      ///< a box has other dimensions than its tensor
    outside,         ///< a box leaves its tensor
    overlap,         ///< two boxes of a rank have a common element
    not_held,        ///< elements that no rank has
    too_large,       ///< sizes beyond 64 bits
    // of a request
    other_tensors,     ///< the two layouts do not have the same tensors
    other_format,      ///< formats that are not converted into each other
    addends,           ///< addends are wanted, not their sum
    sum_format,        ///< addends of a format in which nothing is added
    changed_in_place,  ///< formats that are converted, or addends, under a memory limit
    lost_addend,       ///< a rank that is not live held an addend
    dead_rank,         ///< the target layout pins a rank that is not live
    few_ranks,         ///< more places than live ranks
    few_nodes,         ///< more nodes with places than live nodes
    no_node,           ///< a rank without a node
    uneven_nodes,      ///< a node with more places than any live one that is left has ranks
    large_nodes,       ///< more bytes than whole nodes can be chosen for in 64 bits
    bad_live,          ///< the live ranks do not ascend
    bad_failures,      ///< a negative number of failures
    lost,              ///< wanted, but no live rank holds it
    small_budget,      ///< an element does not fit into a round
    small_memory,      ///< the memory limit is below what any plan needs
    little_memory,     ///< the memory limit is below what the plan that was found needs
    // of a plan
    not_there,     ///< a rank sends, keeps or drops what it does not have at that time
    comes_twice,   ///< a rank gets an element twice, or one that it has
    not_wanted,    ///< a rank gets an element that it does not want
    never_comes,   ///< a wanted element is not there at the end
    wrong_size,    ///< the size of a transfer is not that of its box
    wrong_order,   ///< transfers or drops are not in the order that a plan has
    wrong_place,   ///< the ranks that take places are not those of the target layout
    wrong_sum,     ///< the certificate says another number than the plan has
    wrong_format,  ///< the formats of the plan are not those of the source layout
    not_live,      ///< a rank that is not live sends, receives or keeps
    over_budget,   ///< a rank receives more in a round than the budget
    over_memory,   ///< a rank has more than the memory limit
    few_copies,    ///< a rank drops a copy that has to stay
    addend_order,  ///< an addend comes in an earlier round than that of a lower rank
};

/// The first of some ranks, ascending, and how many there are.
struct listed_ranks {
    static constexpr std::int64_t room = 8;
    rank_id first[room]{};
    std::int64_t count = 0;

    friend constexpr bool operator==(listed_ranks const&, listed_ranks const&) = default;
};

struct reshard_fault {
    reshard_error error = reshard_error::none;
    rank_id rank{-1};  ///< -1: none is at fault
    rank_id other{-1};
    tensor_name name{};  ///< of the tensor; empty: none is at fault
    nd_box box{};
    nd_box other_box{};
    std::int64_t number = 0;      ///< found
    std::int64_t limit = 0;       ///< expected
    std::string_view quantity{};  ///< of a certificate
    int round = 0;                ///< of a transfer or drop
    listed_ranks holders{};       ///< that are not live

    friend constexpr bool operator==(reshard_fault const&, reshard_fault const&) = default;
    /// Whether there is one.
    constexpr explicit operator bool() const { return error != reshard_error::none; }
};

using reshard_sentence = fixed_text<640>;

namespace detail {

template <std::size_t Room>
constexpr fixed_text<Room>& append(fixed_text<Room>& text, nd_box const& box)
{
    text << "[";
    for (int d = 0; d < box.dimensions; ++d) {
        text << (d == 0 ? "" : ", ") << box[d].begin << ":" << box[d].end;
    }
    return text << "]";
}

/// `rank 3`, `ranks 3 and 5`; the first eight of more
constexpr void append(reshard_sentence& text, listed_ranks const& ranks)
{
    auto const shown = ranks.count < listed_ranks::room ? ranks.count : listed_ranks::room;
    text << (ranks.count == 1 ? "rank " : "ranks ");
    for (std::int64_t i = 0; i < shown; ++i) {
        text << (i == 0 ? "" : i + 1 == ranks.count ? " and " : ", ") << ranks.first[i].value;
    }
    if (ranks.count > shown) {
        text << " and " << ranks.count - shown << " more";
    }
}

/// `rank 3: "name" [0:4]`, of what is known of it.
constexpr void append_place(reshard_sentence& text, reshard_fault const& fault)
{
    if (fault.rank.value >= 0) {
        text << "rank " << fault.rank.value << (fault.name.empty() ? "" : ", ");
    }
    if (!fault.name.empty()) {
        text << "tensor \"" << fault.name.view() << "\"" << (fault.box.dimensions > 0 ? " " : "");
    }
    if (fault.box.dimensions > 0) {
        append(text, fault.box);
    }
    if (!text.empty()) {
        text << ": ";
    }
}

constexpr void append_layout_error(reshard_sentence& text, reshard_fault const& fault)
{
    switch (fault.error) {
    case reshard_error::bad_shape: text << "lengths of a shape are at least 0, and a padded shape is at least as long as the shape"; break;
    case reshard_error::bad_element: text << "an element has at least 0 bytes in each role, and in all of them together less than 2^63"; break;
    case reshard_error::name_twice: text << "two tensors of the layout have this name; give each its own"; break;
    case reshard_error::bad_rank: text << "ranks count from 0 to " << most_ranks - 1 << ", and one is " << fault.number; break;
    case reshard_error::rank_twice: text << "the layout lists this rank twice; list it once with all its parts"; break;
    case reshard_error::no_such_tensor: text << "the layout has " << fault.limit << " tensors, and a part names number " << fault.number; break;
    case reshard_error::no_such_role: text << "the part names no role that the tensor has"; break;
    case reshard_error::dimensions: text << "the box has " << fault.number << " dimensions and the tensor " << fault.limit; break;
    case reshard_error::outside: append(text << "the box leaves the tensor ", fault.other_box); break;
    case reshard_error::overlap: append(text << "the box overlaps with another of the same rank, ", fault.other_box); break;
    case reshard_error::not_held: text << "no rank has these elements"; break;
    case reshard_error::too_large: text << "the bytes of all ranks together do not fit into 64 bits"; break;
    default: break;
    }
}

constexpr void append_request_error(reshard_sentence& text, reshard_fault const& fault)
{
    switch (fault.error) {
    case reshard_error::other_tensors: text << "both layouts list the same tensors with the same shapes and roles in the same order; this one differs"; break;
    case reshard_error::other_format: text << "the two layouts keep it in formats that are not converted: f32 to and from bf16 are"; break;
    case reshard_error::addends: text << "the target layout wants addends of it, but a plan brings only their sum"; break;
    case reshard_error::sum_format: text << "addends are f32, f64, i32 or i64 with a sum of the same, or bf16 with a sum in f32; these are not"; break;
    case reshard_error::changed_in_place:
        text << "no plan converts or adds under a memory limit, and the two layouts keep it in other formats; do that first, then move in place";
        break;
    case reshard_error::lost_addend:
        append(text << (fault.holders.count == 1 ? "an addend of this box is lost: " : "addends of this box are lost: "), fault.holders);
        text << (fault.holders.count == 1 ? " held it and is not live" : " held them and are not live");
        break;
    case reshard_error::dead_rank: text << "the target layout names this rank, but it is not live; let other ranks take its place (ranks = any)"; break;
    case reshard_error::few_ranks: text << "the target layout has " << fault.number << " places, but only " << fault.limit << " ranks are live"; break;
    case reshard_error::few_nodes: text << "the target layout has places on " << fault.number << " nodes, but only " << fault.limit << " nodes are live"; break;
    case reshard_error::large_nodes:
        text << "whole nodes are chosen for less than " << fault.limit << " bytes in all, and the target layout has " << fault.number;
        break;
    case reshard_error::bad_live: text << "live ranks ascend from 0, each once; these do not"; break;
    case reshard_error::bad_failures: text << "failures + 1 copies stay: failures are at least 0, and these are " << fault.number; break;
    case reshard_error::no_node: text << "the request names no node for this rank"; break;
    case reshard_error::uneven_nodes:
        text << "the target layout needs nodes with " << fault.number << " ranks, but the live nodes that are left have at most " << fault.limit;
        break;
    case reshard_error::lost:
        text << "no live rank holds this box";
        if (fault.holders.count > 0) {
            append(text << "; ", fault.holders);
            text << (fault.holders.count == 1 ? " held it and is not live" : " held it and are not live");
        }
        break;
    case reshard_error::small_budget: text << "one element takes " << fault.limit << " bytes, and a round may receive only " << fault.number; break;
    case reshard_error::small_memory: text << "the memory limit is " << fault.number << " bytes, and every plan needs at least " << fault.limit; break;
    case reshard_error::little_memory:
        text << "the memory limit is " << fault.number << " bytes, and the plan that was found needs " << fault.limit << "; allow that much";
        break;
    default: break;
    }
}

constexpr void append_plan_error(reshard_sentence& text, reshard_fault const& fault)
{
    switch (fault.error) {
    case reshard_error::not_there: text << "the plan takes this box from the rank, which does not have all of it at that time"; break;
    case reshard_error::comes_twice: text << "the plan gives the rank these elements twice, or the rank has them already"; break;
    case reshard_error::not_wanted: text << "the plan gives the rank elements that it does not want"; break;
    case reshard_error::never_comes: text << "the rank wants these elements, and the plan does not bring them"; break;
    case reshard_error::wrong_size: text << "the plan counts " << fault.number << " bytes for this transfer, but they are " << fault.limit; break;
    case reshard_error::wrong_order: text << "transfers ascend by round, receiver, tensor and sender, and rounds count from 0; these do not"; break;
    case reshard_error::wrong_place: text << "the ranks that take places are not a permutation of places and live ranks"; break;
    case reshard_error::wrong_sum: text << "the certificate says " << fault.number << " for " << fault.quantity << ", but it is " << fault.limit; break;
    case reshard_error::wrong_format: text << "the plan was made for elements that the source layout keeps in another format"; break;
    case reshard_error::not_live: text << "the plan uses this rank, which is not live"; break;
    case reshard_error::over_budget:
        text << "the plan brings " << fault.number << " bytes in round " << fault.round << ", and the budget is " << fault.limit;
        break;
    case reshard_error::over_memory:
        text << "the rank has " << fault.number << " bytes in round " << fault.round << ", and the limit is " << fault.limit;
        break;
    case reshard_error::few_copies:
        text << "the rank drops this box after round " << fault.round << ", which leaves " << fault.number << " copies of the " << fault.limit << " that stay";
        break;
    case reshard_error::addend_order:
        text << "an addend comes in round " << fault.round << ", before that of a lower rank; sums are in the order of ranks";
        break;
    default: break;
    }
}

}  // namespace detail

/// The sentence of a fault; empty when there is none.
constexpr reshard_sentence describe(reshard_fault const& fault)
{
    reshard_sentence text;
    if (fault) {
        detail::append_place(text, fault);
        detail::append_layout_error(text, fault);
        detail::append_request_error(text, fault);
        detail::append_plan_error(text, fault);
    }
    return text;
}

}  // namespace rheo::inline v0
