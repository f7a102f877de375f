#pragma once
// SPDX-License-Identifier: Apache-2.0

// The text forms behind executor/checkpoint/checkpoint.hpp: what a part says about its files before it is published, and what a checkpoint says of
// its state. Only the writer and the reader of checkpoints know them.

#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"

namespace rheo::inline v0 {

/// What one rank has put on disk: `part-<rank>.json`, gone when the checkpoint is published.
struct part_manifest {
    rank_id rank;
    step_id step;
    generation_id generation;
    std::vector<checkpoint_file> files;

    friend bool operator==(part_manifest const&, part_manifest const&) = default;
};

/// @throws exit_error
part_manifest parse_part(std::string_view text, std::string const& name);
std::string format_part(part_manifest const& part);

/// A manifest without its files, for state whose files another format describes: step, scales, fingerprint, config. `state_digest` is of the whole state.
struct state_manifest {
    checkpoint_manifest about;  ///< no files
    state_digest digest;

    friend bool operator==(state_manifest const&, state_manifest const&) = default;
};

/// @throws exit_error
state_manifest parse_state(std::string_view text, std::string const& name);
std::string format_state(state_manifest const& state);

}  // namespace rheo::inline v0
