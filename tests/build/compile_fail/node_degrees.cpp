// SPDX-License-Identifier: Apache-2.0
// Degrees that put a position on two nodes.
// expect: rheo: the degrees of a template's positions must fill whole nodes one after the other, each position on one node, none below its least
#include "rheo/pipeline/covers_nodes.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

constexpr rheo::gpt_shape tiny{.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 2};
using gpt = rheo::model<rheo::embedding<tiny>, rheo::repeat<2, rheo::transformer_block<tiny>>, rheo::classifier<tiny>>;
using three = rheo::pipeline_template<gpt, rheo::cuts<0, 1, 3, 4>, rheo::one_f_one_b>;

#ifdef RHEO_MISTAKE
using on_nodes = rheo::template_on_nodes<three, 3, rheo::position_degree{2}, rheo::position_degree{2}, rheo::position_degree{2}>;
#else
using on_nodes = rheo::template_on_nodes<three, 3, rheo::position_degree{2}, rheo::position_degree{1}, rheo::position_degree{3}>;
#endif
static_assert(on_nodes::size == 2);
