#pragma once
// SPDX-License-Identifier: Apache-2.0

// The update of a step. With optimizer shards a rank that does not keep a tensor's moments gets its new values from one that does, before the vote, in place
// of the gradient that it does not need; so a step still commits everywhere or did not happen. Who sends computes them beside the state, and again in the
// update: moments change only then.

#include <cstddef>
#include <deque>
#include <functional>
#include <span>

#include "executor/config/config.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/state/reduction.hpp"
#include "executor/state/resident_state.hpp"
#include "executor/train/parts/safety_copying.hpp"
#include "executor/train/parts/step_totals.hpp"
#include "executor/transport/transport.hpp"
#include "kernels/adamw/adamw.hpp"

namespace rheo::inline v0 {

class optimizer_step {
public:
    /// @pre both outlive it
    optimizer_step(run_config const& config, resident_state& state);

    /// New values of parameters go from ranks that keep their moments to those that do not. Nothing without optimizer shards. `begun` is called when the
    /// first messages are under way. @param direct a transport that reaches where kernels compute: tensor after tensor goes by it; null: all at once by messages
    /// @throws mpi::peer_lost
    void gather(step_id step, step_totals const& totals, mpi::messenger& messages, transport* direct, std::deque<reduction>& reductions,
                std::function<void()> const& begun);

    /// All parameters of this rank. @pre the step is committed
    void update(step_id step, step_totals const& totals, std::deque<reduction>& reductions, std::span<safety_copy_gradient const> kept);

private:
    adamw_arguments<bf16> arguments_of(tensor_id t, step_id step, step_totals const& totals) const;
    void gather_directly(step_id step, step_totals const& totals, mpi::messenger& messages, transport& by, std::deque<reduction>& reductions,
                         std::function<void()> const& begun);
    array<float>& sent_values(tensor_id t, adamw_arguments<bf16> const& arguments);
    void compute(tensor_id t, adamw_arguments<bf16> arguments, array<float>& values);

    run_config const* config_;
    resident_state* state_;
    array<float> room_;              ///< for a piece of a gradient
    std::deque<array<float>> sent_;  ///< new values where messages reach them
    std::size_t sending_ = 0;        ///< of these, in this step
    array<float> parameter_;         ///< of the tensor at hand, where messages are in another memory
    array<float> first_moment_;
    array<float> second_moment_;
    array<bfloat16> stored_;
};

}  // namespace rheo::inline v0
