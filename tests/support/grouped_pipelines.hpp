#pragma once
// SPDX-License-Identifier: Apache-2.0

// A small GPT on four shards, and two pipelines of it whose stages are shared by three, one and two ranks.

#include <vector>

#include "rheo/model/gpt.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/pipeline/instance.hpp"

namespace grouped {

using namespace rheo;

inline constexpr int grid = 4;
inline constexpr int ranks = 6;

inline model_description model() { return on_grid(gpt_model({.vocabulary = 96, .context = 16, .width = 64, .heads = 4, .blocks = 2}), grid); }

inline std::vector<pipeline_instance> pipelines()
{
    return {{{layer_id{0}, layer_id{2}, layer_id{4}}, {{rank_id{0}, rank_id{1}, rank_id{2}}, {rank_id{3}}}},
            {{layer_id{0}, layer_id{4}}, {{rank_id{4}, rank_id{5}}}}};
}

}  // namespace grouped
