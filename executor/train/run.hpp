#pragma once
// SPDX-License-Identifier: Apache-2.0

// Training as one call, inside any MPI program: a model, a communicator, a config in; the surviving
// ranks' communicator out. The caller's communicator is used to begin and is never revoked. A rank that
// must stop (fenced off, or in an error that the others do not share) ends itself by SIGKILL, which
// the others see as a loss; everything else comes back as a result.

#include <cstdint>
#include <optional>
#include <string>

#include <mpi.h>

#include "executor/config/config.hpp"
#include "executor/records/records.hpp"
#include "rheo/model/model.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Where a run begins when its folder has checkpoints.
enum class resume_mode : std::uint8_t {
    automatic,  ///< at the newest one, if the numerics fingerprint is the same; otherwise, and when there are some but none can be read, it is refused
    never,      ///< at step 0; what an earlier run left is set aside
    fork,       ///< at the newest one whatever the fingerprint, in a new folder; without one it is refused
};

struct run_options {
    bool quiet = false;                ///< no progress line and no table
    std::optional<plan> first_plan{};  ///< to begin with, in place of the planner's; whole microbatches only
    resume_mode resume = resume_mode::never;
    seconds max_time{};            ///< then it writes a checkpoint and ends with exit code 75; 0: no limit
    bool stop_on_signals = false;  ///< SIGTERM and SIGUSR1 do the same; SIGUSR2 to a rank makes this one leave after the step
};

struct run_result {
    int exit_code = 0;
    final_record record;
    MPI_Comm survivors = MPI_COMM_NULL;  ///< the caller's to free; null when the job never began
    bool is_reporter = false;            ///< this is the rank that prints for the job
    std::string merges{};  ///< the run folder whose traces this rank has still to merge: leave_job does it when no rank waits any more; empty: none
    seconds patience{};    ///< how long leave_job waits for the other ranks: run.watchdog.least_s; 0: without end
    bool drained = false;  ///< this rank has left in order and the others continue: end the process, as leave_job does, without MPI_Finalize
};

/// Trains the model. All ranks of the communicator call it with the same arguments.
/// @pre MPI is initialised; config.run.folder is one folder for all ranks
run_result run(MPI_Comm comm, model_description const& model, run_config const& config, run_options options = {});

/// The same for a model written as a type.
template <described_model Model>
run_result run(MPI_Comm comm, run_config const& config, run_options options = {})
{
    return run(comm, describe<Model>(), config, options);
}

/// The same with a schedule of one's own type.
template <described_model Model, Schedule ScheduleType>
run_result run(MPI_Comm comm, run_config config, run_options options = {})
{
    config.plan.schedule = ScheduleType{};
    return run(comm, describe<Model>(), config, options);
}

/// Ends the process with the job's exit code. Where losses are survived there is no MPI_Finalize, which may hang
/// after one: all ranks end with 0, the one that speaks a moment later with the code, when it has written trace.json.
/// @pre everything to keep is on disk
[[noreturn]] void leave_job(run_result const& result);

}  // namespace rheo::inline v0
