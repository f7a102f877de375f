#pragma once
// SPDX-License-Identifier: Apache-2.0

// Copies of n-D boxes between memories with strides; elements may be converted or added on the way. Dimensions that lie one behind the other in both memories are joined first, so that
// a box becomes as few and as long rows as there are; rows of equal distance are one call of the row copier. The default one is memcpy; for device
// memory the caller gives one with the arguments of cudaMemcpy2D.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "executor/reshard/element_change.hpp"

namespace rheo::inline v0 {

/// `rows` rows of `row_bytes` bytes, each as far behind the one before it as its pitch says.
struct row_block {
    std::byte* to;
    std::ptrdiff_t to_pitch;
    std::byte const* from;
    std::ptrdiff_t from_pitch;
    std::size_t row_bytes;
    std::size_t rows;
};

/// Copies a block of rows and returns when it is there. Empty: memcpy.
using row_copier = std::function<void(row_block const&)>;

namespace detail {

inline constexpr std::size_t copied_dimensions = 8;

/// A box to copy: strides in bytes, the first dimension outermost.
struct strided_box {
    std::array<std::int64_t, copied_dimensions> extent{};
    std::array<std::ptrdiff_t, copied_dimensions> to_stride{};
    std::array<std::ptrdiff_t, copied_dimensions> from_stride{};
    std::size_t dimensions = 0;
    std::size_t element_bytes = 0;  ///< without a change
    element_change change = element_change::none;
    bool is_ordered = false;  ///< in_copy_order() has made it
};

/// The same box as it is copied: what is copied in succession lies as near as it can in both memories, and what is one run in both is one dimension. Once for
/// a box that is copied many times.
strided_box in_copy_order(strided_box const& box);

/// Asks for the first rows of an ordered box, for when it is copied.
void fetch_first_rows(strided_box const& box, std::byte const* from);

/// True when the box is one run of bytes on the side that `stride` is of.
bool is_one_run(strided_box const& box, std::array<std::ptrdiff_t, copied_dimensions> const& stride);

/// Whether copied rows stay in the caches, or go past them: what is larger than these is then written without being read first.
enum class row_stores : std::uint8_t { cached, streaming };

/// Copies the box, or does with its elements what it says. What was streamed is seen by other threads after end_streams() (streaming_row.hpp).
/// @pre source and destination do not overlap
void copy_strided(strided_box const& box, std::byte* to, std::byte const* from, row_copier const& copy_rows, row_stores stores = row_stores::cached);

}  // namespace detail

}  // namespace rheo::inline v0
