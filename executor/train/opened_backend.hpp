#pragma once
// SPDX-License-Identifier: Apache-2.0

// The backend that a config asks for: what a training and a measurement of its layers compute with.

#include <memory>

#include "executor/config/config.hpp"
#include "executor/device/backend.hpp"

namespace rheo::inline v0 {

/// The processor, or the device of this rank among those of its host. @pre check(config) found nothing  @throws exit_error when there is no such device
std::unique_ptr<compute_backend> open_backend(run_config const& config);

}  // namespace rheo::inline v0
