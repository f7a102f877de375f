#pragma once
// SPDX-License-Identifier: Apache-2.0

// A request to change the plan of a running job, and its answer, as files in the run folder. The job reads reshape.toml after a step and renames it to
// reshape-<step>.done or reshape-<step>.refused. The last line says what happened.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rheo::inline v0 {

/// The answer of the job.
struct reshape_answer {
    std::int64_t step = 0;  ///< steps committed when it was given
    bool made = false;      ///< whether the plan changed
    std::string message{};  ///< what moved and how long it took, or why the plan did not change

    friend bool operator==(reshape_answer const&, reshape_answer const&) = default;
};

/// Whether there is a request that has no answer yet.
bool has_reshape_request(std::string const& folder);

/// Writes a request. @param settings "plan.tensor=2" each  @param id identifies its answer
/// @throws exit_error if there is one already, or it cannot be written
void write_reshape_request(std::string const& folder, std::span<std::string const> settings, std::string const& id);

/// The settings of the request; empty if there is none.
std::vector<std::string> read_reshape_request(std::string const& folder);

/// Removes a request that has no answer yet. @returns whether there was one
bool remove_reshape_request(std::string const& folder);

/// Replaces the request by its answer. @throws exit_error
void answer_reshape_request(std::string const& folder, reshape_answer const& answer);

/// The answer to the request with this id, if the job has given it.
std::optional<reshape_answer> find_reshape_answer(std::string const& folder, std::string const& id);

}  // namespace rheo::inline v0
