#pragma once
// SPDX-License-Identifier: Apache-2.0

// Faults on demand, for tests: `kill:rank@step[.attempt][:phase]` makes a rank send itself SIGKILL at a named
// point of a step, which looks to the other ranks like a process killed from outside. `drain:rank@step` makes it ask to leave in
// order after that step, `slow:rank@from-to:factor` makes its emulated device take so many times as long in these steps. With `stop` it is SIGSTOP, and with
// `hang` the rank's operation does not end, as one that waits for a broken device. It says so on standard
// error first. Without an attempt: any; without a phase: forward. A phase may also be a moment in the writing of a checkpoint
// (executor/config/checkpoint_point.hpp); the step is the checkpoint's then.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/config/checkpoint_point.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

enum class fault_phase : std::uint8_t {
    forward,          ///< after a forward, before its output is sent
    backward,         ///< after a backward, before its gradient is sent
    input_gradient,   ///< after an input gradient, before it is sent
    weight_gradient,  ///< after a weight gradient
    recompute,        ///< after a forward that was recomputed, before its backward
    gather,           ///< before ranks that share a stage exchange their rows
    sum,              ///< before they exchange the nodes of a sum, in a forward
    sum_gradient,     ///< the same in a backward
    reduce,           ///< reductions posted, none awaited
    parameters,       ///< with optimizer shards, new parameters are under way to ranks that do not keep their moments
    decide,           ///< before the vote of a finished attempt
    shrink,           ///< in a recovery, before the shrink
    copy,             ///< in a recovery, after the first transfer began
    commit,           ///< the vote was settled, the update not begun
    idle,             ///< the update is done, the next step not begun
};

inline constexpr std::string_view fault_phase_names[] = {"forward", "backward", "input_gradient", "weight_gradient", "recompute",
                                                         "gather",  "sum",      "sum_gradient",   "reduce",          "parameters",
                                                         "decide",  "shrink",   "copy",           "commit",          "idle"};

enum class fault_kind : std::uint8_t { kill, stop, hang, drain, slow };

inline constexpr std::string_view fault_kind_names[] = {"kill", "stop", "hang", "drain", "slow"};

struct injected_fault {
    rank_id rank;
    step_id step;
    fault_phase phase;
    std::optional<attempt_id> attempt{};  ///< none: whichever comes first
    fault_kind kind = fault_kind::kill;
    std::optional<checkpoint_point> writing{};  ///< then in place of the phase
    step_id until{};                            ///< the last step of a slow rank
    double factor = 1.0;                        ///< how many times as long it takes

    friend constexpr bool operator==(injected_fault const&, injected_fault const&) = default;
};

/// Reads `kill:rank@step[.attempt][:phase]`, or stop or hang in place of kill; or `drain:rank@step`; or `slow:rank@from-to:factor`.
result<injected_fault> parse_fault(std::string_view text);

class fault_injector {
public:
    fault_injector() = default;
    fault_injector(std::vector<injected_fault> faults, rank_id self) : faults_{std::move(faults)}, self_{self} {}

    /// Ends, stops or hangs this process when a fault says so.
    void at(fault_phase phase, step_id step, attempt_id attempt) const;
    void at(checkpoint_point point, step_id of_checkpoint) const;

    /// Whether this process is to leave in order, after this step or an earlier one.
    bool leaves(step_id step) const;

    /// How many times as long this process's device takes in the step.
    double slowness(step_id step) const;

private:
    std::vector<injected_fault> faults_;
    rank_id self_;
};

}  // namespace rheo::inline v0
