#pragma once
// SPDX-License-Identifier: Apache-2.0

// Templates of a small model as types: of two stages and of four.

#include "rheo/pipeline/template.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

namespace test {

using namespace rheo;

inline constexpr gpt_shape tiny{.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 2};
using gpt = model<embedding<tiny>, repeat<2, transformer_block<tiny>>, classifier<tiny>>;
using two = pipeline_template<gpt, cuts<0, 2, 4>, one_f_one_b>;
using four = pipeline_template<gpt, cuts<0, 1, 2, 3, 4>, one_f_one_b>;

}  // namespace test
