#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of model/: operations, layers, models, fusion, sharding, what they cost, hold and can recompute.

#include "rheo/model/backward_workspace.hpp"
#include "rheo/model/exchange_traffic.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/model/layer_error.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/model_flops.hpp"
#include "rheo/model/op.hpp"
#include "rheo/model/op_shapes.hpp"
#include "rheo/model/parameter_bytes.hpp"
#include "rheo/model/recompute_level.hpp"
#include "rheo/model/shard_layer.hpp"
#include "rheo/model/sharding.hpp"
#include "rheo/model/state.hpp"
#include "rheo/model/tied.hpp"
