#pragma once
// SPDX-License-Identifier: Apache-2.0

// Performs a reshard plan: every rank of a communicator gives the arrays that it holds and those that it wants, and all elements of the plan
// are where they are wanted when the call returns. It works on a communicator of its own over any MPI. Arrays stay where the caller
// has them, with the caller's strides; memory that is not the host's is reached by the caller's own copy of rows.

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include <mpi.h>

#include "executor/reshard/strided_copy.hpp"
#include "rheo/reshard/array_layout.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A box of one role of a tensor in this rank's memory.
template <class Memory>
struct array_at {
    tensor_id tensor;
    tensor_role role;
    nd_box box;
    Memory* data;  ///< its first element
    element_format element;
    std::vector<std::int64_t> strides{};  ///< in elements, by dimension; empty: row-major without gaps
};

using held_array = array_at<void const>;
using wanted_array = array_at<void>;

struct reshard_options {
    row_copier copy_rows{};            ///< for memory that memcpy does not reach; then no message touches an array itself
    std::vector<rank_id> members{};    ///< the plan's name of each rank of the communicator; empty: their numbers in it
    bytes message = kibibytes(256);    ///< longer ones are cut, so that packing and sending overlap. The same on all ranks
    bytes shared_from = mebibytes(1);  ///< where a rank packs as much, ranks of a node read it in memory that they share. The least of all ranks' counts
    std::function<void(int round)> round_ended{};  ///< what this rank drops at the end of the round is no longer needed, and its copies are where they go
};

struct reshard_result {
    bytes sent{};  ///< by this rank
    bytes received{};
    bytes kept{};    ///< copied from this rank's held arrays to its wanted ones
    seconds time{};  ///< from the agreement that all ranks can begin to the last element

    friend bool operator==(reshard_result const&, reshard_result const&) = default;
};

/// The arrays are not those of the plan, or the ranks have different plans: all ranks throw the same sentence, and nothing was moved.
struct mismatched_arrays : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Collective over the communicator. Held arrays are read, wanted ones written; elements of wanted arrays that the plan does not bring stay as they are.
/// Held arrays have the formats of the source layout, wanted ones those of the target layout: elements travel in the smaller one. Addends are added
/// in the order of ranks as the type of the sum, whatever comes first, so that sums are the same bits in every run; integers wrap.
/// @pre wanted arrays do not overlap held ones in memory, but where both have an element at one address, in one format and not as a sum
/// @return what this rank moved. @throws mismatched_arrays; mpi::peer_lost or mpi::error, which leave wanted arrays undefined
reshard_result reshard(MPI_Comm comm, reshard_plan const& plan, array_view<held_array const> held, array_view<wanted_array const> wanted,
                       reshard_options const& options = {});

/// The same elements between the same arrays many times, as MPI's persistent collectives: what reshard() checks, agrees on and cuts into messages
/// in each call is done once, and buffers stay.
class prepared_reshard {
public:
    /// Collective over the communicator. @pre the plan and the memory of the arrays stay until this is destroyed, which is collective, too
    /// @throws as reshard()
    prepared_reshard(MPI_Comm comm, reshard_plan const& plan, array_view<held_array const> held, array_view<wanted_array const> wanted,
                     reshard_options options = {});
    prepared_reshard(prepared_reshard&&) noexcept;
    prepared_reshard& operator=(prepared_reshard&&) noexcept;
    ~prepared_reshard();

    /// Collective: does what reshard() does. @throws mpi::peer_lost or mpi::error, which leave wanted arrays undefined; after one of them
    /// each further run throws std::logic_error
    reshard_result run();

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace rheo::inline v0
