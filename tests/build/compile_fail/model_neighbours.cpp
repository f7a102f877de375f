// SPDX-License-Identifier: Apache-2.0
// A model whose second block is narrower than the first.
// expect: rheo: two neighbouring layers of the model do not fit: the second takes another number of columns than the first gives
#include "rheo/model/model.hpp"

constexpr rheo::gpt_shape wide{.width = 64};
#ifdef RHEO_MISTAKE
constexpr rheo::gpt_shape next{.width = 32};
#else
constexpr rheo::gpt_shape next = wide;
#endif

using gpt = rheo::model<rheo::embedding<wide>, rheo::transformer_block<wide>, rheo::transformer_block<next>, rheo::classifier<wide>>;
static_assert(rheo::describe<gpt>().layers.size() == 4);
