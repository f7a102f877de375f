#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of partition/: layers to stages.

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/estimate_split.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/partition/layer_profile_csv.hpp"
#include "rheo/partition/optimal.hpp"
#include "rheo/partition/optimal_estimate.hpp"
#include "rheo/partition/optimal_makespan.hpp"
#include "rheo/partition/pipeline_estimate.hpp"
#include "rheo/partition/split_makespan.hpp"
#include "rheo/partition/split_memory.hpp"
#include "rheo/partition/stage_memory.hpp"
#include "rheo/partition/stage_prices.hpp"
