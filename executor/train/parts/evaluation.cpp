// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/evaluation.hpp"

#include <cmath>
#include <utility>

#include "executor/state/collectives.hpp"

namespace rheo::inline v0 {

void evaluation::reduce(mpi::messenger& messages, loss_sum const& mine, step_id committed, steps_so_far& totals)
{
    step_scalars scalars{{}, {mine.fixed, mine.targets, mine.not_finite ? 1 : 0}};
    all_reduce(messages, scalars);
    loss_ = mean_loss({.fixed = scalars.sums[0], .targets = scalars.sums[1], .not_finite = scalars.sums[2] != 0});
    if (std::exchange(recorded_, committed) != committed) {
        totals.evaluations_not_finite += std::isfinite(loss_) ? 0 : 1;
        record_->evaluation({committed, loss_});
    }
}

}  // namespace rheo::inline v0
