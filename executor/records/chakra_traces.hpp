#pragma once
// SPDX-License-Identifier: Apache-2.0

// The execution traces of a job as files: PREFIX.0.et, PREFIX.1.et, ... and, where ranks meet in groups, PREFIX.groups.json.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/trace/chakra/trace_set.hpp"

namespace rheo::inline v0 {

/// {"1": [0, 2], "2": [1, 3]}: names are whole numbers above 0, members ranks. @returns ascending by name  @throws json_error
std::vector<chakra_group> parse_chakra_groups(std::string_view text, std::int32_t ranks);

/// All files of a job, each under the contract of consumers. @throws exit_error (bad data) with the file and what is wrong
chakra_trace_set read_chakra_traces(std::string const& prefix);

}  // namespace rheo::inline v0
