#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of reshard/: layouts, assignment, copies and their rounds.

#include "rheo/reshard/assignment.hpp"
#include "rheo/reshard/copy.hpp"
#include "rheo/reshard/copy_plan.hpp"
#include "rheo/reshard/layout.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
