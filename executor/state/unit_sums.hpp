#pragma once
// SPDX-License-Identifier: Apache-2.0

// The integers that this rank has of a reduction unit, as one run of elements: its tensors one after the other, each summed over its uses here. They lie in the
// accumulators and are only read, so a failure in the middle of an exchange loses nothing. Sums in 32 bits are summed as such, and each row is turned into floats
// by its own scale.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/state/resident_state.hpp"
#include "rheo/plan/reduction_units.hpp"

namespace rheo::inline v0 {

/// Elements [begin, end) of a unit.
struct element_range {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    constexpr std::int64_t size() const { return end - begin; }
    constexpr bool empty() const { return begin >= end; }
    friend constexpr bool operator==(element_range const&, element_range const&) = default;
};

class unit_sums {
public:
    /// @pre the unit and the state outlive it; each tensor has a use on this rank
    unit_sums(reduction_unit const& unit, resident_state& state);

    resident_state const& state() const { return *state_; }
    std::int64_t elements() const { return offsets_.back(); }
    element_range range_of(tensor_id tensor) const;
    /// From this element to the end of its tensor.
    element_range tensor_at(std::int64_t first) const { return {first, *std::upper_bound(offsets_.begin(), offsets_.end(), first)}; }
    /// Bytes of one sum.
    std::size_t sum_size() const { return in_rows_ ? sizeof(std::int32_t) : sizeof(std::int64_t); }
    /// Sums in 32 bits, each tensor of which has one use in the job.
    bool in_place() const { return in_place_; }

    /// Where they lie, where that is one place; else nothing.
    std::byte const* place_of(element_range part) const;
    /// Writes them. @param room of the backend's own memory, for one such part; may be the target where the target lies in that
    void copy(element_range part, std::byte* target, std::byte* room) const;
    /// Adds `count` sums, which may lie in messages, to others.
    void add(std::byte const* source, std::byte* target, std::int64_t count) const;

    /// Turns sums of these elements into floats.
    void convert(std::byte const* sums, element_range part, float* gradient) const;
    /// The same of elements of a tensor that is in place, from its accumulator.
    void convert_in_place(tensor_id tensor, std::int64_t first, std::int64_t count, float* gradient) const;
    /// All of it, over what its accumulator says.
    float const* replace_in_place(tensor_id tensor);

private:
    std::vector<use_id> mine_of(tensor_id tensor) const;
    std::byte const* sums_of(use_id use) const;
    void convert_rows(tensor_id tensor, std::int32_t const* sums, std::int64_t first, std::int64_t count, float* gradient) const;

    reduction_unit const* unit_;
    resident_state* state_;
    compute_backend* backend_;
    std::vector<std::int64_t> offsets_;  ///< tensor of the unit -> its first element; the last: all elements
    bool in_rows_;                       ///< sums in 32 bits
    bool in_place_;
};

}  // namespace rheo::inline v0
