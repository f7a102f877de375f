#pragma once
// SPDX-License-Identifier: Apache-2.0

// How an attempt of a step ends, and how a job ends. The outcome is read from flags that were reduced
// over all ranks inside the attempt, so every rank whose attempt ran to its end reads the same one;
// it counts only after the agreement confirmed that this was every rank.

#include <cstdint>

#include "rheo/units/exit_code.hpp"

namespace rheo::inline v0 {

enum class outcome : std::uint8_t {
    commit,    ///< the optimizer's update, then the next step
    redo,      ///< a contribution overflowed its scale: the same step again with a scale from its own maxima
    skip,      ///< not finite, and configured to continue: the next step with the parameters as they are
    error,     ///< not finite, and configured to end: nothing is updated
    bad_data,  ///< the data have changed while they were read: nothing is updated, the job ends
    stop,      ///< commit, then end in order
};

/// What the ranks reduce in a section besides gradients (each flag by "or").
struct step_flags {
    bool data_changed = false;
    bool not_finite = false;
    bool overflow = false;
    bool stop_requested = false;

    friend constexpr bool operator==(step_flags, step_flags) = default;
};

enum class when_not_finite : std::uint8_t { end, skip_step };

/// The outcome of an attempt. Changed data come first, since nothing computed from them may count; then not finite, since no
/// scale mends it; a request to stop waits for the first attempt that would commit.
constexpr outcome outcome_of(step_flags flags, when_not_finite policy)
{
    if (flags.data_changed) {
        return outcome::bad_data;
    }
    if (flags.not_finite) {
        return policy == when_not_finite::end ? outcome::error : outcome::skip;
    }
    if (flags.overflow) {
        return outcome::redo;
    }
    return flags.stop_requested ? outcome::stop : outcome::commit;
}

enum class leave_reason : std::uint8_t {
    finished,    ///< all steps are committed
    stopped,     ///< asked to stop; the job can be resumed
    not_finite,  ///< a loss or gradient is not finite
    bad_data,    ///< the data have changed while they were read
    state_lost,  ///< no survivor holds a copy of some layer
    no_plan,     ///< the survivors are too few for any pipeline
    drained,     ///< this rank has given its state away and leaves; the job continues without it
    fenced,      ///< another membership has begun the generation: this rank must not continue at all
};

/// The exit code of the job, or of a drained rank. A fenced rank has none: it sends itself SIGKILL, so that nothing of it
/// (buffers, exit handlers, a farewell to the launcher) reaches those who continue.
/// @pre the reason is not `fenced`
constexpr exit_code exit_code_of(leave_reason reason)
{
    switch (reason) {
    case leave_reason::finished: return exit_code::done;
    case leave_reason::drained: return exit_code::done;
    case leave_reason::stopped: return exit_code::stopped;
    case leave_reason::no_plan: return exit_code::stopped;  // the state lives: it is saved, and continues where there are more ranks
    case leave_reason::not_finite: return exit_code::not_finite;
    case leave_reason::bad_data: return exit_code::bad_data;
    default: return exit_code::state_lost;
    }
}

}  // namespace rheo::inline v0
