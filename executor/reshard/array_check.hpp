#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether the arrays of a rank are those that a plan speaks of. What is wrong is one sentence with the array's place in the caller's list, its
// tensor and its box; all ranks hear of it before anything moves.

#include <string>
#include <vector>

#include "executor/mpi/communicator.hpp"
#include "executor/reshard/local_arrays.hpp"
#include "executor/reshard/plan_streams.hpp"
#include "executor/reshard/reshard.hpp"

namespace rheo::inline v0::detail {

/// The arrays of one rank, found by place, and the first thing that is wrong with them.
struct checked_arrays {
    local_arrays held{};
    local_arrays wanted{};
    std::string fault{};
    bool is_column_major = true;  ///< of those with rows and columns: the first dimension is the nearest in all of them
};

checked_arrays check_arrays(reshard_plan const& plan, rank_id self, array_view<held_array const> held, array_view<wanted_array const> wanted);

/// Collective: returns when all ranks have the same plan and message length, and none has a fault. @return the order of elements in messages: that of the
/// arrays where all are column-major, as in Fortran. @throws mismatched_arrays at all ranks, with the sentence of the lowest
element_order agree_on(mpi::communicator const& comm, reshard_plan const& plan, checked_arrays const& arrays, bytes message);

}  // namespace rheo::inline v0::detail
