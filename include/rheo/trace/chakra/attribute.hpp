#pragma once
// SPDX-License-Identifier: Apache-2.0

// An attribute of a Chakra node or of a file: a name and a value in one of 30 members. It owns nothing: texts and lists are views of what
// its maker or the reader holds.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "rheo/trace/chakra/member.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct chakra_attribute {
    std::string_view name{};
    std::string_view doc_string{};
    chakra_member member = chakra_member::none;
    std::uint64_t bits = 0;                      ///< of one number: sign-extended, or the IEEE pattern
    std::string_view text{};                     ///< of one string or bytes
    array_view<std::uint64_t const> numbers{};   ///< of a list, as `bits`
    array_view<std::string_view const> texts{};  ///< of a list of strings or bytes

    friend constexpr bool operator==(chakra_attribute const& a, chakra_attribute const& b)
    {
        auto const same = [](auto const& x, auto const& y) {
            for (std::size_t i = 0; i < x.size() && x.size() == y.size(); ++i) {
                if (x[i] != y[i]) {
                    return false;
                }
            }
            return x.size() == y.size();
        };
        return a.name == b.name && a.doc_string == b.doc_string && a.member == b.member && a.bits == b.bits && a.text == b.text && same(a.numbers, b.numbers) &&
               same(a.texts, b.texts);
    }
};

/// The 64 bits of a number in an attribute.
template <class Number>
    requires std::is_arithmetic_v<Number>
constexpr std::uint64_t to_attribute_bits(Number value)
{
    if constexpr (std::is_same_v<Number, double>) {
        return std::bit_cast<std::uint64_t>(value);
    } else if constexpr (std::is_same_v<Number, float>) {
        return std::bit_cast<std::uint32_t>(value);
    } else {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    }
}

/// An attribute of one number, in the member that its type has in the schema: bool, int32, int64, uint32, uint64, float or double.
template <class Number>
    requires std::is_arithmetic_v<Number>
constexpr chakra_attribute make_attribute(std::string_view name, Number value)
{
    constexpr auto member = std::is_same_v<Number, bool>            ? chakra_member::bool_val
                            : std::is_same_v<Number, std::int32_t>  ? chakra_member::int32_val
                            : std::is_same_v<Number, std::int64_t>  ? chakra_member::int64_val
                            : std::is_same_v<Number, std::uint32_t> ? chakra_member::uint32_val
                            : std::is_same_v<Number, std::uint64_t> ? chakra_member::uint64_val
                            : std::is_same_v<Number, float>         ? chakra_member::float_val
                            : std::is_same_v<Number, double>        ? chakra_member::double_val
                                                                    : chakra_member::none;
    static_assert(member != chakra_member::none, "the schema has no member of this type; name one: chakra_attribute{.member = ...}");
    return {.name = name, .member = member, .bits = to_attribute_bits(value)};
}

constexpr chakra_attribute make_attribute(std::string_view name, std::string_view text)
{
    return {.name = name, .member = chakra_member::string_val, .text = text};
}

/// The attribute of that name, the first if there are several; none: null.
constexpr chakra_attribute const* find_attribute(array_view<chakra_attribute const> attributes, std::string_view name)
{
    for (auto const& a : attributes) {
        if (a.name == name) {
            return &a;
        }
    }
    return nullptr;
}

/// The value as an integer, whichever member of one integer holds it: tools differ. None where it is something else, or too large.
constexpr std::optional<std::int64_t> integer_of(chakra_attribute const& a)
{
    if (a.member == chakra_member::none || is_list(a.member) || is_text(a.member) || a.member == chakra_member::double_val ||
        a.member == chakra_member::float_val) {
        return std::nullopt;
    }
    auto const value = static_cast<std::int64_t>(a.bits);
    bool const is_unsigned = a.member == chakra_member::uint64_val || a.member == chakra_member::fixed64_val;
    return is_unsigned && value < 0 ? std::nullopt : std::optional{value};
}

}  // namespace rheo::inline v0
