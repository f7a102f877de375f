// SPDX-License-Identifier: Apache-2.0
#include "executor/config/data_sources.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "executor/config/entry_text.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::inline v0 {

result<std::vector<weighted_path>> data_sources(std::span<std::string const> entries)
{
    std::vector<weighted_path> sources;
    for (auto const& entry : entries) {
        auto const colon = std::min(entry.find(':'), entry.size());
        auto const weight = number_in<double>(std::string_view{entry}.substr(0, colon));
        auto const path = colon < entry.size() ? without_spaces(std::string_view{entry}.substr(colon + 1)) : std::string_view{};
        if (!weight || !(*weight > 0 && std::isfinite(*weight)) || path.empty()) {
            return failure{fmt::format("{} is no source; expected WEIGHT: PATH with a weight above 0, e.g. 0.7: texts/web", in_quotes(entry))};
        }
        sources.push_back({*weight, std::string{path}});
    }
    return sources;
}

std::string error_of_data(data_config const& data)
{
    if (!data.sources.empty() && !data.paths.empty()) {
        return "data.sources gives the files and folders in place of data.paths; set one of them";
    }
    double sum = 0;
    for (auto const& source : data.sources) {
        sum += source.weight;
    }
    for (auto const& source : data.sources) {
        if (source.weight * sequences_of_mix < sum) {
            return fmt::format("data.sources has {} with a weight of {} among {}; each source needs at least one sequence of {}", in_quotes(source.path),
                               source.weight, sum, sequences_of_mix);
        }
    }
    return {};
}

}  // namespace rheo::inline v0
