#pragma once
// SPDX-License-Identifier: Apache-2.0

// What benchmarks of whole trainings measure: how long the steps took that a run has recorded, and the median of such numbers.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

/// The upper one of two; 0 of none.
inline double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

/// Seconds of each step in the run folder but the first two: the first is redone with its own scales, the second warms up.
inline std::vector<double> step_durations(std::filesystem::path const& folder)
{
    std::vector<double> durations;
    std::ifstream metrics{folder / "metrics.jsonl"};
    for (std::string text; std::getline(metrics, text);) {
        auto const object = nlohmann::json::parse(text, nullptr, false);
        if (object.is_object() && object.value("kind", "") == "step" && object.value("step", 0) >= 2) {
            durations.push_back(object.at("duration_s").get<double>());
        }
    }
    return durations;
}

}  // namespace bench
