#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a run folder has of checkpoints: published ones, those that a run set aside, and what an interrupted writing has left.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rheo/tensor/digest.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class checkpoint_place : std::uint8_t {
    published,   ///< `step-N`
    set_aside,   ///< `before-K/step-N`: of a run that another one has replaced
    unfinished,  ///< `.step-N.G` and the like: being written, or removed, when a job ended
};

struct listed_checkpoint {
    std::filesystem::path folder;
    checkpoint_place place = checkpoint_place::published;
    std::optional<step_id> step{};         ///< that its name says
    bytes size{};                          ///< of all files in it
    int files = 0;                         ///< that its manifest names
    std::optional<state_digest> digest{};  ///< of the state, as the manifest has it; none: it cannot be opened
    std::string version{};                 ///< of rheo, that wrote it
    std::string problem{};                 ///< why it cannot be opened: manifest, sizes and headers do not agree
    std::filesystem::file_time_type written{};
};

/// Of a run folder, by place, then by step. No values are read: see verify_checkpoint. @throws exit_error: the folder is not there or cannot be listed
std::vector<listed_checkpoint> list_checkpoints(std::filesystem::path const& run_folder);

/// What the nodes whose folders can be seen from here keep of a checkpoint of a run (checkpoint.local).
struct listed_local {
    std::filesystem::path folder;
    step_id step;
    generation_id generation;
    std::vector<rank_id> parts{};  ///< whose, ascending
    bytes size{};
};

/// By folder of the node, then by step. Empty where the run's config has no such folder, or none can be seen. @throws exit_error: the config cannot be read
std::vector<listed_local> list_local_checkpoints(std::filesystem::path const& run_folder);

}  // namespace rheo::inline v0
