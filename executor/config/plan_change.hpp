#pragma once
// SPDX-License-Identifier: Apache-2.0

// Changes of the plan while a job runs, as settings of keys in [plan]. None of these keys decides the bits, so a job that changes its plan ends with the
// same bits. plan.changes schedules changes; `rheo reshape` requests one.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/config/config.hpp"
#include "executor/config/files/schedule_file.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The keys that a running job can change.
inline constexpr std::array<std::string_view, 5> changeable_keys{"plan.pipelines", "plan.tensor", "plan.layers", "plan.shares", "plan.spares"};

struct plan_change {
    std::int64_t step = 0;              ///< made when this many steps are committed
    std::vector<std::string> settings;  ///< "plan.tensor=2", each key once

    friend bool operator==(plan_change const&, plan_change const&) = default;
};

/// The settings with "plan." before each key, which may be left out. @returns an error for a key that cannot change or is set twice
result<std::vector<std::string>> plan_settings_of(std::span<std::string const> given);

/// Parses "100: tensor=2 pipelines=[4,4]".
result<plan_change> plan_change_of(std::string_view text);

/// The settings in one line, without "plan.": "tensor=2 pipelines=[4,4]".
std::string text_of(std::span<std::string const> settings);

/// The config after a change, without plan.changes. A change of pipelines clears plan.layers and plan.shares, a change of tensor clears plan.layers, if
/// it does not set them. @returns the first error of the new values
result<run_config> changed_config(run_config config, std::span<std::string const> settings);

/// The first error in plan.changes; empty if there is none.
std::string error_of_changes(run_config const& config);

}  // namespace rheo::inline v0
