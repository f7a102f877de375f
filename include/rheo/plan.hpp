#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of plan/: the plan, its programs, its memory, its file.

#include "rheo/plan/cells.hpp"
#include "rheo/plan/evaluation_plan.hpp"
#include "rheo/plan/holdings_under.hpp"
#include "rheo/plan/keepers.hpp"
#include "rheo/plan/layer_memory.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/memory_plan.hpp"
#include "rheo/plan/optimizer_shards.hpp"
#include "rheo/plan/pipeline_schedule.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/plan/tensor_holders.hpp"
