#pragma once
// SPDX-License-Identifier: Apache-2.0

// Refusals of constructors of layouts that say where: the dimension and its length, or the tensor. A compiler that refuses a constant
// expression shows the same arguments with the sentence.

#include <cstdint>
#include <string>

#include "rheo/reshard/array_layout.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/fixed_text.hpp"

namespace rheo::inline v0::detail {

/// What a rule makes of a dimension, as `{0, 100, "padded to a multiple of", 128}`.
struct ruled_dimension {
    int dimension = 0;
    std::int64_t length = 0;
    char const* rule = "";
    std::int64_t number = 0;
};

/// As expects, with the dimension before the sentence.
constexpr void expects_at(ruled_dimension const& where, bool condition, char const* message)
{
    if (!condition) {
        fixed_text<320> text;
        text << "dimension " << where.dimension << " of length " << where.length << ", " << where.rule << " " << where.number << ": " << message;
        throw precondition_error{std::string{text.view()}};
    }
}

/// As expects, with the tensor before the sentence.
constexpr void expects_at(tensor_name const& tensor, bool condition, char const* message)
{
    if (!condition) {
        fixed_text<320> text;
        text << "tensor \"" << tensor.view() << "\": " << message;
        throw precondition_error{std::string{text.view()}};
    }
}

/// a / b rounded up. @pre a >= 0, b >= 1
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

}  // namespace rheo::inline v0::detail
