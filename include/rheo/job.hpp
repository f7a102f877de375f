#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whole jobs simulated on a described cluster: steps of real plans, losses with the real recovery, energy, and where each nanosecond went.

#include "rheo/job/cluster_request.hpp"
#include "rheo/job/cluster_steps.hpp"
#include "rheo/job/job_account.hpp"
#include "rheo/job/job_clocks.hpp"
#include "rheo/job/job_event.hpp"
#include "rheo/job/job_event_source.hpp"
#include "rheo/job/job_events_csv.hpp"
#include "rheo/job/job_trace.hpp"
#include "rheo/job/rank_slowness.hpp"
#include "rheo/job/simulate_job.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/job/sweep_step.hpp"
#include "rheo/job/swept_step.hpp"
