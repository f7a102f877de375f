// SPDX-License-Identifier: Apache-2.0
#include "executor/config/data_sources.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "rheo/units/in_quotes.hpp"

namespace rheo::inline v0 {

namespace {

constexpr double least_part = 1.0 / 4096;  // source_mix::cycle

std::string_view without_spaces(std::string_view text)
{
    auto const begin = std::min(text.find_first_not_of(" \t"), text.size());
    text.remove_prefix(begin);
    auto const end = text.find_last_not_of(" \t");
    return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

}  // namespace

result<std::vector<weighted_path>> data_sources(std::span<std::string const> entries)
{
    std::vector<weighted_path> sources;
    for (auto const& entry : entries) {
        auto const colon = std::min(entry.find(':'), entry.size());
        auto const weight = without_spaces(std::string_view{entry}.substr(0, colon));
        auto const path = colon < entry.size() ? without_spaces(std::string_view{entry}.substr(colon + 1)) : std::string_view{};
        double value = 0;
        auto const [end, error] = std::from_chars(weight.data(), weight.data() + weight.size(), value);
        if (error != std::errc{} || end != weight.data() + weight.size() || !(value > 0 && std::isfinite(value)) || path.empty()) {
            return failure{fmt::format("{} is no source; expected WEIGHT: PATH with a weight above 0, e.g. 0.7: texts/web", in_quotes(entry))};
        }
        sources.push_back({value, std::string{path}});
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
        if (source.weight < least_part * sum) {
            return fmt::format("data.sources has {} with a weight of {} among {}; each source needs at least one sequence of 4096", in_quotes(source.path),
                               source.weight, sum);
        }
    }
    return {};
}

}  // namespace rheo::inline v0
