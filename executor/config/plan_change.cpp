// SPDX-License-Identifier: Apache-2.0
#include "executor/config/plan_change.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/toml.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// Splits at spaces, except inside of a list.
std::vector<std::string> parts_of(std::string_view text)
{
    std::vector<std::string> parts;
    bool in_part = false;
    int depth = 0;
    for (auto const c : text) {
        depth += c == '[' ? 1 : c == ']' ? -1 : 0;
        if (c == ' ' && depth <= 0) {
            in_part = false;
            continue;
        }
        if (!in_part) {
            parts.emplace_back();
        }
        in_part = true;
        parts.back() += c;
    }
    return parts;
}

std::string_view key_of(std::string_view setting) { return setting.substr(0, setting.find('=')); }

bool names(std::span<std::string const> settings, std::string_view key)
{
    return std::any_of(settings.begin(), settings.end(), [&](std::string_view setting) { return key_of(setting) == key; });
}

}  // namespace

result<std::vector<std::string>> plan_settings_of(std::span<std::string const> given)
{
    std::vector<std::string> settings;
    for (auto const& text : given) {
        if (text.find('=') == std::string::npos) {
            return failure{fmt::format("'{}' is no setting; expected key=value, for example tensor=2", text)};
        }
        auto setting = text.starts_with("plan.") || key_of(text).find('.') != std::string_view::npos ? text : "plan." + text;
        auto const key = std::string{key_of(setting)};
        if (std::find(changeable_keys.begin(), changeable_keys.end(), key) == changeable_keys.end()) {
            if (auto error = unknown_key_error(key); !error.empty()) {
                return failure{fmt::format("{}; a change can set {}", error, fmt::join(changeable_keys, ", "))};
            }
            return failure{fmt::format("{} cannot change while a job runs; {} can", key, fmt::join(changeable_keys, ", "))};
        }
        if (names(settings, key)) {
            return failure{fmt::format("{} is set twice in one change", key)};
        }
        settings.push_back(std::move(setting));
    }
    if (settings.empty()) {
        return failure{fmt::format("a change sets at least one of {}", fmt::join(changeable_keys, ", "))};
    }
    return settings;
}

result<plan_change> plan_change_of(std::string_view text)
{
    plan_change change;
    auto const colon = text.find(':');
    auto const digits = text.substr(0, colon);
    auto const read = std::from_chars(digits.data(), digits.data() + digits.size(), change.step);
    if (colon == std::string_view::npos || read.ec != std::errc{} || read.ptr != digits.data() + digits.size() || change.step < 1) {
        return failure{
            fmt::format("'{}' is no change; expected the number of steps after which it is made and its settings, for example \"100: tensor=2 "
                        "pipelines=[4,4]\"",
                        text)};
    }
    auto settings = plan_settings_of(parts_of(text.substr(colon + 1)));
    if (!settings) {
        return failure{fmt::format("'{}': {}", text, settings.error())};
    }
    change.settings = *std::move(settings);
    return change;
}

std::string text_of(std::span<std::string const> settings)
{
    std::string text;
    for (auto const& setting : settings) {
        text += (text.empty() ? "" : " ") + setting.substr(std::string_view{"plan."}.size());
    }
    return text;
}

result<run_config> changed_config(run_config config, std::span<std::string const> settings)
{
    bool const regroups = names(settings, "plan.pipelines");
    if (regroups || names(settings, "plan.tensor")) {
        config.plan.layers.clear();
    }
    if (regroups) {
        config.plan.shares.clear();
    }
    config.plan.changes.clear();
    try {
        return with_settings(std::move(config), settings);
    } catch (exit_error const& error) {
        return failure{error.what()};
    }
}

std::string error_of_changes(run_config const& config)
{
    auto so_far = config;
    std::int64_t last = 0;
    for (auto const& text : config.plan.changes) {
        auto const change = plan_change_of(text);
        if (!change) {
            return fmt::format("plan.changes: {}", change.error());
        }
        if (change->step <= last) {
            return fmt::format("plan.changes: the steps of the changes must ascend, but {} follows {}", change->step, last);
        }
        if (change->step >= config.train.steps) {
            return fmt::format("plan.changes: '{}' comes after the last of train.steps = {} has begun; expected at most {}", text, config.train.steps,
                               config.train.steps - 1);
        }
        last = change->step;
        auto changed = changed_config(std::move(so_far), change->settings);
        if (!changed) {
            return fmt::format("plan.changes: '{}': {}", text, changed.error());
        }
        so_far = *std::move(changed);
    }
    return {};
}

}  // namespace rheo::inline v0
