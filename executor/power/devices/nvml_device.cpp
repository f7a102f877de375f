// SPDX-License-Identifier: Apache-2.0
#include "executor/power/devices/nvml_device.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <range/v3/algorithm/sort.hpp>

namespace rheo::inline v0::power {

namespace {

std::optional<unsigned> number_in(std::string_view text)
{
    unsigned number = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty() ? std::optional{number} : std::nullopt;
}

/// The effective capabilities of this process; none when /proc does not show them.
std::optional<std::uint64_t> capabilities()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("CapEff:")) {
            auto const digits = line.find_first_not_of(" \t", 7);
            std::uint64_t mask = 0;
            if (digits != line.npos && std::from_chars(line.data() + digits, line.data() + line.size(), mask, 16).ec == std::errc{}) {
                return mask;
            }
        }
    }
    return std::nullopt;
}

/// A list whose size NVML returns when the buffer is too small.
template <class Ask>
device_result<std::vector<unsigned>> list_of(nvml_library const& library, std::string_view query, Ask const& ask)
{
    unsigned count = 0;
    auto code = ask(&count, nullptr);
    std::vector<unsigned> values;
    if (code == nvml::error_insufficient_size || (code == nvml::success && count > 0)) {
        values.resize(count);
        code = ask(&count, values.data());
    }
    if (code != nvml::success) {
        return library.refused(code, query);
    }
    values.resize(std::min<std::size_t>(count, values.size()));
    ranges::sort(values, std::greater<>{});
    values.erase(std::unique(values.begin(), values.end()), values.end());
    if (values.empty()) {
        return device_error{device_error_code::not_supported, "NVML knows no values for " + std::string{query}};
    }
    return values;
}

}  // namespace

device_result<nvml_device> nvml_device::open(std::shared_ptr<nvml_library const> library, std::string const& which)
{
    auto const& call = library->call();
    nvml_device device;
    device.library_ = library;
    auto const index = number_in(which);
    auto const code = index                                  ? call.nvmlDeviceGetHandleByIndex_v2(*index, &device.handle_)
                      : which.find(':') != std::string::npos ? call.nvmlDeviceGetHandleByPciBusId_v2(which.c_str(), &device.handle_)
                                                             : call.nvmlDeviceGetHandleByUUID(which.c_str(), &device.handle_);
    if (code != nvml::success) {
        return library->refused(code, "the device '" + which + "'");
    }
    std::array<char, nvml::name_size> name{};
    std::array<char, nvml::uuid_size> uuid{};
    if (auto const named = call.nvmlDeviceGetName(device.handle_, name.data(), nvml::name_size); named != nvml::success) {
        return library->refused(named, "the name of the device '" + which + "'");
    }
    if (auto const known = call.nvmlDeviceGetUUID(device.handle_, uuid.data(), nvml::uuid_size); known != nvml::success) {
        return library->refused(known, "the UUID of the device '" + which + "'");
    }
    device.name_ = name.data();
    device.uuid_ = uuid.data();
    if (nvml::pci_info place{}; call.nvmlDeviceGetPciInfo_v3 != nullptr && call.nvmlDeviceGetPciInfo_v3(device.handle_, &place) == nvml::success) {
        device.pci_address_ = fmt::format("{:04x}:{:02x}:{:02x}.0", place.domain, place.bus, place.device);
    }
    return device;
}

device_result<std::vector<megahertz>> nvml_device::clocks() const
{
    auto const& call = library_->call();
    if (call.nvmlDeviceGetSupportedMemoryClocks == nullptr || call.nvmlDeviceGetSupportedGraphicsClocks == nullptr) {
        return library_->missing("nvmlDeviceGetSupportedGraphicsClocks");
    }
    auto const memory = list_of(*library_, "the memory clocks of " + uuid_,
                                [&](unsigned* count, unsigned* values) { return call.nvmlDeviceGetSupportedMemoryClocks(handle_, count, values); });
    if (!memory) {
        return memory.error();
    }
    auto const graphics = list_of(*library_, "the clocks of " + uuid_, [&](unsigned* count, unsigned* values) {
        return call.nvmlDeviceGetSupportedGraphicsClocks(handle_, memory->front(), count, values);
    });
    if (!graphics) {
        return graphics.error();
    }
    std::vector<megahertz> clocks;
    for (auto const value : *graphics) {
        clocks.push_back({static_cast<double>(value)});
    }
    return clocks;
}

