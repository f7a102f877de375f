#pragma once
// SPDX-License-Identifier: Apache-2.0

// Layers that one node alone holds, kept by second ranks: copied once after a merge, then brought up to date by the same
// update from the same gradient, so that they are as new as their sources at every commit and a loss at any moment finds them.

#include <deque>
#include <functional>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/state/reduction.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/recover/membership_plan.hpp"

namespace rheo::inline v0 {

/// A reduced gradient of a tensor that this rank keeps for another.
struct safety_copy_gradient {
    tensor_id tensor;
    array<float> values;  ///< in messages
};

class safety_copying {
public:
    explicit safety_copying(rank_id self) : self_{self} {}

    /// By a plan that was merged. All members know of all copies.
    void choose(membership_plan const& plan, replanning const& known);

    bool empty() const { return kept_.empty(); }

    /// The first copies. From here on the loss of a source loses nothing. @param arrived a tensor is here and checked  @throws mpi::peer_lost
    void copy_first(mpi::messenger& messages, resident_state& resident, std::function<void(tensor_id)> const& arrived) const;

    /// The reduced gradients go to the keepers; the vote that follows says that they are there. @param room of the backend's own memory, for a piece
    /// @throws mpi::peer_lost
    void pass_gradients(mpi::messenger& messages, resident_state& resident, std::deque<reduction> const& reductions, array<float>& room);

    /// Of the tensors that this rank keeps, for the update.
    std::vector<safety_copy_gradient> const& gradients() const { return gradients_; }

private:
    rank_id self_;
    std::vector<kept_tensor> kept_{};
    reshard_plan copies_{};  ///< the first ones
    std::vector<safety_copy_gradient> gradients_;
};

}  // namespace rheo::inline v0
