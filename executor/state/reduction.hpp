#pragma once
// SPDX-License-Identifier: Apache-2.0

// The exact sum of a unit's gradient over all its holders. Each holder owns a slice of the unit: it receives all ranks' integers of that slice, adds them,
// turns the sum into floats once, and sends these to the others (a reduce-scatter and an all-gather; integers add up in any order). Slices travel in rounds of a
// piece each, of which two are in flight, so that the buffers are small (reduction_buffer_bytes in model/parameter_bytes.hpp); every unit has its own, because ranks
// may begin units in different orders. A transport that sums takes the place of all that (group_sum.hpp). Accumulators are only read: the result goes into a buffer of its own, so a failure in the middle loses nothing. What one
// rank holds alone becomes floats from where it was summed. Sums in 32 bits that are on one rank alone, in one accumulator, need no buffer: their gradient is read
// from there piece by piece, and takes their place when the step is committed.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/state/group_sum.hpp"
#include "executor/state/resident_state.hpp"
#include "executor/state/unit_sums.hpp"
#include "executor/transport/transport.hpp"
#include "rheo/plan/reduction_units.hpp"

namespace rheo::inline v0 {

class reduction {
public:
    /// @param holders ascending, this rank among them  @param keepers those that update it and get the gradient; empty: all holders
    reduction(reduction_id id, reduction_unit const& unit, std::vector<rank_id> holders, resident_state& state, std::vector<rank_id> keepers = {});
    reduction(reduction const&) = delete;
    reduction& operator=(reduction const&) = delete;

    /// Takes the memory that sums by a transport need. @pre nothing is posted
    void prepare_sums();

    /// Begins to send my integers and to receive, or their sums. Nothing is waited for. @pre prepare_sums() was called if the transport sums
    void post(transport& by);

    /// Does what can be done without waiting; true when the result is whole. @throws mpi::peer_lost
    bool advance(transport& by);

    /// The gradient is what the one accumulator says that there is.
    bool in_place() const { return in_place_; }

    /// A piece of the reduced plain-sum gradient of a tensor of the unit, where kernels reach it. @param room of the backend's own memory, which may have it until the
    /// next call @pre advance() was true
    float const* piece(tensor_id tensor, std::int64_t first, std::int64_t count, array<float>& room) const;

    /// All of it, for the update. What is in place becomes floats there: @pre then the step is committed
    float const* gradient(tensor_id tensor);

    /// Where a holder that is no keeper receives the new values of a parameter of the unit, in the place of its gradient.
    std::span<float> place_of(tensor_id tensor);
    /// The same for messages that do not reach that.
    std::span<float> staging(tensor_id tensor);
    /// They are all there: gradient() returns them. Waits.
    void staged();

    std::vector<rank_id> const& holders() const { return holders_; }
    std::vector<rank_id> const& keepers() const { return keepers_; }

    /// What it keeps: the gradient that the update reads, where that is in a buffer, and what sums are joined in.
    bytes buffer_bytes() const;

    /// Of the integers that each holder puts in.
    bytes sum_bytes() const { return {mine_.elements() * static_cast<std::int64_t>(mine_.sum_size())}; }

    reduction_unit const& unit() const { return *unit_; }
    bool posted() const { return posted_; }

    /// Forgets a posted exchange, after its messages have been drained.
    void reset();

private:
    static constexpr std::int64_t in_flight = 2;  ///< rounds

    /// The messages of a round: a piece of every slice. Its buffers are those of one of `in_flight` places.
    struct round {
        std::vector<transport::ticket> sums;    ///< received
        std::vector<transport::ticket> values;  ///< received
        std::vector<transport::ticket> sends;
    };

    bool keeps(std::size_t holder) const { return std::binary_search(keepers_.begin(), keepers_.end(), holders_[holder]); }
    bool alone() const { return holders_.size() == 1; }
    element_range slice_of(std::size_t holder) const;
    element_range piece_of(std::size_t holder, std::int64_t of_round) const;
    void divide_buffers(bytes size);
    std::byte* sums_buffer(std::size_t holder, std::int64_t of_round, bool sent);
    float* values_for_messages(std::size_t holder, std::int64_t of_round, element_range part);
    void convert_alone();
    void begin(std::int64_t of_round, transport& by);
    void sum(std::int64_t of_round, transport& by);
    void finish(std::int64_t of_round);

    reduction_id id_;
    reduction_unit const* unit_;
    std::vector<rank_id> holders_;
    std::vector<rank_id> keepers_;
    compute_backend* backend_;
    unit_sums mine_;
    bool in_place_;
    std::size_t self_ = 0;
    array<float> values_;              ///< of the whole unit, but for what is in place
    array<std::byte> total_;           ///< in which sums are joined: a piece of a slice, or of a tie
    array<std::byte> in_messages_;     ///< what is sent and received in rounds
    array<float> values_in_messages_;  ///< of the whole unit, for a holder that is no keeper, where messages are another memory
    group_sum by_transport_;           ///< in place of rounds, where the transport sums
    std::int64_t piece_ = 0;           ///< elements of a slice in a round
    std::int64_t rounds_ = 0;
    std::int64_t begun_ = 0;     ///< rounds of which messages are in flight or through
    std::int64_t summed_ = 0;    ///< of them, those whose sums are joined
    std::int64_t finished_ = 0;  ///< of them, those whose values are there
    std::array<round, in_flight> places_;
    bool posted_ = false;
};

}  // namespace rheo::inline v0
