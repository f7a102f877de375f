// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface.hpp"

namespace rheo::inline v0 {

namespace {

bool is_vector(std::string_view name) { return name.ends_with(".bias") || name.starts_with("ln_") || name.find(".ln_") != std::string_view::npos; }

}  // namespace

std::vector<std::int64_t> huggingface_shape(std::string_view name, tensor_shape shape)
{
    return is_vector(name) && shape.rows == 1 ? std::vector{shape.columns} : std::vector{shape.rows, shape.columns};
}

std::string huggingface_name(std::string_view name) { return name == "lm_head.weight" ? std::string{name} : "transformer." + std::string{name}; }

}  // namespace rheo::inline v0
