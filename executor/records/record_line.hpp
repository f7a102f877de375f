#pragma once
// SPDX-License-Identifier: Apache-2.0

// A record that is read back: an object of metrics.jsonl, report.json or a rank's file. A file of records may have been edited, or have come from another
// program; so whatever is known by its name is checked before its type is relied on. What is missing is missing:
// records grow, and an old run can be read.

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace rheo::inline v0 {

/// @throws json_error when it is not an object, or a member that is known has another type than records have it in: "has a 'step' that is ..."
void expect_record(nlohmann::json const& object);

/// The object of a line; none when it was torn, as the end of a killed rank's is. @throws json_error
std::optional<nlohmann::json> record_of(std::string_view line);

}  // namespace rheo::inline v0
