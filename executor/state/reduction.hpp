#pragma once
// SPDX-License-Identifier: Apache-2.0

// The exact sum of a unit's gradient over all its holders. Each holder owns a slice of the unit: it
// receives all ranks' integers of that slice, adds them, turns the sum into floats once, and sends these to
// the others (a reduce-scatter and an all-gather; integers add up in any order). Accumulators are
// only read: the result goes into a buffer of its own, so a failure in the middle loses nothing. What one rank holds alone becomes floats from where it was summed. Sums in 32 bits are summed as such, and each
// row is turned into floats by its own scale. What of these is on one rank alone, in one accumulator, needs no buffer: its gradient is read from there piece by
// piece, and takes its place when the step is committed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/state/resident_state.hpp"
#include "kernels/tiles.hpp"
#include "rheo/plan/reduction_units.hpp"

namespace rheo::inline v0 {

class reduction {
public:
    /// @param holders ascending, this rank among them  @param keepers those that update it and get the gradient; empty: all holders
    reduction(reduction_id id, reduction_unit const& unit, std::vector<rank_id> holders, resident_state& state, std::vector<rank_id> keepers = {});

    /// Sends my integers and begins to receive. Nothing is waited for.
    void post(mpi::messenger& messages);

    /// Does what can be done without waiting; true when the result is whole. @throws mpi::peer_lost
    bool advance(mpi::messenger& messages);

    /// The gradient is what the one accumulator says that there is.
    bool in_place() const { return in_place_; }

    /// A piece of the reduced plain-sum gradient of a tensor of the unit, where kernels reach it. @param room of the backend's own memory, which may have it until the
    /// next call @pre advance() was true
    float const* piece(tensor_id tensor, std::int64_t first, std::int64_t count, array<float>& room) const;

    /// All of it, for the update. What is in place becomes floats there: @pre then the step is committed
    float const* gradient(tensor_id tensor);

    /// Where a holder that is no keeper receives the new values of a parameter of the unit, in the place of its gradient.
    std::span<float> staging(tensor_id tensor);
    /// They are all there: gradient() returns them. Waits.
    void staged();

    std::vector<rank_id> const& holders() const { return holders_; }
    std::vector<rank_id> const& keepers() const { return keepers_; }

    /// The buffer that the update reads the gradient from; nothing where it is in place.
    bytes buffer_bytes() const { return {static_cast<std::int64_t>(values_.size() * sizeof(float))}; }

    reduction_unit const& unit() const { return *unit_; }
    bool posted() const { return phase_ != phase::idle; }

    /// Forgets a posted exchange, after its messages have been drained.
    void reset();

private:
    enum class phase : std::uint8_t { idle, summing, spreading, done };
    struct slice {
        std::int64_t begin;
        std::int64_t end;
        std::size_t size() const { return static_cast<std::size_t>(end - begin); }
    };
    slice slice_of(std::size_t holder) const;
    bool keeps(std::size_t holder) const { return std::binary_search(keepers_.begin(), keepers_.end(), holders_[holder]); }
    std::vector<use_id> mine_of(tensor_id tensor) const;
    std::int64_t offset_of(tensor_id tensor) const;
    std::byte const* sums_of(use_id use) const;
    void sum_uses(std::vector<use_id> const& uses, std::int64_t first, std::int64_t count, std::byte* target);
    void sum_mine();
    void convert_alone();
    void add(std::byte const* source, std::byte* target, std::int64_t count);
    void convert_rows(tensor_id tensor, std::int32_t const* sums, std::int64_t first, std::int64_t count, float* to) const;
    std::span<float> values_for_messages()
    {
        return backend_->has_one_memory() ? std::span{values_.data(), values_.size()} : std::span{values_in_messages_.data(), values_in_messages_.size()};
    }
    void convert(std::byte const* sums, slice part);
    enum class direction : std::uint8_t { to_messages, from_messages };
    void copy_values(slice part, direction way);

    reduction_id id_;
    reduction_unit const* unit_;
    std::vector<rank_id> holders_;
    std::vector<rank_id> keepers_;
    resident_state* state_;
    compute_backend* backend_;
    std::size_t self_ = 0;
    std::vector<std::int64_t> offsets_;  ///< tensor of the unit -> its first element; the last: all elements
    bool in_rows_;                       ///< sums in 32 bits
    bool in_place_ = false;
    std::size_t size_;                 ///< bytes of a sum; those below are arrays of sums
    array<std::byte> mine_;            ///< my integers of the whole unit, empty when they can be read in place; alone, a piece of a tie
    std::byte const* sums_ = nullptr;  ///< of several holders: mine_, or the one accumulator that the unit has here
    array<std::byte> total_;           ///< of my slice
    array<float> values_;              ///< of the whole unit, but for what is in place
    array<std::byte> outgoing_;        ///< my integers in messages, where that is another memory
    std::vector<array<std::byte>> incoming_;
    array<float> values_in_messages_;  ///< where that is another memory
    std::vector<mpi::messenger::ticket> sum_receipts_;
    std::vector<mpi::messenger::ticket> value_receipts_;
    std::vector<mpi::messenger::ticket> sends_;
    phase phase_ = phase::idle;
};

}  // namespace rheo::inline v0
