// SPDX-License-Identifier: Apache-2.0
#include "executor/power/guardian/restoration.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>

#include "executor/power/devices/nvml_device.hpp"
#include "executor/power/devices/small_file.hpp"
#include "executor/power/devices/zeusd.hpp"
#include "executor/power/guardian/shell_line.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::power {

namespace {

constexpr std::string_view names[] = {"nvml", "zeusd", "command", "write"};

device_result<done> perform(restoration_step const& step)
{
    switch (step.kind) {
    case restoration_kind::nvml: {
        auto const library = nvml_library::load(step.subject);
        if (!library) {
            return library.error();
        }
        auto device = nvml_device::open(*library, step.text);
        return device ? device->restore() : device.error();
    }
    case restoration_kind::zeusd: {
        int device = 0;
        return read_number(step.text, device) ? zeusd_restore(step.subject, device)
                                              : device_error{device_error_code::failed, "'" + step.text + "' is not a number of a device"};
    }
    case restoration_kind::command: return run_shell_line(step.subject);
    case restoration_kind::write: return write_small_file(step.subject, step.text);
    }
    return device_error{device_error_code::not_supported, "an unknown way to put clocks back"};
}

/// All steps, even after one that failed: what can be restored is. @return the first failure
device_result<done> perform(restore_path const& way)
{
    device_result<done> result{done{}};
    for (auto const& step : way) {
        if (auto const one = perform(step); !one && result) {
            result = one;
        }
    }
    return result;
}

}  // namespace

std::string to_text(restoration const& r)
{
    std::string text;
    for (std::size_t k = 0; k < r.ways.size(); ++k) {
        text += k > 0 ? "or\n" : "";
        for (auto const& step : r.ways[k]) {
            expects((step.subject + step.text).find_first_of("\t\n") == std::string::npos, "a step of a restoration has no tab and no line feed");
            text += std::string{names[static_cast<std::size_t>(step.kind)]} + "\t" + step.subject + "\t" + step.text + "\n";
        }
    }
    return text;
}

std::optional<restoration> restoration_of(std::string_view text)
{
    restoration result;
    bool opens = true;
    line_reader lines{text};
    for (std::string_view line; lines.next(line);) {
        if (line == "or") {
            opens = true;
            continue;
        }
        auto const first = line.find('\t');
        auto const second = first == line.npos ? first : line.find('\t', first + 1);
        if (second == line.npos || line.find('\t', second + 1) != line.npos) {
            return std::nullopt;
        }
        std::size_t kind = 0;
        while (kind < std::size(names) && names[kind] != line.substr(0, first)) {
            ++kind;
        }
        if (kind == std::size(names)) {
            return std::nullopt;
        }
        if (opens) {
            result.ways.emplace_back();
            opens = false;
        }
        result.ways.back().push_back(
            {static_cast<restoration_kind>(kind), std::string{line.substr(first + 1, second - first - 1)}, std::string{line.substr(second + 1)}});
    }
    return result;
}

device_result<done> perform(restoration const& r)
{
    std::string messages;
    auto code = device_error_code::failed;
    for (auto const& way : r.ways) {
        auto const one = perform(way);
        if (one) {
            return done{};
        }
        code = messages.empty() ? one.error().code : code;
        messages += (messages.empty() ? "" : "; ") + one.error().message;
    }
    return r.empty() ? device_result<done>{done{}} : device_error{code, messages};
}

}  // namespace rheo::inline v0::power
