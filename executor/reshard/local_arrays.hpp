#pragma once
// SPDX-License-Identifier: Apache-2.0

// The arrays of this rank by tensor, role and place: which of them hold the elements of a box, and where in memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/reshard/strided_copy.hpp"
#include "rheo/reshard/array_layout.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0::detail {

/// An array of the caller, its strides in bytes.
struct local_array {
    nd_box box;
    std::byte* data;
    std::array<std::ptrdiff_t, copied_dimensions> stride{};
    std::size_t element_bytes;
    std::size_t number;  ///< in the caller's list
};

/// The elements of a box that one array holds.
struct array_piece {
    local_array const* array;
    nd_box box;

    std::byte* data() const;  ///< of its first element
};

class local_arrays {
public:
    /// @pre the box has as many dimensions as the tensor
    void add(tensor_id tensor, tensor_role role, local_array const& array);

    /// To be called when all are added. @return the numbers of two arrays that have an element in common, if there are any
    std::vector<std::pair<std::size_t, std::size_t>> sort();

    /// The pieces of a box that are here, one per array, in the order of their first elements; they may leave elements out.
    std::vector<array_piece> find(tensor_id tensor, tensor_role role, nd_box const& box) const;

    /// A part of the box that no array has; an empty box when all of it is there.
    nd_box missing(tensor_id tensor, tensor_role role, nd_box const& box) const;

private:
    struct same_role {
        std::vector<local_array> arrays;        ///< ascending by box
        std::array<std::int64_t, 2> longest{};  ///< in the first two dimensions

        /// Calls use(array) for those that have an element of the box.
        template <class Use>
        void for_each_meeting(nd_box const& box, Use const& use) const;
    };
    std::map<std::pair<tensor_id, tensor_role>, same_role> roles_;
};

}  // namespace rheo::inline v0::detail
