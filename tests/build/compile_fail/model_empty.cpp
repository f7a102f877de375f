// SPDX-License-Identifier: Apache-2.0
// A model without layers.
// expect: rheo: a model needs at least one layer
#include "rheo/model/model.hpp"

constexpr rheo::gpt_shape s{};
#ifdef RHEO_MISTAKE
using gpt = rheo::model<>;
#else
using gpt = rheo::model<rheo::embedding<s>, rheo::classifier<s>>;
#endif

static_assert(!rheo::describe<gpt>().layers.empty());
