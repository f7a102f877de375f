#pragma once
// SPDX-License-Identifier: Apache-2.0

// What `rheo generate` asks of a launcher: `rheo` continues as `rheo-ranks` under one, which starts MPI.

#include "executor/inference/model_part.hpp"

namespace rheo::cli {

/// The part of this rank; without a launcher the whole model. @throws exit_error when MPI cannot be started
model_part generation_part();

/// Ends MPI, where it was started: all ranks have come so far.
void leave_generation(model_part const& part);

}  // namespace rheo::cli
