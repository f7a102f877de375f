#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether the files of a checkpoint hold its state: a manifest is refused before any of its files is read.

#include "executor/checkpoint/checkpoint.hpp"

namespace rheo::inline v0 {

/// Those of a parameter that a checkpoint keeps.
inline constexpr tensor_role kept_roles[] = {tensor_role::parameter, tensor_role::first_moment, tensor_role::second_moment};

/// Each box of each parameter's roles is there exactly once, and nothing else. @throws json_error
void check_coverage(checkpoint_manifest const& manifest);

}  // namespace rheo::inline v0
