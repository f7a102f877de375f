#pragma once
// SPDX-License-Identifier: Apache-2.0

// Hugging Face's config.json of the families that are computed here: the model it describes, and the other way round. A model that would be computed
// otherwise is refused: it would train, and be another one.

#include <string>
#include <string_view>

#include "executor/config/config.hpp"

namespace rheo::inline v0 {

/// What a config's [model] says.
struct huggingface_model {
    model_family family = model_family::gpt2;
    gpt_shape shape{};
    llama_config llama{};

    friend bool operator==(huggingface_model const&, huggingface_model const&) = default;
};

/// A config of a run of the model, with microbatches that fit its context.
run_config config_of(huggingface_model const& model);

/// @param dtype of the weights beside it: F32, F16 or BF16
std::string format_huggingface_config(huggingface_model const& model, std::string_view dtype = "F32");

/// The model that a config.json describes. @param name what the sentence calls the file
/// @throws exit_error: another family, a kind that is computed otherwise, numbers out of their limits
huggingface_model parse_huggingface_config(std::string_view text, std::string const& name);

}  // namespace rheo::inline v0
