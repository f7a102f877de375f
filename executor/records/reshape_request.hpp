#pragma once
// SPDX-License-Identifier: Apache-2.0

// A request to change the plan of a running job, as files in its run folder: reshape.toml waits until the job has looked at it after a step, and becomes
// reshape-<step>.done or reshape-<step>.refused, with a last line that says what happened.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rheo::inline v0 {

/// What the job said to a request.
struct reshape_answer {
    std::int64_t step = 0;  ///< steps committed then
    bool made = false;      ///< the plan changed
    std::string message{};  ///< what moved and how long it took, or why the plan did not change

    friend bool operator==(reshape_answer const&, reshape_answer const&) = default;
};

/// Whether a request waits.
bool has_reshape_request(std::string const& folder);

/// Leaves a request. @param settings "plan.tensor=2" each  @param id by which its answer is found
/// @throws exit_error when one waits there, or it cannot be written
void write_reshape_request(std::string const& folder, std::span<std::string const> settings, std::string const& id);

/// The settings of the request; empty when there is none.
std::vector<std::string> read_reshape_request(std::string const& folder);

/// Takes a request that has no answer back. @returns whether there was one
bool remove_reshape_request(std::string const& folder);

/// The request becomes its answer. @throws exit_error
void answer_reshape_request(std::string const& folder, reshape_answer const& answer);

/// The answer to the request with that id, when it is there.
std::optional<reshape_answer> find_reshape_answer(std::string const& folder, std::string const& id);

}  // namespace rheo::inline v0
