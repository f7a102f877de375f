#pragma once
// SPDX-License-Identifier: Apache-2.0

// Writes stored state in another layout and form, without having it in memory: plan from files to files, copy piece by piece, read what was written
// from disk, and only then give the folder its name.
//   checkpoint    model-<rank>.safetensors and state-<rank>.safetensors for each rank that writes, and the manifest: `rheo train` resumes from it
//   distributed   PyTorch's distributed checkpoint as safetensors; a rank's second box of a tensor is in a second file, since a file has each key once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "executor/checkpoint/convert/stored_state.hpp"
#include "rheo/reshard/array_layout.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class stored_form : std::uint8_t { checkpoint, distributed };

struct conversion {
    stored_state from;
    array_layout layout;  ///< of the tensors of `from`: see fit_layout
    stored_form form = stored_form::checkpoint;
    bytes memory{64 << 20};              ///< most bytes of values that are held at once
    std::filesystem::path out;           ///< the folder that is made
    std::optional<state_digest> said{};  ///< of the state, scales included, where files keep it apart from their pieces
};

struct converted {
    std::size_t files = 0;
    std::size_t boxes = 0;
    bytes size{0};
    state_digest digest;     ///< of the state, scales included
    bool is_as_said = true;  ///< `said` is its digest; otherwise the fingerprint was left out: any run may begin with this state
};

/// @throws exit_error usage: `out` is there, or its name is another step's; memory below the longest row; boxes beyond what a manifest has.
/// Bad data: files that do not have the values that they say. Environment: what cannot be written. Nothing is left behind then.
converted convert(conversion const& request);

}  // namespace rheo::inline v0
