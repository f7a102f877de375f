// SPDX-License-Identifier: Apache-2.0
// Nodes that have lost a device too many for a template.
// expect: rheo: a node needs this many devices more (the check's parameter) to take the place of any node of these templates
// expect: devices_of_node_check<1>
#include "rheo/pipeline/covers_nodes.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

constexpr rheo::gpt_shape tiny{.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 2};
using gpt = rheo::model<rheo::embedding<tiny>, rheo::repeat<2, rheo::transformer_block<tiny>>, rheo::classifier<tiny>>;
using two = rheo::pipeline_template<gpt, rheo::cuts<0, 2, 4>, rheo::one_f_one_b>;
using on_node = rheo::template_on_nodes<two, 4, rheo::position_degree{3, 2}, rheo::position_degree{1, 1}>;
using ready = rheo::template_set<on_node>;

#ifdef RHEO_MISTAKE
constexpr int devices = 2;
#else
constexpr int devices = 3;
#endif
static_assert(rheo::covered_nodes<ready, rheo::node_coverage_request{.from = 2, .to = 8, .failures = 1, .devices = devices}>);
