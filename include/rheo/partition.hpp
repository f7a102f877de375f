#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of partition/: layers to stages.

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/optimal.hpp"
#include "rheo/partition/stage_memory.hpp"
