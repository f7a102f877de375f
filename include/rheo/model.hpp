#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of model/: operations, layers, models, fusion, what they cost and hold.

#include "rheo/model/footprint.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/op.hpp"
#include "rheo/model/parameter_bytes.hpp"
#include "rheo/model/state.hpp"
