#pragma once
// SPDX-License-Identifier: Apache-2.0

// What happens to elements between two memories besides being copied: they become another format, or are added to what is there. It is done where a
// message is packed or unpacked, so that no array is needed for what lies between.

#include <cstddef>
#include <cstdint>

#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

enum class element_change : std::uint8_t { none, f32_to_bf16, bf16_to_f32, add_f32, add_f64, add_i32, add_i64, add_bf16_to_f32 };

/// From one format to another. @pre equal, or f32 and bf16
element_change conversion(element_format const& from, element_format const& to);

/// Adds elements of one format to a sum. Floats are added as the sum's type, integers modulo 2^32 or 2^64. @pre the sum is f32, f64, i32 or i64
element_change addition(element_format const& addend, element_format const& sum);

constexpr bool adds(element_change change) { return change >= element_change::add_f32; }

/// What is added first: minus zero leaves every float as it is, its sign, too.
std::uint64_t first_sum(element_format const& sum);

struct changed_bytes {
    std::size_t from;
    std::size_t to;
};

/// The bytes of an element before and after. @pre it is a change
changed_bytes bytes_of(element_change change);

/// One row of elements; strides in bytes.
struct changed_row {
    std::byte* to;
    std::ptrdiff_t to_stride;
    std::byte const* from;
    std::ptrdiff_t from_stride;
    std::size_t count;
};

void change_row(element_change change, changed_row const& row);

}  // namespace rheo::inline v0::detail
