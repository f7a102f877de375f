#pragma once
// SPDX-License-Identifier: Apache-2.0

// The update of a step. With optimizer shards a rank that does not keep a tensor's moments gets its new values, as stages read them, from one that does, before
// the vote, in place of the gradient that it does not need; so a step still commits everywhere or did not happen. Who sends computes them beside the state,
// and again in the update: moments change only then.

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
    tensor_update update_of(tensor_id t, step_id step) const;
    adamw_settings settings_of(step_id step, step_totals const& totals) const;
    std::size_t bytes_of(tensor_id t) const;
    std::span<std::byte> bytes_in(std::span<float> place, tensor_id t) const;
    void gather_directly(step_id step, step_totals const& totals, mpi::messenger& messages, transport& by, std::deque<reduction>& reductions,
                         std::function<void()> const& begun);
    state_array& sent_values(tensor_id t, tensor_update const& one, adamw_settings const& settings);
    state_array const& compute(tensor_id t, tensor_update one, adamw_settings const& settings, state_array& values);

    run_config const* config_;
    resident_state* state_;
    array<float> room_;             ///< for a piece of a gradient
    std::deque<state_array> sent_;  ///< new values where messages reach them
    std::size_t sending_ = 0;       ///< of these, in this step
    state_array parameter_;         ///< of the tensor at hand, where messages are in another memory
    state_array first_moment_;
    state_array second_moment_;
    state_array stored_;
};

}  // namespace rheo::inline v0