device_result<done> nvml_device::may_lock() const
{
    auto const& call = library_->call();
    if (call.nvmlDeviceSetGpuLockedClocks == nullptr || call.nvmlDeviceResetGpuLockedClocks == nullptr) {
        return library_->missing("nvmlDeviceSetGpuLockedClocks");
    }
    constexpr std::uint64_t sys_admin = std::uint64_t{1} << 21;
    if (auto const mask = capabilities(); mask && (*mask & sys_admin) == 0) {
        return device_error{device_error_code::no_permission, "NVML lets only a process with the capability SYS_ADMIN lock the clock of " + uuid_};
    }
    return done{};
}

device_result<done> nvml_device::lock(megahertz clock)
{
    auto const& call = library_->call();
    if (call.nvmlDeviceSetGpuLockedClocks == nullptr) {
        return library_->missing("nvmlDeviceSetGpuLockedClocks");
    }
    auto const whole = static_cast<unsigned>(std::lround(clock.count));
    if (auto const code = call.nvmlDeviceSetGpuLockedClocks(handle_, whole, whole); code != nvml::success) {
        return library_->refused(code, fmt::format("{} MHz for {}", whole, uuid_));
    }
    return done{};
}

device_result<done> nvml_device::restore()
{
    auto const& call = library_->call();
    if (call.nvmlDeviceResetGpuLockedClocks == nullptr) {
        return library_->missing("nvmlDeviceResetGpuLockedClocks");
    }
    if (auto const code = call.nvmlDeviceResetGpuLockedClocks(handle_); code != nvml::success) {
        return library_->refused(code, "putting the clock of " + uuid_ + " back");
    }
    return done{};
}

restoration nvml_device::original() const { return {{{{restoration_kind::nvml, library_->name(), uuid_}}}}; }

device_result<megahertz> nvml_device::clock_now() const
{
    auto const& call = library_->call();
    if (call.nvmlDeviceGetClockInfo == nullptr) {
        return library_->missing("nvmlDeviceGetClockInfo");
    }
    unsigned clock = 0;
    if (auto const code = call.nvmlDeviceGetClockInfo(handle_, nvml::clock_graphics, &clock); code != nvml::success) {
        return library_->refused(code, "the clock of " + uuid_);
    }
    return megahertz{static_cast<double>(clock)};
}

device_result<joules> nvml_device::energy() const
{
    auto const& call = library_->call();
    if (call.nvmlDeviceGetTotalEnergyConsumption == nullptr) {
        return library_->missing("nvmlDeviceGetTotalEnergyConsumption");
    }
    unsigned long long millijoules = 0;
    if (auto const code = call.nvmlDeviceGetTotalEnergyConsumption(handle_, &millijoules); code != nvml::success) {
        return library_->refused(code, "the energy counter of " + uuid_);
    }
    return joules{static_cast<double>(millijoules) * 1e-3};
}

device_result<throttling> nvml_device::throttled() const
{
    auto const& call = library_->call();
    auto* const ask =
        call.nvmlDeviceGetCurrentClocksEventReasons != nullptr ? call.nvmlDeviceGetCurrentClocksEventReasons : call.nvmlDeviceGetCurrentClocksThrottleReasons;
    if (ask == nullptr) {
        return library_->missing("nvmlDeviceGetCurrentClocksEventReasons");
    }
    unsigned long long reasons = 0;
    if (auto const code = ask(handle_, &reasons); code != nvml::success) {
        return library_->refused(code, "what holds the clock of " + uuid_ + " down");
    }
    return throttling{.power = (reasons & nvml::event_power_cap) != 0,
                      .thermal = (reasons & (nvml::event_thermal_software | nvml::event_thermal_hardware)) != 0,
                      .hardware = (reasons & (nvml::event_hardware_slowdown | nvml::event_power_brake)) != 0,
                      .group = (reasons & nvml::event_sync_boost) != 0};
}

std::vector<nvml_device> nvml_devices(std::shared_ptr<nvml_library const> const& library)
{
    std::vector<nvml_device> devices;
    auto const count = library->devices();
    for (unsigned k = 0; count && k < *count; ++k) {
        if (auto device = nvml_device::open(library, std::to_string(k))) {
            devices.push_back(std::move(*device));
        }
    }
    return devices;
}

}  // namespace rheo::inline v0::power
