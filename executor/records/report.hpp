#pragma once
// SPDX-License-Identifier: Apache-2.0

// Records as JSON and as text for people. Pure functions: what a test can compare.

#include <span>
#include <string>

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

/// "1.2345", or "not finite".
std::string loss_text(double loss);

/// From the loss to the first instruction of the new generation.
seconds total(recovery_record const& record);

/// What was lost, what continues, what was kept, in one line.
std::string recovery_line(recovery_record const& record);

/// `checkpoint of step 80: 12.3 MiB in 45 ms (273 MiB/s)`
std::string checkpoint_line(checkpoint_record const& record);
/// `step 80 is safe on node-local storage: 12.3 MiB in 45 ms (273 MiB/s)`
std::string level_line(level_record const& record);

/// How it ended, the phases of every recovery in milliseconds, what was salvaged, digest, sample.
std::string final_table(final_record const& record, std::span<recovery_record const> recoveries);

}  // namespace rheo::inline v0
