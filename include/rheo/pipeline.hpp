#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of pipeline/: templates, their coverage, instantiation, batch split, what is done after a loss or a gain.

#include "rheo/pipeline/arranged_by_nodes.hpp"
#include "rheo/pipeline/cost.hpp"
#include "rheo/pipeline/covers.hpp"
#include "rheo/pipeline/covers_nodes.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/local_rules.hpp"
#include "rheo/pipeline/makespan_templates.hpp"
#include "rheo/pipeline/membership.hpp"
#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/pipeline/recompose.hpp"
#include "rheo/pipeline/recompose_nodes.hpp"
#include "rheo/pipeline/recomposition.hpp"
#include "rheo/pipeline/repair.hpp"
#include "rheo/pipeline/repair_groups.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/pipeline/split_batch.hpp"
#include "rheo/pipeline/survivability.hpp"
#include "rheo/pipeline/template.hpp"
#include "rheo/pipeline/template_set.hpp"
