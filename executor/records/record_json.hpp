#pragma once
// SPDX-License-Identifier: Apache-2.0

// Records as JSON, and read back. Pure functions: what a test can compare.

#include <span>

#include <nlohmann/json.hpp>

#include "executor/records/records.hpp"

namespace rheo::inline v0 {

/// One object with its "kind"; units are in the key names.
nlohmann::ordered_json to_json(start_record const& record);
nlohmann::ordered_json to_json(step_record const& record);
nlohmann::ordered_json to_json(evaluation_record const& record);
nlohmann::ordered_json to_json(recovery_record const& record);
nlohmann::ordered_json to_json(checkpoint_record const& record);
nlohmann::ordered_json to_json(level_record const& record);
nlohmann::ordered_json to_json(final_record const& record, std::span<recovery_record const> recoveries);

/// The same read back, with what is known: numbers that are null were not finite, members that are missing were not known. @throws json_error
ended_run ended_run_of(nlohmann::json const& report);

recovery_record recovery_of(nlohmann::json const& recovery);
checkpoint_record checkpoint_of(nlohmann::json const& checkpoint);
level_record level_of(nlohmann::json const& safe);
/// Of a step, or of an attempt that was redone. Its number of all steps is not among its members.
step_record step_of(nlohmann::json const& step);

}  // namespace rheo::inline v0
