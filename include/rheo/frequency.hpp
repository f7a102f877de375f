#pragma once
// SPDX-License-Identifier: Apache-2.0

// Energy: profiles, the time-energy frontier of a program with its proof, clock plans.

#include "rheo/frequency/bucket_clocks.hpp"
#include "rheo/frequency/carried_clocks.hpp"
#include "rheo/frequency/certificate.hpp"
#include "rheo/frequency/clock_plan.hpp"
#include "rheo/frequency/continued_plan.hpp"
#include "rheo/frequency/cost_curve.hpp"
#include "rheo/frequency/event_network.hpp"
#include "rheo/frequency/exponential_fit.hpp"
#include "rheo/frequency/flow_from_plan.hpp"
#include "rheo/frequency/frontier.hpp"
#include "rheo/frequency/make_project.hpp"
#include "rheo/frequency/profile.hpp"
#include "rheo/frequency/profile_csv.hpp"
#include "rheo/frequency/project.hpp"
#include "rheo/frequency/realise.hpp"
#include "rheo/frequency/split_backward.hpp"
#include "rheo/frequency/stage_profile.hpp"
#include "rheo/frequency/steady_state.hpp"
#include "rheo/frequency/straggler.hpp"
#include "rheo/frequency/svg.hpp"
#include "rheo/frequency/switching.hpp"
#include "rheo/frequency/trade_off.hpp"
#include "rheo/frequency/two_clocks.hpp"
