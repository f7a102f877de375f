#pragma once
// SPDX-License-Identifier: Apache-2.0

// Reads boxes of stored state in pieces of a bounded size. Where each element comes from is what a reshard plan says whose senders are the files;
// nothing else is read. On the way every element is added to the digest of the piece it comes from, so that after the
// last element the reader knows whether the files had the values that they claim.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/convert/box_runs.hpp"
#include "executor/checkpoint/convert/stored_state.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The least memory for reading a layout's parts: their longest row, which is read at once. @pre the layout is without fault
bytes longest_row(array_layout const& layout);

class value_reader {
public:
    /// @param plan from layout_of(state) to the files that are written, whose ranks come behind those of the state's files  @param memory bytes of values
    /// that are held at once  @pre memory is at least the longest row of what is read; both live longer than the reader
    value_reader(stored_state const& state, reshard_plan const& plan, bytes memory);

    /// Reads a box, wanted by a rank of the plan, and calls use(span of bytes) for each of its pieces, in order. @returns its digest
    template <class Use>
    state_digest read(rank_id rank, tensor_id tensor, tensor_role role, nd_box const& box, Use const& use);

    /// After all was read: each piece has the digest that its file says. @throws exit_error bad data, naming the first file that has not
    void check_digests() const;

private:
    stored_state const& state_;
    reshard_plan const& plan_;
    std::int64_t memory_;
    std::vector<float> buffer_{};         ///< of floats for their alignment
    std::vector<std::size_t> order_{};    ///< pieces by file, tensor and role
    std::vector<state_digest> digests_;   ///< of what was read of each piece
    std::unique_ptr<input_file> open_{};  ///< the file that was read last
    std::size_t open_file_ = 0;

    std::int64_t element_of(tensor_id tensor, tensor_role role) const
    {
        return state_.tensors[at(tensor)].about.element[static_cast<std::size_t>(role)].size.count;
    }
    std::span<std::byte> room_for(std::int64_t count);
    state_digest fill(rank_id rank, tensor_id tensor, tensor_role role, nd_box const& piece, std::span<std::byte> into);
    state_digest copy(std::size_t piece, nd_box const& box, nd_box const& place, std::span<std::byte> into);
};

template <class Use>
state_digest value_reader::read(rank_id rank, tensor_id tensor, tensor_role role, nd_box const& box, Use const& use)
{
    auto const element = element_of(tensor, role);
    state_digest sum;
    for_each_piece(box, memory_ / element, [&](nd_box const& piece) {
        auto const values = room_for(elements(piece) * element);
        sum += fill(rank, tensor, role, piece, values);
        use(std::span<std::byte const>{values});
    });
    return sum;
}

}  // namespace rheo::inline v0
