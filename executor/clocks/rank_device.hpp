#pragma once
// SPDX-License-Identifier: Apache-2.0

// The device of a rank, as training sees it: whatever it is, a clock can be requested and a computation has an account of what it took
// and drew. An emulated device is set at once, its latency is the configured one; a real one is set by a thread of
// its own, with a guardian that restores the clock (power/clock_setter.hpp). Ranks that share a device share its clock;
// its energy is counted by the first of them.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/config/config.hpp"
#include "executor/power/clock_setter.hpp"
#include "executor/power/devices/emulated_device.hpp"
#include "executor/power/devices/energy_sampler.hpp"
#include "rheo/energy/profile/profile.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/planner/group_sharing.hpp"

namespace rheo::inline v0 {

class rank_device {
public:
    /// The device that the config asks for. @param layers power.clock_profile as read; without rows no clock is touched
    /// @param place_on_host of the rank among those of its host: which of several devices is its own  @param exchanges of the model, if ranks share stages
    /// @return or the sentence why there is none. @pre check(config) found nothing, power.device is not none
    static power::device_result<std::unique_ptr<rank_device>> open(power_config const& config, profile const& layers, rank_id self, int place_on_host,
                                                                   group_exchanges exchanges = {});

    /// Whether clocks follow plans here.
    bool sets_clocks() const { return emulated_ || setter_; }

    /// The clocks that can be tried, highest first; without permission to set one, the present clock. Waits a moment until that is known.
    std::vector<megahertz> clocks();

    /// What it is, and for clocks on which rung of the ladder it stands. Waits a moment until that is known.
    std::string message() const;

    /// Whether it did not hold its clock: now, or since the last time that this was asked, as the device can tell.
    bool throttled();

    /// By whose permission its clock is set, in a word or two; empty: it is left alone. Waits a moment until that is known.
    std::string permission() const;

    /// Messages about its clock since the last call.
    std::vector<std::string> news();

    /// From now on it computes what this rank of the pipeline does. @pre the rank has a place in it
    void computes(pipeline_instance const& pipeline, rank_id self);

    /// The clock that it should have from now on. Never waits. @param clock 0: the highest. @pre sets_clocks()
    void request(megahertz clock);

    /// A computation of the stage has ended: what it took and drew. An emulated device may take longer than the processor: the caller waits.
    power::computation computed(instruction_kind kind, stage_id stage, seconds took, double slowness);

    /// That this rank has to account for, since the device was opened.
    joules energy();

private:
    rank_device() = default;

    profile layers_;
    group_exchanges exchanges_;
    watts blocking_{};
    std::string name_;
    std::map<std::pair<int, instruction_kind>, std::vector<clock_option>> rows_;  ///< of the stages that it computes
    std::optional<power::emulated_device> emulated_;
    std::unique_ptr<power::energy_sampler> sampler_;
    bool counts_ = true;  ///< no rank before it on this host has the same device
    joules begun_{};
    std::vector<megahertz> clocks_;                   ///< highest first
    std::optional<power::any_power_device> watched_;  ///< to look at the clock that it has
    megahertz highest_{};
    megahertz requested_{};
    std::mutex mutex_;  ///< of what the setter's thread says
    std::vector<std::string> news_;
    std::unique_ptr<power::clock_setter> setter_;  ///< ends first: its thread speaks to the members above
};

/// Reads power.clock_profile for a model of so many layers; halves of backwards that it lacks are halves.
/// @return or the sentence why it cannot be taken
power::device_result<profile> read_clock_profile(power_config const& config, int layers);

/// The rank's place among those of its host, from the launcher; 0 where it gives none.
int place_on_host();

}  // namespace rheo::inline v0
