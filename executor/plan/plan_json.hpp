#pragma once
// SPDX-License-Identifier: Apache-2.0

// plan.json, the plan on disk: versioned, complete, readable. Both directions walk the plan's one list of fields (rheo/plan/plan.hpp).

#include <string>

#include <nlohmann/json.hpp>

#include "executor/config/files/schedule_file.hpp"
#include "rheo/plan/plan.hpp"

namespace rheo::inline v0 {

inline constexpr int plan_schema = 1;

/// Microbatches with all of their backward are plain numbers, others are [microbatch, deepest layer]. @pre as many lists of work as pipelines
nlohmann::ordered_json to_json(plan const& p);

/// @throws json_error: no plan, or not the one that its digest, if there is one, was made of
plan plan_from_json(nlohmann::json const& whole, schedule_finder const& find);

/// The text of an object for people: a line per member, and per object in a list.
std::string format_members(nlohmann::ordered_json const& object);

}  // namespace rheo::inline v0
