#pragma once
// SPDX-License-Identifier: Apache-2.0

// A layout of arrays as JSON: the tensors with shapes and dtypes by role, then who has which boxes. Every member is asked for by name
// and kind, unknown ones are refused, and a refusal says at which place of the file: "before.json: /places/2/parts/0 has no 'box'".

#include <string>
#include <string_view>

#include "rheo/reshard/array_layout.hpp"

namespace rheo::inline v0 {

/// Reads and checks one: boxes inside their tensors, disjoint at each rank, every element at some rank.
/// @param name what refusals call the text. @throws exit_error one sentence
array_layout parse_layout(std::string_view text, std::string const& name);

/// The same from a file. @throws exit_error also when it cannot be read
array_layout read_layout_file(std::string const& path);

/// The text of a layout; reading it gives the same layout.
std::string format_layout(array_layout const& layout);

/// How the file form names a role: parameter, first_moment, second_moment, accumulator.
std::string_view role_name(tensor_role role);

}  // namespace rheo::inline v0
