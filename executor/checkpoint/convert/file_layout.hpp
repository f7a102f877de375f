#pragma once
// SPDX-License-Identifier: Apache-2.0

// How a layout cuts state into files. A layout says which ranks hold what, and several may hold the same; files have each element once. So
// what several ranks hold is dealt to them as training deals the writing of a checkpoint: the largest first, each to the holder with the fewest bytes.

#include <string>
#include <vector>

#include "executor/checkpoint/convert/stored_state.hpp"
#include "rheo/reshard/array_layout.hpp"

namespace rheo::inline v0 {

/// A layout with the tensors of the state in their order; a vector's boxes become those of a matrix with one row. Each role of each tensor has to have
/// a place. @param name what sentences call the layout  @throws exit_error usage: a tensor too many or too few, another shape, elements at no rank
array_layout fit_layout(array_layout const& layout, stored_state const& state, std::string const& name);

/// Each element at one of the ranks that have it; padding at none. Ranks ascend, each a place of its own; those without a part are left out.
/// @pre the layout is without fault
array_layout deal_parts(array_layout const& layout);

}  // namespace rheo::inline v0
