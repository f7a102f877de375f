#pragma once
// SPDX-License-Identifier: Apache-2.0

// The back end that a config asks for: what a training and a measurement of its layers compute with.

#include <memory>

#include "executor/config/config.hpp"
#include "executor/device/back_end.hpp"

namespace rheo::inline v0 {

/// The processor, or the device of this rank among those of its host. @pre check(config) found nothing  @throws back_end_error when there is no such device
std::unique_ptr<back_end> open_back_end(run_config const& config);

}  // namespace rheo::inline v0
