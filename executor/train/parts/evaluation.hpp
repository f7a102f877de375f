#pragma once
// SPDX-License-Identifier: Apache-2.0

// The loss of the validation split: its reduction over the members, and its record, once per step.

#include "executor/mpi/messenger.hpp"
#include "executor/records/earlier_run.hpp"
#include "executor/records/records.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"

namespace rheo::inline v0 {

class evaluation {
public:
    explicit evaluation(records& record) : record_{&record} {}

    /// Reduces this rank's part of the loss and records the sum, unless the step was evaluated before: one that is repeated after a loss is not recorded
    /// twice. @param committed steps  @throws mpi::peer_lost
    void reduce(mpi::messenger& messages, loss_sum const& mine, step_id committed, steps_so_far& totals);

    /// The last one, in nats per token; NaN: not finite.
    double loss() const { return loss_; }

private:
    records* record_;
    double loss_ = 0;
    step_id recorded_{-1};
};

}  // namespace rheo::inline v0
