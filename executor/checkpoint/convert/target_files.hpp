#pragma once
// SPDX-License-Identifier: Apache-2.0

// The files of a conversion: which boxes each has, in their order, and what its header says.

#include <map>
#include <string>
#include <vector>

#include "executor/checkpoint/convert/convert.hpp"
#include "executor/checkpoint/convert/stored_state.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "rheo/reshard/array_layout.hpp"

namespace rheo::inline v0 {

struct target_entry {
    tensor_id tensor;
    tensor_role role = tensor_role::parameter;
    nd_box box;

    friend bool operator==(target_entry const&, target_entry const&) = default;
};

struct target_file {
    std::string name;
    rank_id rank;  ///< whose parts it has, as the layout numbers ranks
    std::vector<target_entry> entries;

    friend bool operator==(target_file const&, target_file const&) = default;
};

/// @param dealt each element at one rank: see deal_parts
std::vector<target_file> target_files(array_layout const& dealt, stored_form form);

/// The header of a file, whose entries get their places. @param entries filled, as in the file
std::string header_of(target_file const& file, stored_state const& state, stored_form form, std::vector<safetensors_entry>& entries);

}  // namespace rheo::inline v0
