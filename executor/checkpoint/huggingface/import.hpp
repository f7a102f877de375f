#pragma once
// SPDX-License-Identifier: Apache-2.0

// A Hugging Face folder as the checkpoint with which a run begins.

#include <filesystem>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct imported_run {
    std::filesystem::path checkpoint;  ///< `<run>/step-0`
    std::filesystem::path config;      ///< `<run>/config.toml`
};

/// Reads config.json and the weights and writes `<run>/step-0`, from which training starts: moments are zero, any fingerprint may continue. Beside it a
/// config that trains on. Cost: reads the weights once; `part` of parameters and as much again for each moment are in memory at once.
/// @param part bytes of parameters that go into one file of the checkpoint
/// @throws exit_error: also when the run folder has a checkpoint or a config already. Then nothing is written
imported_run import_huggingface(std::filesystem::path const& folder, std::filesystem::path const& run_folder, bytes part = mebibytes(512));

}  // namespace rheo::inline v0
