#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of topology/: who and where, and what a rank holds.

#include "rheo/topology/holdings.hpp"
#include "rheo/topology/index.hpp"
#include "rheo/topology/microbatch_set.hpp"
#include "rheo/topology/microbatch_work.hpp"
