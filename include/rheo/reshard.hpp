#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of reshard/: layouts of arrays, plans between them and their proofs, the layouts of a job's state; assignment.

#include "rheo/reshard/array_layout.hpp"
#include "rheo/reshard/assignment.hpp"
#include "rheo/reshard/assignment_costs.hpp"
#include "rheo/reshard/layout_check.hpp"
#include "rheo/reshard/layout_fault.hpp"
#include "rheo/reshard/mesh.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/reshard/slicing.hpp"
#include "rheo/reshard/state_layout.hpp"
#include "rheo/reshard/sub_collections.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/reshard/verify_reshard.hpp"
