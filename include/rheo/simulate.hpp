#pragma once
// SPDX-License-Identifier: Apache-2.0

// Rehearsals on modelled time: a step, a step that loses ranks.

#include "rheo/simulate/energy.hpp"
#include "rheo/simulate/link.hpp"
#include "rheo/simulate/loss.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "rheo/simulate/step.hpp"
