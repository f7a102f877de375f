#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of topology/: who and where, the machines, and what a rank holds.

#include "rheo/topology/cluster.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/topology/microbatch_set.hpp"
#include "rheo/topology/microbatch_work.hpp"
#include "rheo/topology/tagged_index.hpp"
