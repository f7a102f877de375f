// SPDX-License-Identifier: Apache-2.0
#include "executor/power/devices/zeusd.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include <sys/stat.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/power/devices/socket_http.hpp"

namespace rheo::inline v0::power {

namespace {

std::string token()
{
    char const* const given = std::getenv("ZEUSD_TOKEN");
    return given != nullptr ? given : "";
}

device_error refused(std::string const& socket, std::string const& action, http_reply const& reply)
{
    auto text = reply.body.substr(0, 200);
    std::replace_if(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
    auto const cause = reply.status == 401 || reply.status == 403 ? device_error_code::no_permission
                       : reply.status == 404                      ? device_error_code::not_supported
                                                                  : device_error_code::failed;
    return {cause, fmt::format("zeusd at {} refuses {} with {}{}{}", socket, action, reply.status, text.empty() ? "" : ": ", text)};
}

device_result<done> post(std::string const& socket, std::string const& action, std::string const& target)
{
    auto const reply = request(socket, {.method = "POST", .target = target, .token = token()}, seconds{10.0});
    if (!reply) {
        return reply.error();
    }
    if (reply->status != 200) {
        return refused(socket, action, *reply);
    }
    return done{};
}

}  // namespace

std::string zeusd_socket()
{
    if (char const* const given = std::getenv("ZEUSD_SOCK_PATH")) {
        return given;
    }
    std::string const usual = "/run/zeusd/zeusd.sock";
    struct stat there{};
    return ::stat(usual.c_str(), &there) == 0 && S_ISSOCK(there.st_mode) ? usual : "";
}

device_result<int> zeusd_device(std::string const& socket, std::string const& pci_address)
{
    auto const reply = request(socket, {.method = "GET", .target = "/discover", .token = token()});
    if (!reply) {
        return reply.error();
    }
    if (reply->status != 200) {
        return refused(socket, "to say what it has", *reply);
    }
    using nlohmann::json;
    auto const all = json::parse(reply->body, nullptr, false);
    auto const groups = all.is_object() ? all.value("enabled_api_groups", json::array()) : json::array();
    if (!groups.is_array() || std::find(groups.begin(), groups.end(), "gpu-control") == groups.end()) {
        return device_error{device_error_code::no_permission, "zeusd at " + socket + " does not offer gpu-control"};
    }
    if (all.contains("auth_required") && all["auth_required"] == true && token().empty()) {
        return device_error{device_error_code::no_permission, "zeusd at " + socket + " requires a token in ZEUSD_TOKEN"};
    }
    for (auto const& gpu : all.value("gpus", json::array())) {
        if (gpu.is_object() && gpu.contains("id") && gpu["id"].is_number_integer() && gpu.contains("pci_address") && gpu["pci_address"] == pci_address) {
            return gpu["id"].get<int>();
        }
    }
    return device_error{device_error_code::not_found,
                        "zeusd at " + socket + " has no device at " + (pci_address.empty() ? "an unknown PCI address" : pci_address)};
}

device_result<done> zeusd_lock(std::string const& socket, int device, megahertz clock)
{
    auto const whole = std::lround(clock.count);
    return post(socket, fmt::format("{} MHz for device {}", whole, device),
                fmt::format("/gpu/set_gpu_locked_clocks?gpu_ids={}&min_clock_mhz={}&max_clock_mhz={}&block=true", device, whole, whole));
}

device_result<done> zeusd_restore(std::string const& socket, int device)
{
    return post(socket, fmt::format("putting the clock of device {} back", device), fmt::format("/gpu/reset_gpu_locked_clocks?gpu_ids={}&block=true", device));
}

}  // namespace rheo::inline v0::power
