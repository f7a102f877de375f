#pragma once
// SPDX-License-Identifier: Apache-2.0

// A device that is not there, for ranks on plain processors: it has the clocks of a profile, stretches a computation by
// the ratio of the profile's times at its clock and at the highest one, and counts the energy that the profile says, and
// the blocking power whenever nothing runs. So everything that is done with clocks can be tried where none can be set.
// Copies are handles of one device: the clock is set from one thread while another computes.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/power/devices/device.hpp"
#include "rheo/energy/profile/profile.hpp"

namespace rheo::inline v0::power {

/// How long a computation lasts at the highest clock.
enum class emulated_pace {
    machine,  ///< as long as on the processor
    profile,  ///< as long as the profile says; longer only where the processor takes longer
};

/// What a computation did to its device.
struct computation {
    megahertz clock{};   ///< at which it ran; 0: not known
    joules energy{};     ///< that it drew; 0: not known
    seconds time{};      ///< that it took
    seconds expected{};  ///< that it would have taken by the profile; 0: not known

    friend constexpr bool operator==(computation, computation) = default;
};

struct emulated_options {
    rank_id rank{0};                 ///< whose rows of the profile are taken; those of every rank stand in
    watts blocking{83.64};           ///< between computations
    seconds switch_latency{};        ///< until a clock that was locked is there
    std::function<seconds()> now{};  ///< empty: the machine's steady clock
    emulated_pace pace = emulated_pace::machine;
};

class emulated_device {
public:
    /// @pre the profile has a computation at two clocks or more
    emulated_device(profile const& measured, emulated_options options);

    std::string name() const;
    std::string key() const;
    device_result<std::vector<megahertz>> clocks() const;
    device_result<done> may_lock() const { return done{}; }
    device_result<done> lock(megahertz clock);  ///< refused: none of clocks()
    device_result<done> restore();              ///< to the highest
    restoration original() const { return {}; }
    device_result<megahertz> clock_now() const;
    device_result<joules> energy() const;
    device_result<throttling> throttled() const { return throttling{}; }

    /// From now on it computes what this profile holds, which is by stage as the first one was. Its clocks stay.
    void computes(profile const& measured);

    /// A computation that took so long on the processor has ended: counts its energy. @param slowness it takes that many times as long,
    /// and draws what a waiting device draws in the time that this adds. @return what it takes and draws at the clock that was set when it
    /// began; the caller waits for the rest. What the profile does not have takes as long as it did, at blocking power
    computation computed(instruction_kind kind, stage_id stage, seconds took, double slowness = 1.0);

private:
    struct state;
    std::shared_ptr<state> state_;
};
static_assert(PowerDevice<emulated_device>);

}  // namespace rheo::inline v0::power
