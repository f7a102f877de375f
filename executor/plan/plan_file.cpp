// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/plan_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "executor/config/config.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/plan/plan_json.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

[[noreturn]] void refuse(std::string const& path, std::string const& message) { throw exit_error{exit_code::usage, fmt::format("{}: {}", path, message)}; }

}  // namespace

plan read_plan_file(std::string const& path, schedule_finder const& find)
{
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    std::ostringstream text;
    text << file.rdbuf();
    auto const whole = [&] {
        try {
            return parse_strict(text.str(), 8);
        } catch (json_error const&) {
            refuse(path, "no valid JSON; expected a plan as rheo plan --json prints it");
        }
    }();
    try {
        return plan_from_json(whole, find);
    } catch (json_error const& error) {
        refuse(path, error.what());
    }
}

}  // namespace rheo::inline v0
