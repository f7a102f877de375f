#pragma once
// SPDX-License-Identifier: Apache-2.0

// Rehearsals on modelled time: a step, a step that loses ranks, messages and collectives on a network.

#include "rheo/simulate/collectives/chunks.hpp"
#include "rheo/simulate/collectives/collective.hpp"
#include "rheo/simulate/collectives/collective_time.hpp"
#include "rheo/simulate/collectives/message_order.hpp"
#include "rheo/simulate/energy.hpp"
#include "rheo/simulate/link.hpp"
#include "rheo/simulate/loss.hpp"
#include "rheo/simulate/network/arrivals.hpp"
#include "rheo/simulate/network/event_queue.hpp"
#include "rheo/simulate/network/fitted.hpp"
#include "rheo/simulate/network/integer_link.hpp"
#include "rheo/simulate/network/message_network.hpp"
#include "rheo/simulate/network/nccl.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/network/route.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "rheo/simulate/step.hpp"
