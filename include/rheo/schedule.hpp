#pragma once
// SPDX-License-Identifier: Apache-2.0

// Schedules: what a program is, the families that make one, lowering, reductions, and the checks.

#include "rheo/schedule/activations.hpp"
#include "rheo/schedule/any_schedule.hpp"
#include "rheo/schedule/complete.hpp"
#include "rheo/schedule/cost.hpp"
#include "rheo/schedule/deadlock.hpp"
#include "rheo/schedule/draw.hpp"
#include "rheo/schedule/frozen.hpp"
#include "rheo/schedule/gpipe.hpp"
#include "rheo/schedule/grid.hpp"
#include "rheo/schedule/instruction.hpp"
#include "rheo/schedule/interpret.hpp"
#include "rheo/schedule/lowering.hpp"
#include "rheo/schedule/one_f_one_b.hpp"
#include "rheo/schedule/program.hpp"
#include "rheo/schedule/proved.hpp"
#include "rheo/schedule/reductions.hpp"
#include "rheo/schedule/row_builder.hpp"
#include "rheo/schedule/schedule.hpp"
#include "rheo/schedule/stage_work.hpp"
#include "rheo/schedule/text.hpp"
#include "rheo/schedule/timeline.hpp"
#include "rheo/schedule/transport.hpp"
#include "rheo/schedule/verdict.hpp"
