// SPDX-License-Identifier: Apache-2.0
// A template whose cuts are those of a deeper model.
// expect: rheo: a template's cuts must end with the number of layers of its model
// expect: cuts_of_model_check<5, 4>
#include "rheo/pipeline/template.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

constexpr rheo::gpt_shape tiny{.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 2};
using gpt = rheo::model<rheo::embedding<tiny>, rheo::repeat<2, rheo::transformer_block<tiny>>, rheo::classifier<tiny>>;

#ifdef RHEO_MISTAKE
using two = rheo::pipeline_template<gpt, rheo::cuts<0, 2, 5>, rheo::one_f_one_b>;
#else
using two = rheo::pipeline_template<gpt, rheo::cuts<0, 2, 4>, rheo::one_f_one_b>;
#endif
static_assert(two::size == 2);
