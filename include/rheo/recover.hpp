#pragma once
// SPDX-License-Identifier: Apache-2.0

// All of recover/: the protocol of steps, commits and losses, and the plan of a recovery.

#include "rheo/recover/action.hpp"
#include "rheo/recover/event.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/recover/outcome.hpp"
#include "rheo/recover/protocol.hpp"
#include "rheo/recover/replan.hpp"
#include "rheo/recover/rules.hpp"
#include "rheo/recover/salvage.hpp"
#include "rheo/recover/salvage_plan.hpp"
#include "rheo/recover/stamp.hpp"
#include "rheo/recover/state.hpp"
