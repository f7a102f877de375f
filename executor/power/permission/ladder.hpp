#pragma once
// SPDX-License-Identifier: Apache-2.0

// By whose permission clocks are set: our own, zeusd's, a command of the site's, or none, and then they are
// advised only. The highest rung that works is taken; one that loses its permission in the middle is left for the
// next. Which rungs there are is settled at the start, so that what restores the clocks is known before the first
// clock is touched.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/power/devices/device.hpp"

namespace rheo::inline v0::power {

enum class clock_rung { direct, zeusd, site_command, advise_only };

constexpr std::string_view name_of(clock_rung rung)
{
    constexpr std::string_view names[] = {"direct", "zeusd", "site command", "advise only"};
    return names[static_cast<std::size_t>(rung)];
}

struct ladder_config {
    bool direct = true;
    std::string zeusd{};            ///< its socket; empty: none (power/zeusd.hpp: zeusd_socket())
    std::string pci_address{};      ///< of the device, by which zeusd's is found; empty: it is no GPU
    std::string lock_command{};     ///< for the shell, with {device} and {mhz}; empty: none
    std::string restore_command{};  ///< the one that undoes it, with {device}
};

/// How far the question goes: to look touches no clock; to touch restores the clock once, which needs the same permission as
/// to lock it, and where a container takes it away only this shows it.
enum class probing { look, touch };

class clock_ladder {
public:
    clock_rung rung() const;
    std::string message() const;  ///< on which rung it is, and why not higher

    /// Locks the clock on the present rung; when that has no permission any more it goes down, as far as it must.
    device_result<done> lock(megahertz clock);

    /// How the clock is restored: a way for every rung that there was at the start. Empty: no clock is ever touched.
    restoration original() const;

    any_power_device& device() { return device_; }

private:
    friend clock_ladder choose_rung(any_power_device device, ladder_config const& config, probing how);
    struct step {
        clock_rung rung;
        std::string description;
        std::function<device_result<done>(any_power_device&, megahertz)> lock;
        restoration back;
    };
    explicit clock_ladder(any_power_device device) : device_{std::move(device)} {}

    any_power_device device_;
    std::vector<step> steps_;         ///< that work, highest first
    std::size_t at_ = 0;              ///< steps_.size(): advise only
    std::vector<std::string> above_;  ///< why not the rungs above
};

/// The highest rung that works for this device, with those below it that do.
clock_ladder choose_rung(any_power_device device, ladder_config const& config, probing how);

/// The line with the names in braces replaced. Refused: a device's name that a shell would not take as one plain word.
device_result<std::string> filled_in(std::string const& line, std::string const& device, megahertz clock);

}  // namespace rheo::inline v0::power
