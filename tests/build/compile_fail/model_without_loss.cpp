// SPDX-License-Identifier: Apache-2.0
// A model that ends in a block: nothing says what it is to learn.
// expect: rheo: the last layer of a model must end in the loss (a classifier)
#include "rheo/model/model.hpp"

constexpr rheo::gpt_shape s{};
#ifdef RHEO_MISTAKE
using gpt = rheo::model<rheo::embedding<s>, rheo::repeat<2, rheo::transformer_block<s>>>;
#else
using gpt = rheo::model<rheo::embedding<s>, rheo::repeat<2, rheo::transformer_block<s>>, rheo::classifier<s>>;
#endif

static_assert(!rheo::describe<gpt>().layers.empty());
