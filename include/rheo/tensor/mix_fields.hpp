#pragma once
// SPDX-License-Identifier: Apache-2.0

// Digests of plans from the parts of their values: numbers, ids, quantities, lists with their lengths, and types that list their fields
// (`for_each_field`). A field that is in the list is in the digest, with its name where it can be left out and is not.

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "rheo/tensor/digest.hpp"

namespace rheo::inline v0 {

/// Equal values mix the same.
template <class T>
constexpr void mix_fields(sequence_digest& sum, T const& value)
{
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
        sum.mix(static_cast<std::int64_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
        sum.mix(std::bit_cast<std::int64_t>(static_cast<double>(value) + 0.0));  // -0.0 == 0.0
    } else if constexpr (requires { value.value; }) {
        mix_fields(sum, value.value);
    } else if constexpr (requires { value.count; }) {
        mix_fields(sum, value.count);
    } else if constexpr (requires { value.begin(); }) {
        sum.mix(static_cast<std::int64_t>(value.size()));
        for (auto const& element : value) {
            mix_fields(sum, element);
        }
    } else {
        for_each_field(value, [&](std::string_view name, auto const& member, auto const&... absent) {
            if (sizeof...(absent) == 0) {
                mix_fields(sum, member);
            } else if (!(... && (member == absent))) {
                sum.mix(static_cast<std::int64_t>(hash_text(name)));
                mix_fields(sum, member);
            }
        });
    }
}

}  // namespace rheo::inline v0
