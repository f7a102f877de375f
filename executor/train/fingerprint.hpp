#pragma once
// SPDX-License-Identifier: Apache-2.0

// The numerics fingerprint: everything that decides the bits of the result, in lines that people can
// compare. Runs with the same fingerprint end with the same bits, whatever the plan, the number of
// threads and the losses (law 1); ranks whose fingerprints differ refuse to start together.

#include <string>
#include <vector>

#include "executor/checkpoint/fingerprint_line.hpp"
#include "executor/config/config.hpp"
#include "executor/data/data.hpp"
#include "executor/device/backend.hpp"
#include "rheo/model/model.hpp"

namespace rheo::inline v0 {

/// Its line of operations: a digest of their lists (kinds, slots, widths, parameters), where an operation in place counts as if it were not.
std::string operations_of(model_description const& model);

/// May let the backend choose algorithms. @throws std::runtime_error when it has none for a product
std::vector<fingerprint_line> fingerprint_of(model_description const& model, run_config const& config, dataset const& data, compute_backend& backend);

}  // namespace rheo::inline v0
