#pragma once
// SPDX-License-Identifier: Apache-2.0

// The 30 forms that the value of a Chakra attribute can have: 15 kinds, each alone and as a list. The enumerators have the names and the field
// numbers of the schema. Which one a consumer reads matters: a number in another member is 0 to it, without a word.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rheo/trace/chakra/wire.hpp"

namespace rheo::inline v0 {

/// The member of `oneof value` in AttributeProto, by field number; `none` where an attribute has no value.
enum class chakra_member : std::uint8_t {
    none = 0,
    double_val = 3,
    double_list,
    float_val,
    float_list,
    int32_val,
    int32_list,
    int64_val,
    int64_list,
    uint32_val,
    uint32_list,
    uint64_val,
    uint64_list,
    sint32_val,
    sint32_list,
    sint64_val,
    sint64_list,
    fixed32_val,
    fixed32_list,
    fixed64_val,
    fixed64_list,
    sfixed32_val,
    sfixed32_list,
    sfixed64_val,
    sfixed64_list,
    bool_val,
    bool_list,
    string_val,
    string_list,
    bytes_val,
    bytes_list,
};

inline constexpr std::uint32_t first_chakra_member = 3;
inline constexpr std::uint32_t last_chakra_member = 32;

constexpr bool is_list(chakra_member m) { return m != chakra_member::none && static_cast<unsigned>(m) % 2 == 0; }

/// The member of one value of a list; a member of one value is its own.
constexpr chakra_member element_of(chakra_member m) { return is_list(m) ? static_cast<chakra_member>(static_cast<unsigned>(m) - 1) : m; }

/// Whether values are texts or bytes, not numbers.
constexpr bool is_text(chakra_member m) { return m >= chakra_member::string_val; }

/// The name in the schema.
constexpr std::string_view name_of(chakra_member m)
{
    constexpr std::string_view names[] = {"double_val",  "double_list",  "float_val",    "float_list",    "int32_val",    "int32_list",
                                          "int64_val",   "int64_list",   "uint32_val",   "uint32_list",   "uint64_val",   "uint64_list",
                                          "sint32_val",  "sint32_list",  "sint64_val",   "sint64_list",   "fixed32_val",  "fixed32_list",
                                          "fixed64_val", "fixed64_list", "sfixed32_val", "sfixed32_list", "sfixed64_val", "sfixed64_list",
                                          "bool_val",    "bool_list",    "string_val",   "string_list",   "bytes_val",    "bytes_list"};
    return m == chakra_member::none ? std::string_view{"none"} : names[static_cast<std::size_t>(m) - first_chakra_member];
}

/// How a value of this member, or of its list, is stored.
constexpr wire_type wire_type_of(chakra_member m)
{
    switch (element_of(m)) {
    case chakra_member::double_val:
    case chakra_member::fixed64_val:
    case chakra_member::sfixed64_val: return wire_type::fixed64;
    case chakra_member::float_val:
    case chakra_member::fixed32_val:
    case chakra_member::sfixed32_val: return wire_type::fixed32;
    case chakra_member::string_val:
    case chakra_member::bytes_val: return wire_type::delimited;
    default: return wire_type::varint;
    }
}

/// A stored number as 64 bits of the value: sign-extended, or the IEEE pattern of a float (32 bits) or double.
constexpr std::uint64_t from_wire(chakra_member m, std::uint64_t stored)
{
    auto const low = static_cast<std::uint32_t>(stored);
    switch (element_of(m)) {
    case chakra_member::int32_val:
    case chakra_member::sfixed32_val: return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(low)});
    case chakra_member::uint32_val: return low;
    case chakra_member::sint32_val: return static_cast<std::uint64_t>(from_zigzag(low));
    case chakra_member::sint64_val: return static_cast<std::uint64_t>(from_zigzag(stored));
    case chakra_member::bool_val: return stored != 0 ? 1 : 0;
    default: return stored;
    }
}

/// The inverse: what is stored for a value.
constexpr std::uint64_t to_wire(chakra_member m, std::uint64_t bits)
{
    auto const element = element_of(m);
    return element == chakra_member::sint32_val || element == chakra_member::sint64_val ? to_zigzag(static_cast<std::int64_t>(bits)) : bits;
}

}  // namespace rheo::inline v0
