// SPDX-License-Identifier: Apache-2.0
// A model that forgets its embedding.
// expect: rheo: the first layer of a model must read tokens (an embedding)
#include "rheo/model/model.hpp"

constexpr rheo::gpt_shape s{};
#ifdef RHEO_MISTAKE
using gpt = rheo::model<rheo::transformer_block<s>, rheo::classifier<s>>;
#else
using gpt = rheo::model<rheo::embedding<s>, rheo::transformer_block<s>, rheo::classifier<s>>;
#endif

static_assert(!rheo::describe<gpt>().layers.empty());
