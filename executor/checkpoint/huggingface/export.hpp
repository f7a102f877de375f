#pragma once
// SPDX-License-Identifier: Apache-2.0

// A checkpoint's weights as a folder that `transformers` loads: config.json, and model.safetensors or shards with an index.

#include <cstdint>
#include <filesystem>
#include <string>

#include "executor/checkpoint/checkpoint.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct export_form {
    std::string dtype = "F32";      ///< of all weights: F32, F16 or BF16
    bytes shard = mebibytes(4096);  ///< most that a file has of weights; a larger tensor has a file of its own
};

/// Writes the folder, which is made; weights of an earlier export in it are replaced. @param from a verified checkpoint
/// @throws exit_error: of a model that has no Hugging Face class, values that the dtype cannot hold, files that cannot be written
void export_huggingface(checkpoint const& from, std::filesystem::path const& folder, export_form const& form = {});

}  // namespace rheo::inline v0
