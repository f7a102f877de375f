#pragma once
// SPDX-License-Identifier: Apache-2.0

// Changes of the plan while a job runs: which pipelines its ranks form, in keys of [plan]. No such key decides the bits, so a job that changes ends with
// those of one that does not. The config's plan.changes is a schedule of changes, `rheo reshape` asks for one.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/config/config.hpp"
#include "executor/config/schedule_file.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The keys that a running job can change.
inline constexpr std::array<std::string_view, 5> changeable_keys{"plan.pipelines", "plan.tensor", "plan.layers", "plan.shares", "plan.spares"};

struct plan_change {
    std::int64_t step = 0;              ///< it is made when this many steps are committed
    std::vector<std::string> settings;  ///< "plan.tensor=2", each key once

    friend bool operator==(plan_change const&, plan_change const&) = default;
};

/// Settings as they are given, with or without "plan." before the key. @returns what is no setting of a changeable key
result<std::vector<std::string>> plan_settings_of(std::span<std::string const> given);

/// Of "100: tensor=2 pipelines=[4,4]". @returns why the text is no change
result<plan_change> plan_change_of(std::string_view text);

/// The text of settings: "tensor=2 pipelines=[4,4]".
std::string text_of(std::span<std::string const> settings);

/// The config after a change, without plan.changes. Layers and shares that the change does not name are the planner's where pipelines change, and
/// layers where tensor changes. @returns the first fault of the new values
result<run_config> changed_config(run_config config, std::span<std::string const> settings);

/// What is wrong with plan.changes; empty when nothing is.
std::string error_of_changes(run_config const& config);

}  // namespace rheo::inline v0
