#pragma once
// SPDX-License-Identifier: Apache-2.0

// Names and shapes of parameters in checkpoints, which are those of Hugging Face's GPT2LMHeadModel: ours are the same (Conv1D weights are in x out, c_attn
// is merged). Parameters of other layers keep our names; what `rheo export` makes of them is in huggingface/tensors.hpp.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/tensor/shape.hpp"

namespace rheo::inline v0 {

/// The shape that a parameter has in files: vectors (norms, biases) have one dimension, matrices two.
std::vector<std::int64_t> huggingface_shape(std::string_view name, tensor_shape shape);

/// GPT2LMHeadModel's name of a parameter: "transformer.h.0.ln_1.weight"; "lm_head.weight" stays.
std::string huggingface_name(std::string_view name);

}  // namespace rheo::inline v0
