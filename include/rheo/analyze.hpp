#pragma once
// SPDX-License-Identifier: Apache-2.0

// What traces say: where the time of each device went, gaps and launches, steps, and the ranks for which others wait.

#include "rheo/analyze/analysis.hpp"
#include "rheo/analyze/device_account.hpp"
#include "rheo/analyze/distribution.hpp"
#include "rheo/analyze/gap.hpp"
#include "rheo/analyze/launch_account.hpp"
#include "rheo/analyze/meetings.hpp"
#include "rheo/analyze/rank_trace.hpp"
#include "rheo/analyze/step_times.hpp"
#include "rheo/analyze/stragglers.hpp"
#include "rheo/analyze/stream_account.hpp"
