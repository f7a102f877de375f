#pragma once
// SPDX-License-Identifier: Apache-2.0

// A layout of arrays over ranks: which rank has which boxes of which (tensor, role). This is the general form: boxes of up to eight
// dimensions, uneven, in any number (Tenplex, SOSP'24, section 4: slicing, partitioning and allocation end in such a map). Ranks that
// have the same are listed once, with all their numbers: a job of ten thousand ranks has some hundred different sub-collections.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/fixed_text.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

inline constexpr int most_ranks = 1 << 24;  ///< a layout names ranks below this
inline constexpr int tensor_roles = 4;      ///< parameter, first and second moment, accumulator

/// Some of the roles of a tensor.
struct role_set {
    std::uint8_t bits = (1U << tensor_roles) - 1U;

    constexpr role_set() = default;  ///< all
    constexpr role_set(tensor_role role) : bits{static_cast<std::uint8_t>(1U << static_cast<unsigned>(role))} {}
    constexpr explicit role_set(std::uint8_t of) : bits{of} {}

    constexpr bool has(tensor_role role) const { return (bits >> static_cast<unsigned>(role) & 1U) != 0; }
    constexpr bool empty() const { return bits == 0; }
    friend constexpr role_set operator|(role_set a, role_set b) { return role_set{static_cast<std::uint8_t>(a.bits | b.bits)}; }
    friend constexpr role_set operator&(role_set a, role_set b) { return role_set{static_cast<std::uint8_t>(a.bits & b.bits)}; }
    friend constexpr bool operator==(role_set, role_set) = default;
    friend constexpr auto operator<=>(role_set, role_set) = default;
};

inline constexpr role_set all_roles{};

/// A name inside its object, so that layouts are values for every compiler. @pre shorter than 96 letters
struct tensor_name : fixed_text<96> {
    constexpr tensor_name() = default;
    constexpr tensor_name(std::string_view text)
    {
        expects(text.size() < sizeof letters, "the name of a tensor in a layout has fewer than 96 letters");
        *this << text;
    }
    constexpr tensor_name(char const* text) : tensor_name{std::string_view{text}} {}
    tensor_name(std::string const& text) : tensor_name{std::string_view{text}} {}
};

/// How one role of a tensor is kept.
struct element_format {
    bytes size{};                 ///< of one element; 0: the tensor has no such role
    std::optional<dtype> type{};  ///< known where a plan is to convert

    constexpr element_format() = default;
    constexpr element_format(bytes of) : size{of} {}
    constexpr element_format(dtype of) : size{size_of(of)}, type{of} {}
    friend constexpr bool operator==(element_format const&, element_format const&) = default;
};

struct layout_tensor {
    tensor_name name;                                                            ///< unique
    nd_shape shape;                                                              ///< of what is moved
    std::array<element_format, tensor_roles> element{element_format{bytes{4}}};  ///< by role; roles that always travel together may be one
    std::optional<nd_shape> padded{};   ///< boxes may reach up to here; what lies beyond `shape` is no data and is never moved
    role_set addends{std::uint8_t{0}};  ///< roles of which each holder has an addend, the sum being the value; a plan adds them up

    friend constexpr bool operator==(layout_tensor const&, layout_tensor const&) = default;
};

/// The roles that a tensor has.
constexpr role_set roles_of(layout_tensor const& tensor)
{
    std::uint8_t bits = 0;
    for (int r = 0; r < tensor_roles; ++r) {
        bits = static_cast<std::uint8_t>(bits | (tensor.element[static_cast<std::size_t>(r)].size.count > 0 ? 1U << r : 0U));
    }
    return role_set{bits};
}

/// The bytes of one element in all of these roles that the tensor has.
constexpr bytes element_bytes(layout_tensor const& tensor, role_set roles)
{
    bytes sum;
    for (int r = 0; r < tensor_roles; ++r) {
        sum += roles.has(static_cast<tensor_role>(r)) ? tensor.element[static_cast<std::size_t>(r)].size : bytes{};
    }
    return sum;
}

/// A box of a tensor in some of its roles.
struct array_part {
    tensor_id tensor;
    nd_box box;
    role_set roles{};  ///< those of them that the tensor has

    friend constexpr bool operator==(array_part const&, array_part const&) = default;
};

/// These ranks have these parts, each rank all of them.
struct sub_collection {
    std::vector<rank_id> ranks;
    std::vector<array_part> parts;

    friend constexpr bool operator==(sub_collection const&, sub_collection const&) = default;
};

/// `fault` (layout_fault.hpp) says what is wrong with one.
struct array_layout {
    std::vector<layout_tensor> tensors;  ///< named by their place in this list
    std::vector<sub_collection> places;  ///< each rank at most once

    friend constexpr bool operator==(array_layout const&, array_layout const&) = default;
};

/// What a rank has; nullptr: nothing. Cost: O(ranks).
constexpr sub_collection const* find_place(array_layout const& layout, rank_id rank)
{
    for (auto const& place : layout.places) {
        for (auto const has : place.ranks) {
            if (has == rank) {
                return &place;
            }
        }
    }
    return nullptr;
}

/// The part of a box that is data, without padding.
constexpr nd_box data_of(layout_tensor const& tensor, nd_box const& box) { return tensor.padded ? intersection(box, whole(tensor.shape)) : box; }

}  // namespace rheo::inline v0
