// SPDX-License-Identifier: Apache-2.0
// A template set that leaves 5 ranks without two pipelines.
// expect: rheo: this number of ranks (the check's first parameter) cannot be covered by at least this number of pipelines (its second) of these templates
// expect: ranks_covered_check<5, 2>
#include "rheo/pipeline/covers.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

constexpr rheo::gpt_shape tiny{.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 2};
using gpt = rheo::model<rheo::embedding<tiny>, rheo::repeat<2, rheo::transformer_block<tiny>>, rheo::classifier<tiny>>;
using two = rheo::pipeline_template<gpt, rheo::cuts<0, 2, 4>, rheo::one_f_one_b>;
using three = rheo::pipeline_template<gpt, rheo::cuts<0, 1, 3, 4>, rheo::one_f_one_b>;

#ifdef RHEO_MISTAKE
using ready = rheo::template_set<two>;
#else
using ready = rheo::template_set<two, three>;
#endif
static_assert(rheo::covered<ready, rheo::coverage_request{.from = 4, .to = 16, .failures = 1}>);
