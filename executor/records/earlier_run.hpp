#pragma once
// SPDX-License-Identifier: Apache-2.0

// What an earlier launch left in a run folder, and what the next one makes of it: it resumes from the newest checkpoint,
// finds that nothing is left to do, or sets the earlier run aside and begins at step 0. No file of an earlier run is ever
// deleted for that. Where there is state that cannot be read, the run is rejected and nothing is touched: a
// folder may be missing for a moment, and a file may have a good copy elsewhere.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/records/records.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// The state that a launch can resume from.
struct earlier_state {
    std::optional<checkpoint> newest{};
    std::vector<std::string> skipped{};  ///< a sentence for each newer checkpoint that cannot be read or is not there
    std::string error{};                 ///< not empty: there are checkpoints, or there were, and none can be read; a line for each
};

/// Looks for the newest checkpoint that can be read, and for records of some that should be there. Cost: reads that checkpoint once.
earlier_state find_earlier_state(std::filesystem::path const& folder);

/// What the records say about the committed steps that a launch resumes from.
struct steps_so_far {
    std::optional<double> loss{};  ///< of the last one; infinite or NaN when it was not finite; none: not known
    std::int64_t skipped = 0;      ///< not finite
    std::int64_t evaluations_not_finite = 0;

    std::vector<std::int64_t> words() const;  ///< as they travel
    static steps_so_far of(std::vector<std::int64_t> const& words, std::size_t first);
    static constexpr std::size_t word_count = 4;
};

/// @param from the step that the launch resumes from: later ones are repeated
steps_so_far steps_of_records(std::filesystem::path const& folder, step_id from);

/// The end of a run that has committed all its steps, as its report says it. None when the report is missing, cannot be read, says that the end
/// failed, or is about another state: then the end is computed again. A launch that continues removes the report, so one that is there is the last launch's.
/// @param steps that the run has  @param newest its newest checkpoint: of the last state, or of an earlier one when that is not saved (checkpoint.at_end)
std::optional<ended_run> finished_run(std::filesystem::path const& folder, step_id steps, checkpoint const& newest);

/// Moves checkpoints, records and config of an earlier run into the first free `before-<k>` of the folder, which is a run folder, too.
/// @returns that folder; empty when there was no earlier run. @throws exit_error
std::filesystem::path set_run_aside(std::filesystem::path const& folder);

}  // namespace rheo::inline v0
