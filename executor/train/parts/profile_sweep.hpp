#pragma once
// SPDX-License-Identifier: Apache-2.0

// A profile made in this training (power.sweep): the clock that all ranks try in a step, what this rank measures at it, and the file that the
// reporter writes when all clocks are tried or the job ends. Which clock comes next is clock_sweep's; what was measured is in sweep_rows.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "executor/clocks/clock_sweep.hpp"
#include "executor/clocks/rank_device.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/records/records.hpp"
#include "executor/train/job.hpp"
#include "executor/train/parts/step_totals.hpp"

namespace rheo::inline v0 {

class profile_sweep {
public:
    /// @param device none: there is no sweep
    profile_sweep(job const& about, rank_device* device, records& record);

    bool runs() const { return asked_for() && !sweep_.ended(); }

    /// A section begins. When the sweep has ended the ranks exchange their rows in it, so that the loss of a rank is one like any other.
    void begin_section(mpi::messenger& messages);

    /// Clocks that this rank's device has.
    std::size_t clocks() const { return clocks_.size(); }

    /// The clock that is tried, for each of so many computations. Valid until the next call. @pre runs()
    std::span<megahertz const> row(std::size_t computations);

    /// The totals of a section are reduced. @param counted by this rank's device  @param when it was read
    void reduced(step_totals const& totals, joules counted, seconds when);

    /// An attempt is settled. @param sums what this rank computed in it  @param cuts of its pipeline; empty: it has no place
    /// @return whether the sweep ends with it
    bool settled(bool committed, computed_sums const& sums, std::span<layer_id const> cuts, bool is_reporter);

    /// The job ends: what was measured so far is exchanged and written, once.
    void close(mpi::messenger& messages, bool is_reporter);

private:
    bool asked_for() const { return device_ != nullptr && !job_->config.power.sweep.empty(); }
    void measure(computed_sums const& sums, std::span<layer_id const> cuts, bool throttled);
    void gather(mpi::messenger& messages);
    void write(bool is_reporter);

    job const* job_;
    rank_device* device_;
    records* record_;
    clock_sweep sweep_;
    sweep_rows rows_;                ///< measured by this rank
    std::vector<megahertz> clocks_;  ///< of this rank's device
    std::size_t common_clocks_ = 1;  ///< that every rank has, reduced
    std::vector<megahertz> row_;
    std::optional<sweep_rows> gathered_;  ///< of all ranks; counts when the attempt is settled
    bool is_written_ = false;
    joules computing_{};  ///< what computations of all ranks drew in the last section, reduced
    joules counted_{};    ///< by this rank's device, when totals were reduced the last time
    joules drawn_{};      ///< from the time before that until then
    seconds reduced_at_;
    seconds interval_;  ///< as long as that took
};

}  // namespace rheo::inline v0
