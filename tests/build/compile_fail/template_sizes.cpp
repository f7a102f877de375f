// SPDX-License-Identifier: Apache-2.0
// A template set with two templates of one size.
// expect: rheo: the templates of a template_set must have distinct sizes, the smallest first
// expect: template_sizes_check<false, 2, 2>
#include "rheo/pipeline/template_set.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

constexpr rheo::gpt_shape tiny{.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 2};
using gpt = rheo::model<rheo::embedding<tiny>, rheo::repeat<2, rheo::transformer_block<tiny>>, rheo::classifier<tiny>>;
using two = rheo::pipeline_template<gpt, rheo::cuts<0, 2, 4>, rheo::one_f_one_b>;
using other_two = rheo::pipeline_template<gpt, rheo::cuts<0, 1, 4>, rheo::one_f_one_b>;
using three = rheo::pipeline_template<gpt, rheo::cuts<0, 1, 3, 4>, rheo::one_f_one_b>;

#ifdef RHEO_MISTAKE
using ready = rheo::template_set<two, other_two>;
#else
using ready = rheo::template_set<other_two, three>;
#endif
static_assert(ready::sizes[0] == 2);
