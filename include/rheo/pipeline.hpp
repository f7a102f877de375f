#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of pipeline/: templates, their coverage, instantiation, batch split, recomposition.

#include "rheo/pipeline/cost.hpp"
#include "rheo/pipeline/covers.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/pipeline/recompose.hpp"
#include "rheo/pipeline/split_batch.hpp"
#include "rheo/pipeline/template.hpp"
#include "rheo/pipeline/template_set.hpp"
