#pragma once
// SPDX-License-Identifier: Apache-2.0

// Groups of ranks as traces name them: in the file of groups beside them, or as PyTorch lists its process groups in a node.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rheo/trace/chakra/trace_set.hpp"

namespace rheo::inline v0 {

/// {"1": [0, 2], "2": [1, 3]}: names are whole numbers above 0, members ranks. @returns ascending by name  @throws json_error
std::vector<chakra_group> parse_chakra_groups(std::string_view text, std::int32_t ranks);

/// The process groups that PyTorch lists, by name: of `values` the JSON in it, [{"pg_name": "1", "ranks": [0, 2]}]. A group without ranks is that of
/// all. @throws json_error
std::vector<std::pair<std::string, std::vector<std::int32_t>>> parse_process_groups(std::string_view values, std::int32_t ranks);

}  // namespace rheo::inline v0
