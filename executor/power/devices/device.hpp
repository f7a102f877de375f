#pragma once
// SPDX-License-Identifier: Apache-2.0

// A device whose clock can be locked and whose energy can be read: what NVML, sysfs, AMD SMI and Level Zero have in
// common. Clocks are a list from which one is taken; energy is a counter that only rises; what was set before is a
// value (power/restoration.hpp), so that another process can put it back. `any_power_device` holds any of them, as
// which one a rank has is known when it runs.

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/power/device_result.hpp"
#include "executor/power/guardian/restoration.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::power {

/// Why a device runs below the clock that was asked for, now. All false: it does not.
struct throttling {
    bool power = false;     ///< a power limit
    bool thermal = false;   ///< too hot
    bool hardware = false;  ///< brake, or a slowdown of unknown cause
    bool group = false;     ///< held to the clock of other devices

    explicit constexpr operator bool() const { return power || thermal || hardware || group; }
    friend constexpr bool operator==(throttling, throttling) = default;
};

template <class Device>
concept PowerDevice = std::movable<Device> && requires(Device& device, megahertz clock) {
    { device.name() } -> std::convertible_to<std::string>;                       ///< for people
    { device.key() } -> std::convertible_to<std::string>;                        ///< the same in all processes of the host, and of no other device
    { device.clocks() } -> std::same_as<device_result<std::vector<megahertz>>>;  ///< that can be locked, highest first
    { device.may_lock() } -> std::same_as<device_result<done>>;                  ///< permission as far as it shows without touching a clock
    { device.lock(clock) } -> std::same_as<device_result<done>>;                 ///< one of clocks()
    { device.restore() } -> std::same_as<device_result<done>>;                   ///< to what was there when the device was opened, or the driver's default
    { device.original() } -> std::same_as<restoration>;                          ///< the same as a value; empty: nothing is left behind
    { device.clock_now() } -> std::same_as<device_result<megahertz>>;
    { device.energy() } -> std::same_as<device_result<joules>>;  ///< since some moment in the past; never falls
    { device.throttled() } -> std::same_as<device_result<throttling>>;
};

/// Any PowerDevice. Not to be used after it was moved from.
class any_power_device {
public:
    template <class Device>
        requires(!std::same_as<Device, any_power_device> && PowerDevice<Device>)
    any_power_device(Device device) : is_{std::make_unique<held<Device>>(std::move(device))}
    {
    }

    std::string name() { return is_->name(); }
    std::string key() { return is_->key(); }
    device_result<std::vector<megahertz>> clocks() { return is_->clocks(); }
    device_result<done> may_lock() { return is_->may_lock(); }
    device_result<done> lock(megahertz clock) { return is_->lock(clock); }
    device_result<done> restore() { return is_->restore(); }
    restoration original() { return is_->original(); }
    device_result<megahertz> clock_now() { return is_->clock_now(); }
    device_result<joules> energy() { return is_->energy(); }
    device_result<throttling> throttled() { return is_->throttled(); }

private:
    struct interface {
        virtual ~interface() = default;
        virtual std::string name() = 0;
        virtual std::string key() = 0;
        virtual device_result<std::vector<megahertz>> clocks() = 0;
        virtual device_result<done> may_lock() = 0;
        virtual device_result<done> lock(megahertz clock) = 0;
        virtual device_result<done> restore() = 0;
        virtual restoration original() = 0;
        virtual device_result<megahertz> clock_now() = 0;
        virtual device_result<joules> energy() = 0;
        virtual device_result<throttling> throttled() = 0;
    };

    template <class Device>
    struct held final : interface {
        explicit held(Device device) : is{std::move(device)} {}
        std::string name() override { return is.name(); }
        std::string key() override { return is.key(); }
        device_result<std::vector<megahertz>> clocks() override { return is.clocks(); }
        device_result<done> may_lock() override { return is.may_lock(); }
        device_result<done> lock(megahertz clock) override { return is.lock(clock); }
        device_result<done> restore() override { return is.restore(); }
        restoration original() override { return is.original(); }
        device_result<megahertz> clock_now() override { return is.clock_now(); }
        device_result<joules> energy() override { return is.energy(); }
        device_result<throttling> throttled() override { return is.throttled(); }
        Device is;
    };

    std::unique_ptr<interface> is_;
};
static_assert(PowerDevice<any_power_device>);

}  // namespace rheo::inline v0::power
