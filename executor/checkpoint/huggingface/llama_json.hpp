#pragma once
// SPDX-License-Identifier: Apache-2.0

// config.json of the families that have a Llama's layers: Llama 2 and 3, Qwen2 and 3, and Mistral where its window is no
// shorter than its context.

#include <nlohmann/json.hpp>

#include "executor/checkpoint/huggingface/model_json.hpp"

namespace rheo::inline v0 {

/// @throws json_error
huggingface_model read_llama(nlohmann::json const& config, model_family family);

/// All members but those that every family has.
nlohmann::ordered_json llama_members(huggingface_model const& model);

}  // namespace rheo::inline v0
