// SPDX-License-Identifier: Apache-2.0
#include "executor/power/devices/cpu_device.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>

#include <unistd.h>

#include <range/v3/algorithm/sort.hpp>

#include "executor/power/devices/small_file.hpp"
#include "rheo/units/csv.hpp"

namespace rheo::inline v0::power {

namespace {

namespace fs = std::filesystem;

/// The number after the prefix, when the name is just that: cpu12 but not cpufreq.
int number_after(std::string const& name, std::string const& prefix)
{
    int number = -1;
    return name.starts_with(prefix) && read_number(std::string_view{name}.substr(prefix.size()), number) && number >= 0 ? number : -1;
}

/// The entries of a folder whose names are the prefix and a number, by that number.
std::vector<std::pair<int, std::string>> numbered(std::string const& folder, std::string const& prefix)
{
    std::vector<std::pair<int, std::string>> found;
    std::error_code error;
    for (auto const& entry : fs::directory_iterator{folder, error}) {
        if (int const number = number_after(entry.path().filename().string(), prefix); number >= 0) {
            found.emplace_back(number, entry.path().string());
        }
    }
    ranges::sort(found);
    return found;
}

/// Sets both limits without ever asking for a least above the most, which the kernel refuses.
device_result<done> set_limits(std::string const& folder, long least, long most)
{
    auto const min = folder + "/scaling_min_freq";
    auto const max = folder + "/scaling_max_freq";
    auto const before = read_number_file(max);
    if (!before) {
        return before.error();
    }
    bool const up = static_cast<double>(most) >= *before;
    auto const first = up ? write_small_file(max, std::to_string(most)) : write_small_file(min, std::to_string(least));
    if (!first) {
        return first;
    }
    return up ? write_small_file(min, std::to_string(least)) : write_small_file(max, std::to_string(most));
}

}  // namespace

device_result<cpu_device> cpu_device::open(int package, std::string const& root)
{
    cpu_device device;
    device.key_ = package < 0 ? "cpu" : "cpu-package-" + std::to_string(package);
    device.no_zones_ = {device_error_code::not_found, "there is no RAPL package in " + root + "/class/powercap"};
    device.no_policies_ = {device_error_code::not_found, "there is no cpufreq in " + root + "/devices/system/cpu"};
    for (auto const& [number, zone] : numbered(root + "/class/powercap", "intel-rapl:")) {
        auto const name = read_small_file(zone + "/name");
        int const its = name ? number_after(*name, "package-") : -1;
        if (its >= 0 && (package < 0 || its == package)) {
            auto const range = read_number_file(zone + "/max_energy_range_uj");
            device.zones_.push_back({zone + "/energy_uj", {.range = range ? *range : 0.0}});
        }
    }
    std::set<fs::path> seen;  // cores of one policy share its folder
    for (auto const& [number, cpu] : numbered(root + "/devices/system/cpu", "cpu")) {
        auto const its = read_number_file(cpu + "/topology/physical_package_id");
        if (package >= 0 && (!its || static_cast<int>(*its) != package)) {
            continue;
        }
        auto const throttle = cpu + "/thermal_throttle/core_throttle_count";
        if (::access(throttle.c_str(), R_OK) == 0) {
            device.throttle_files_.push_back(throttle);
        }
        std::error_code error;
        auto const folder = fs::canonical(cpu + "/cpufreq", error);
        if (error || !seen.insert(folder).second) {
            continue;
        }
        auto const least = read_number_file(folder.string() + "/scaling_min_freq");
        auto const most = read_number_file(folder.string() + "/scaling_max_freq");
        if (!least || !most) {
            device.no_policies_ = !least ? least.error() : most.error();
            continue;
        }
        device.policies_.push_back({folder.string(), static_cast<long>(*least), static_cast<long>(*most)});
    }
    if (device.zones_.empty() && device.policies_.empty()) {
        return device_error{device_error_code::not_found, device.no_zones_.message + ", and " + device.no_policies_.message};
    }
    (void)device.throttled();  // what was before does not count
    return device;
}

std::string cpu_device::name() const
{
    return key_ + ": " + std::to_string(zones_.size()) + " RAPL packages, " + std::to_string(policies_.size()) + " clock domains";
}

device_result<std::vector<megahertz>> cpu_device::clocks() const
{
    if (policies_.empty()) {
        return no_policies_;
    }
    auto const& folder = policies_.front().folder;
    std::vector<megahertz> clocks;
    if (auto const listed = read_small_file(folder + "/scaling_available_frequencies")) {
        std::istringstream text(*listed);
        for (double kilohertz = 0; text >> kilohertz;) {
            clocks.push_back({kilohertz * 1e-3});
        }
    }
    if (clocks.empty()) {
        auto const least = read_number_file(folder + "/cpuinfo_min_freq");
        auto const most = read_number_file(folder + "/cpuinfo_max_freq");
        if (!least || !most) {
            return !least ? least.error() : most.error();
        }
        for (double kilohertz = *most; kilohertz >= *least; kilohertz -= 1e5) {
            clocks.push_back({kilohertz * 1e-3});
        }
    }
    ranges::sort(clocks, std::greater<>{});
    return clocks;
}

device_result<done> cpu_device::may_lock() const
{
    if (policies_.empty()) {
        return no_policies_;
    }
    for (auto const& one : policies_) {
        for (auto const* file : {"/scaling_min_freq", "/scaling_max_freq"}) {
            if (::access((one.folder + file).c_str(), W_OK) != 0) {
                return device_error{device_error_code::no_permission, one.folder + file + " may not be written by this user"};
            }
        }
    }
    return done{};
}

device_result<done> cpu_device::lock(megahertz clock)
{
    if (policies_.empty()) {
        return no_policies_;
    }
    auto const kilohertz = std::lround(clock.count * 1e3);
    for (auto const& one : policies_) {
        if (auto const set = set_limits(one.folder, kilohertz, kilohertz); !set) {
            (void)restore();  // not some cores at one clock and some at another
            return set;
        }
    }
    return done{};
}

device_result<done> cpu_device::restore() { return perform(original()); }

restoration cpu_device::original() const
{
    // The most may have to rise before the least can, or to fall after it: the least is written before and after.
    restore_path way;
    for (auto const& one : policies_) {
        auto const min = one.folder + "/scaling_min_freq";
        auto const lowest = read_small_file(one.folder + "/cpuinfo_min_freq");
        way.push_back({restoration_kind::write, min, lowest ? *lowest : std::to_string(one.least)});
        way.push_back({restoration_kind::write, one.folder + "/scaling_max_freq", std::to_string(one.most)});
        way.push_back({restoration_kind::write, min, std::to_string(one.least)});
    }
    return way.empty() ? restoration{} : restoration{{way}};
}

device_result<megahertz> cpu_device::clock_now() const
{
    if (policies_.empty()) {
        return no_policies_;
    }
    double highest = 0.0;
    for (auto const& one : policies_) {
        auto const now = read_number_file(one.folder + "/scaling_cur_freq");
        if (!now) {
            return now.error();
        }
        highest = std::max(highest, *now);
    }
    return megahertz{highest * 1e-3};
}

device_result<joules> cpu_device::energy()
{
    if (zones_.empty()) {
        return no_zones_;
    }
    double microjoules = 0.0;
    for (auto& one : zones_) {
        auto const count = read_number_file(one.file);
        if (!count) {
            return count.error();
        }
        microjoules += one.count.take(*count);
    }
    return joules{microjoules * 1e-6};
}

device_result<throttling> cpu_device::throttled()
{
    if (throttle_files_.empty()) {
        return device_error{device_error_code::not_supported, "this kernel does not count how often cores were too hot"};
    }
    double counts = 0.0;
    for (auto const& file : throttle_files_) {
        auto const count = read_number_file(file);
        counts += count ? *count : 0.0;
    }
    bool const more = counts > throttled_;
    throttled_ = counts;
    return throttling{.thermal = more};
}

}  // namespace rheo::inline v0::power
