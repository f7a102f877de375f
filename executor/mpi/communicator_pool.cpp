// SPDX-License-Identifier: Apache-2.0
#include "executor/mpi/communicator_pool.hpp"

#include <cstddef>
#include <utility>

namespace rheo::inline v0::mpi {

namespace {

/// The ranks of a communicator that was shrunk from another one.
std::vector<rank_id> initial_ranks_of(communicator const& after, communicator const& before, std::vector<rank_id> const& initial_ranks)
{
    MPI_Group from = MPI_GROUP_NULL;
    MPI_Group to = MPI_GROUP_NULL;
    MPI_Comm_group(before.handle(), &from);
    MPI_Comm_group(after.handle(), &to);
    std::vector<rank_id> result;
    for (int position = 0; position < after.size(); ++position) {
        int old_position = 0;
        MPI_Group_translate_ranks(to, 1, &position, from, &old_position);
        result.push_back(initial_ranks[static_cast<std::size_t>(old_position)]);
    }
    MPI_Group_free(&from);
    MPI_Group_free(&to);
    return result;
}

}  // namespace

communicator_pool::communicator_pool(MPI_Comm caller, int pairs) : pairs_{pairs}, base_{duplicate(caller)}
{
    for (int r = 0; r < base_.size(); ++r) {
        initial_ranks_.push_back(rank_id{r});
    }
    for (int i = 0; i < (survives_losses() ? pairs : 1); ++i) {
        ready_.push_back({initial_ranks_, duplicate(base_.handle()), duplicate(base_.handle())});
    }
}

communicator_pair communicator_pool::take()
{
    while (ready_.empty()) {
        refill();
    }
    auto next = std::move(ready_.back());
    ready_.pop_back();
    return next;
}

/// Makes pairs by shrinking, which unlike a duplication ends when members fail in the middle of it. It may make none.
void communicator_pool::refill()
{
    auto survivors = shrink(base_);
    auto initial_ranks = initial_ranks_of(survivors, base_, initial_ranks_);
    for (int i = 0; i < pairs_; ++i) {
        communicator_pair made{initial_ranks, shrink(survivors), shrink(survivors)};
        if (made.recovery.size() == survivors.size() && made.data.size() == survivors.size()) {
            ready_.push_back(std::move(made));
        }
    }
    // No rank may revoke one of them before all ranks have created it. The result of this agreement means nothing.
    agree(base_, 1);
    initial_ranks_ = std::move(initial_ranks);
    base_ = std::move(survivors);
}

}  // namespace rheo::inline v0::mpi
