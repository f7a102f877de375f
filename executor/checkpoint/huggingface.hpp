#pragma once
// SPDX-License-Identifier: Apache-2.0

// Hugging Face's form of a GPT-2: `config.json` and `model.safetensors` with the names and shapes of its
// GPT2LMHeadModel. Ours are the same (Conv1D weights are in x out, c_attn is merged), so exchanging them copies
// bits and transposes nothing. `lm_head.weight` is there only when it is not tied. Bytes are tokens: vocabulary 256, no
// begin and no end. Parameters of other layers keep our names.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/tensor/collection.hpp"

namespace rheo::inline v0 {

/// The shape that a parameter has in files: vectors (norms, biases) have one dimension, matrices two.
std::vector<std::int64_t> huggingface_shape(std::string_view name, tensor_shape shape);

/// GPT2LMHeadModel's name of a parameter: "transformer.h.0.ln_1.weight"; "lm_head.weight" stays.
std::string huggingface_name(std::string_view name);

std::string format_huggingface_config(gpt_shape const& shape);

/// The GPT that a config.json describes. @param name what the sentence calls the file
/// @throws exit_error: no GPT-2, a kind of it that is computed otherwise, numbers out of their limits
gpt_shape parse_huggingface_config(std::string_view text, std::string const& name);

/// Writes `model.safetensors` and `config.json` into the folder, which is made. @param from a verified checkpoint of a GPT
/// @throws exit_error
void export_huggingface(checkpoint const& from, std::filesystem::path const& folder);

/// Reads the folder and writes `<run>/step-0`, from which training starts: moments are zero, any fingerprint may continue.
/// @returns the checkpoint's folder  @throws exit_error: also when the run folder has a checkpoint already
std::filesystem::path import_huggingface(std::filesystem::path const& folder, std::filesystem::path const& run_folder);

}  // namespace rheo::inline v0
