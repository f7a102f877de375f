#pragma once
// SPDX-License-Identifier: Apache-2.0

// What traces say: of devices, as profilers record them, and of steps, as rheo records them.

#include "rheo/analyze/device/analysis.hpp"
#include "rheo/analyze/device/device_account.hpp"
#include "rheo/analyze/device/gap.hpp"
#include "rheo/analyze/device/launch_account.hpp"
#include "rheo/analyze/device/meetings.hpp"
#include "rheo/analyze/device/pageable_copies.hpp"
#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/analyze/device/step_times.hpp"
#include "rheo/analyze/device/stragglers.hpp"
#include "rheo/analyze/device/stream_account.hpp"
#include "rheo/analyze/distribution.hpp"
#include "rheo/analyze/step/bubble.hpp"
#include "rheo/analyze/step/build_graph.hpp"
#include "rheo/analyze/step/message_sizes.hpp"
#include "rheo/analyze/step/recorded_step.hpp"
#include "rheo/analyze/step/run_analysis.hpp"
#include "rheo/analyze/step/slow_ranks.hpp"
#include "rheo/analyze/step/step_account.hpp"
#include "rheo/analyze/step/step_class.hpp"
#include "rheo/analyze/step/step_graph.hpp"
#include "rheo/analyze/step/step_replay.hpp"
