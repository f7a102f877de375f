#pragma once
// SPDX-License-Identifier: Apache-2.0

// The config that a checkpoint carries: that of the run which wrote it.

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/config/config.hpp"

namespace rheo::inline v0 {

/// A schedule that is a file need not be there. @throws exit_error naming the manifest
run_config config_of(checkpoint const& from);

}  // namespace rheo::inline v0
