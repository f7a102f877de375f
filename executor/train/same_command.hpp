#pragma once
// SPDX-License-Identifier: Apache-2.0

// The command that resumes. Where the launcher kills all ranks when one dies, a person (or a batch script)
// starts the same command again; so the run says at its start what that is, and keeps it in the run
// folder. It is read from the processes themselves: this one, and the launcher among its ancestors.

#include <string>
#include <string_view>
#include <vector>

namespace rheo::inline v0 {

/// One sentence for people: what happens when a rank is lost.
constexpr std::string_view what_a_loss_does(bool survived)
{
    return survived ? "losses of ranks are survived: the others continue"
                    : "losses of ranks are resumed only: a lost rank ends the job, and the same command resumes from the newest checkpoint";
}

/// Words as a shell reads them back.
std::string shell_line(std::vector<std::string> const& words);

/// The command that started this job, with its folder: `cd /data && mpirun -n 4 rheo train a.toml`. When no launcher is
/// among the ancestors (a remote host), `mpirun -n <ranks>` stands for it.
std::string same_command(int ranks);

/// One sentence for people: the signal that stops this job in order, and who takes it. Open MPI's launcher answers SIGTERM by
/// SIGTERM to the ranks and SIGKILL 0.25 to 0.5 s later, which is too short for a checkpoint; SIGUSR1 it passes on.
std::string how_to_stop(int ranks);

/// Writes the line into `<folder>/command`, for `sh`. @throws exit_error
void keep_command(std::string const& folder, std::string const& line);

}  // namespace rheo::inline v0
