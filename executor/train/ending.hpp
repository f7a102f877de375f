#pragma once
// SPDX-License-Identifier: Apache-2.0

// How the ranks of a job end together. One of them, the lowest, writes the last records; the others wait for its message that they are written, by
// polling as in any section: who sits in an agreement for seconds while several ranks die may never return from it (Open MPI 5.0.11). The
// agreement comes afterwards, when all are there. What takes long and no rank waits for (the traces on one time line) is done by that rank alone when
// the others have gone (leave_job). An error of one rank is a loss to the others; when all have one, the job has it, and they end together, too.

#include <exception>
#include <memory>

#include "executor/config/config.hpp"
#include "executor/faults/watchdog.hpp"
#include "executor/mpi/generation.hpp"
#include "executor/records/records.hpp"
#include "executor/train/run.hpp"
#include "rheo/recover/action.hpp"

namespace rheo::inline v0 {

/// Writes the last records, and agrees that they are written. A rank that is lost meanwhile is left out; when it was the one that wrote, the next one writes.
/// @param result out: which rank speaks  @returns the last generation; none of its ranks needs another one  @throws mpi::excluded_from_job
std::unique_ptr<mpi::generation> end_together(std::unique_ptr<mpi::generation> members, launch_id launch, run_config const& config, final_record const& end,
                                              records& record, watchdog& watch, run_result& result);

/// For a rank that must stop because of an error of its own. Where other ranks continue it ends itself, which they take for a loss. Where all
/// ranks of the generation have an error it returns, on all of them: the job ends with the code of the lowest.
/// @param voted this rank has made the last agreement of the generation, and it was not settled  @param record none: nothing can be recorded yet
run_result end_in_error(std::unique_ptr<mpi::generation> members, bool voted, std::exception const& error, records* record, watchdog& watch);

}  // namespace rheo::inline v0
