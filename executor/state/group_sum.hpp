#pragma once
// SPDX-License-Identifier: Apache-2.0

// The exact sum of a unit over its holders by a transport that sums integers. Sums in 32 bits arrive where their floats will lie, a tensor at a time; sums in
// 64 bits in buffers, a piece of the unit each. Every holder turns all of them into floats. On a ring that sends as many bytes as a reduce-scatter of integers and
// an all-gather of floats in 32 bits, a third more in 64 (16 bytes in place of 12 an element). Holders cut units alike.

#include <cstddef>
#include <cstdint>
#include <deque>

#include "executor/state/unit_sums.hpp"
#include "executor/transport/transport.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

class group_sum {
public:
    /// @pre the sums and the backend outlive it
    group_sum(reduction_id id, unit_sums const& mine, compute_backend& backend);

    /// Takes the buffers, of so many bytes in all, unless they are there.
    void prepare(bytes buffers);

    /// @param values of the whole unit, in the backend's own memory
    void begin(transport& by, float* values);

    /// Does what can be done without waiting; true when all values are there. @throws mpi::peer_lost
    bool advance(transport& by);

    /// @pre nothing is under way
    void reset();

private:
    /// A part of the unit that is summed now.
    struct under_way {
        element_range part;
        std::byte* sums;
        transport::ticket done;
    };

    bool in_rows() const { return mine_->sum_size() == sizeof(std::int32_t); }
    element_range part_from(std::int64_t first) const;
    void begin_next(transport& by);
    transport::ticket begin_sum(transport& by, std::byte const* mine, std::byte* total, element_range part);

    static constexpr std::size_t in_flight = 2;

    reduction_id id_;
    unit_sums const* mine_;
    compute_backend* backend_;
    array<std::byte> buffers_;  ///< of sums in 64 bits: `in_flight` pieces
    std::int64_t piece_ = 0;    ///< elements
    float* values_ = nullptr;
    std::int64_t next_ = 0;  ///< element: those before it are begun
    std::size_t begun_ = 0;  ///< parts
    std::deque<under_way> under_way_;
};

}  // namespace rheo::inline v0
