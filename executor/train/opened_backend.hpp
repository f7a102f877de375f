#pragma once
// SPDX-License-Identifier: Apache-2.0

// The backend that a config asks for: what a training and a measurement of its layers compute with.

#include <memory>
#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "executor/device/backend.hpp"
#include "rheo/model/model.hpp"

namespace rheo::inline v0 {

/// The processor, or the device of this rank among those of its host. @param model what it will compute
/// @pre check(config) found nothing  @throws exit_error when there is no such device
std::unique_ptr<compute_backend> open_backend(run_config const& config, model_description const& model);

/// What a user should know of how it will compute the model.
std::vector<std::string> notes_of(compute_backend const& backend, run_config const& config, model_description const& model);

}  // namespace rheo::inline v0
