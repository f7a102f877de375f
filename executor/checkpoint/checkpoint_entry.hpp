#pragma once
// SPDX-License-Identifier: Apache-2.0

// A box of a tensor in the files of a checkpoint: how it is called there, and the digest of its values.

#include <span>
#include <string>
#include <string_view>

#include "executor/checkpoint/checkpoint.hpp"

namespace rheo::inline v0 {

/// Of a parameter that a manifest names. @throws exit_error: it names none of that name
tensor_shape shape_of(checkpoint_manifest const& manifest, std::string_view tensor);

/// "parameter", "first_moment", "second_moment".
std::string_view name_of(tensor_role role);

/// The name that a box has in a file: the tensor's, with the role before it unless it is a parameter, and the box behind it unless
/// it is the whole tensor: "first_moment/wte.weight[0:128,0:64]".
std::string entry_name(checkpoint_entry const& entry, tensor_shape shape);

/// The digest of a box's values as parts of their tensor. @param values row-major within the box
state_digest digest_of_box(checkpoint_entry const& entry, tensor_shape shape, std::span<float const> values);

}  // namespace rheo::inline v0
