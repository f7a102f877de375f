// SPDX-License-Identifier: Apache-2.0
#include "executor/power/permission/ladder.hpp"

#include <cmath>
#include <utility>

#include "executor/power/devices/zeusd.hpp"
#include "executor/power/guardian/shell_line.hpp"

namespace rheo::inline v0::power {

namespace {

void replace_all(std::string& text, std::string_view pattern, std::string const& by)
{
    for (std::size_t at = 0; (at = text.find(pattern, at)) != std::string::npos; at += by.size()) {
        text.replace(at, pattern.size(), by);
    }
}

/// Why a site's command cannot be a rung; empty: it can.
std::string error_of(ladder_config const& config, std::string const& device)
{
    if (config.lock_command.empty()) {
        return "there is no site command";
    }
    if (config.lock_command.find("{mhz}") == std::string::npos) {
        return "the site command '" + config.lock_command + "' has no {mhz}";
    }
    if (config.restore_command.empty()) {
        return "the site command has no line that puts clocks back";
    }
    for (auto const& line : {config.lock_command, config.restore_command}) {
        if (line.find_first_of("\t\n") != std::string::npos) {
            return "a line of the site command has a tab or a line feed";
        }
        if (auto const filled = filled_in(line, device, {}); !filled) {
            return filled.error().message;
        }
    }
    return {};
}

/// Whether another rung may have what this one has not.
bool goes_down(device_error_code code)
{
    return code == device_error_code::no_permission || code == device_error_code::not_supported || code == device_error_code::not_found;
}

}  // namespace

device_result<std::string> filled_in(std::string const& line, std::string const& device, megahertz clock)
{
    for (char const c : device) {
        bool const plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == ':';
        if (!plain) {
            return device_error{device_error_code::not_supported, "the device '" + device + "' cannot be a word of a site command"};
        }
    }
    auto text = line;
    replace_all(text, "{device}", device);
    replace_all(text, "{mhz}", std::to_string(std::lround(clock.count)));
    return text;
}

clock_ladder choose_rung(any_power_device device, ladder_config const& config, probing how)
{
    clock_ladder ladder{std::move(device)};
    auto const without = [&](std::string const& why) {
        if (ladder.steps_.empty()) {
            ladder.above_.push_back(why);
        }
    };

    auto may =
        config.direct ? ladder.device_.may_lock() : device_result<done>{device_error{device_error_code::no_permission, "clocks are not to be set directly"}};
    if (may && how == probing::touch) {
        may = ladder.device_.restore();
    }
    if (may) {
        ladder.steps_.push_back({clock_rung::direct, "clocks are set directly", [](any_power_device& which, megahertz clock) { return which.lock(clock); },
                                 ladder.device_.original()});
    } else {
        without(may.error().message);
    }

    if (config.zeusd.empty()) {
        without("there is no zeusd");
    } else if (config.pci_address.empty()) {
        without("zeusd sets the clocks of GPUs only");
    } else if (auto const number = zeusd_device(config.zeusd, config.pci_address); !number) {
        without(number.error().message);
    } else {
        ladder.steps_.push_back({clock_rung::zeusd,
                                 "clocks are set through zeusd at " + config.zeusd,
                                 [socket = config.zeusd, id = *number](any_power_device&, megahertz clock) { return zeusd_lock(socket, id, clock); },
                                 {{{{restoration_kind::zeusd, config.zeusd, std::to_string(*number)}}}}});
    }

    auto const key = ladder.device_.key();
    if (auto const fault = error_of(config, key); !fault.empty()) {
        without(fault);
    } else {
        ladder.steps_.push_back({clock_rung::site_command,
                                 "clocks are set by the site command '" + config.lock_command + "'",
                                 [line = config.lock_command, key](any_power_device&, megahertz clock) { return run_shell_line(*filled_in(line, key, clock)); },
                                 {{{{restoration_kind::command, *filled_in(config.restore_command, key, {}), ""}}}}});
    }
    return ladder;
}

clock_rung clock_ladder::rung() const { return at_ < steps_.size() ? steps_[at_].rung : clock_rung::advise_only; }

std::string clock_ladder::message() const
{
    std::string text = at_ < steps_.size() ? steps_[at_].description : "clocks are advised only";
    for (std::size_t k = 0; k < above_.size(); ++k) {
        text += (k == 0 ? ": " : "; ") + above_[k];
    }
    return text;
}

device_result<done> clock_ladder::lock(megahertz clock)
{
    while (at_ < steps_.size()) {
        auto const result = steps_[at_].lock(device_, clock);
        if (result || !goes_down(result.error().code)) {
            return result;
        }
        above_.push_back(result.error().message);
        ++at_;
    }
    return device_error{device_error_code::no_permission, message()};
}

restoration clock_ladder::original() const
{
    restoration all;
    for (auto const& one : steps_) {
        all.ways.insert(all.ways.end(), one.back.ways.begin(), one.back.ways.end());
    }
    return all;
}

}  // namespace rheo::inline v0::power
