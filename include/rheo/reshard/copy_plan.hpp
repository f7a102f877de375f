#pragma once
// SPDX-License-Identifier: Apache-2.0

// From who holds what to who wants what: the copies, fewest bytes, sources spread over the holders.

#include <optional>
#include <span>
#include <vector>

#include "rheo/tensor/box.hpp"
#include "rheo/topology/index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A box of a tensor; `whole(shape)` is all of it.
struct tensor_part {
    tensor_id tensor;
    index_box box;

    friend constexpr bool operator==(tensor_part const&, tensor_part const&) = default;
};

/// What one rank holds or wants.
struct rank_parts {
    rank_id rank;
    std::vector<tensor_part> parts;

    friend constexpr bool operator==(rank_parts const&, rank_parts const&) = default;
};

struct copy {
    rank_id from;
    rank_id to;
    tensor_part part;
    bytes size;

    friend constexpr bool operator==(copy const&, copy const&) = default;
};

struct copy_plan_request {
    std::vector<rank_parts> held;         ///< ascending by rank
    std::vector<rank_parts> wanted;       ///< ascending by rank
    std::vector<bytes> element_bytes;     ///< tensor -> bytes of one element, all roles that travel together
    std::optional<bytes> round_budget{};  ///< most bytes that a rank receives in one round; none: one round

    friend constexpr bool operator==(copy_plan_request const&, copy_plan_request const&) = default;
};

struct copy_plan_answer {
    std::vector<std::vector<copy>> rounds;  ///< a round begins when the one before it has ended
    std::vector<tensor_part> lost;          ///< wanted but held by nobody
    bytes moved;

    friend constexpr bool operator==(copy_plan_answer const&, copy_plan_answer const&) = default;
};

/// Nothing is copied that is there; each wanted element comes exactly once, from a rank that holds it.
constexpr copy_plan_answer copy_plan(copy_plan_request const& request);

}  // namespace rheo::inline v0
