#pragma once
// SPDX-License-Identifier: Apache-2.0

// Profiles of layers as text: a header line, then a row per layer, from the first to the last,
// `layer,forward,backward,parameters,activations,boundary` in s, s, numbers, bytes and bytes, and for nodes of
// several devices `all_reduce_2`, `all_reduce_3`, ... in s. What parameters take in memory follows from the dtype policy. Every fault is one sentence with the file and the line, and
// a profile with a fault is rejected as a whole.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/model/footprint.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// No model has more: a file with more rows is something else.
inline constexpr std::size_t most_profiled_layers = 10'000;

namespace detail {

inline constexpr std::string_view layer_columns[] = {"layer", "forward", "backward", "parameters", "activations", "boundary"};

/// What ranks keep of a parameter, with accumulator and reduced gradient; what sums have per row is not counted.
constexpr std::int64_t state_bytes_per_parameter(dtype_policy const& policy)
{
    return 3 * size_of(policy.master) + size_of(policy.compute) + size_of(policy.accumulate) + (policy.stores_apart() ? size_of(policy.storage) : 0);
}

/// Why a header is none; empty when it is one.
template <class OnlyWhenCalled = void>
std::string fault_of_layer_header(std::vector<std::string_view> const& header)
{
    std::string const form = "a profile of layers has layer,forward,backward,parameters,activations,boundary and then all_reduce_2, all_reduce_3, ...";
    for (std::size_t c = 0; c < std::size(layer_columns); ++c) {
        if (c >= header.size() || header[c] != layer_columns[c]) {
            return "column " + std::to_string(c + 1) + " is not '" + std::string{layer_columns[c]} + "'; " + form;
        }
    }
    for (std::size_t c = std::size(layer_columns); c < header.size(); ++c) {
        if (header[c] != "all_reduce_" + std::to_string(c - std::size(layer_columns) + 2)) {
            return "column " + std::to_string(c + 1) + " is " + in_quotes(header[c]) + "; " + form;
        }
    }
    return {};
}

/// Reads a row into `layer`; returns why it is none, empty when it is one.
template <class OnlyWhenCalled = void>
std::string read_layer_row(std::vector<std::string_view> const& header, std::vector<std::string_view> const& cells, std::size_t number,
                           dtype_policy const& policy, layer_profile& layer)
{
    if (cells.size() != header.size()) {
        return std::to_string(cells.size()) + " cells under a header of " + std::to_string(header.size());
    }
    auto const wrong = [&](std::size_t c, char const* expected) { return std::string{header[c]} + " is " + in_quotes(cells[c]) + ", but " + expected; };
    std::size_t own = 0;
    if (!read_number(cells[0], own) || own != number) {
        return wrong(0, "layers come in their order from 0 on, each once");
    }
    auto const time = [&](std::size_t c, seconds& value) { return read_number(cells[c], value.count) && value.count >= 0.0 && value.count <= 2000.0; };
    auto const count = [&](std::size_t c, std::int64_t& value) { return read_number(cells[c], value) && value >= 0 && value <= std::int64_t{1} << 40; };
    char const* const not_time = "a time is a number of seconds from 0 to 2000";
    char const* const not_count = "it is a whole number from 0 to 2^40";
    if (!time(1, layer.forward)) {
        return wrong(1, not_time);
    }
    if (!time(2, layer.backward)) {
        return wrong(2, not_time);
    }
    std::int64_t parameters = 0;
    std::int64_t* const counts[] = {&parameters, &layer.per_microbatch.count, &layer.boundary.count};
    for (std::size_t k = 0; k < std::size(counts); ++k) {
        if (!count(3 + k, *counts[k])) {
            return wrong(3 + k, not_count);
        }
    }
    layer.persistent = {parameters * state_bytes_per_parameter(policy)};
    for (auto c = std::size(layer_columns); c < header.size(); ++c) {
        layer.all_reduce.emplace_back();
        if (!time(c, layer.all_reduce.back())) {
            return wrong(c, not_time);
        }
    }
    return {};
}

}  // namespace detail

/// Reads a profile of layers; `name` is the file's, for the sentence. Cost: linear.
template <class OnlyWhenCalled = void>
result<std::vector<layer_profile>> parse_layer_profile(std::string_view text, std::string_view name, dtype_policy const& policy = fp32)
{
    line_reader lines{text};
    auto const refused = [&](std::string const& why) {
        return failure{std::string{name} + ", line " + std::to_string(lines.number == 0 ? 1 : lines.number) + ": " + why};
    };
    std::string_view line;
    lines.next(line);
    auto const header = cells_of(line);
    if (auto const fault = detail::fault_of_layer_header(header); !fault.empty()) {
        return refused(fault);
    }
    std::vector<layer_profile> layers;
    while (lines.next(line)) {
        if (line.empty()) {
            continue;
        }
        layer_profile layer{};
        if (auto const fault = detail::read_layer_row(header, cells_of(line), layers.size(), policy, layer); !fault.empty()) {
            return refused(fault);
        }
        layers.push_back(layer);
        if (layers.size() > most_profiled_layers) {
            return refused("more than " + std::to_string(most_profiled_layers) + " rows; a profile has one per layer");
        }
    }
    if (layers.empty()) {
        return refused("the profile has no rows");
    }
    return layers;
}

/// The profile as text, numbers with the fewest digits that read back the same.
/// @pre all layers have as many all_reduce entries; persistent memory is that of whole parameters in this policy
template <class OnlyWhenCalled = void>
std::string to_csv(std::vector<layer_profile> const& layers, dtype_policy const& policy = fp32)
{
    auto const number = [](auto value) {
        char digits[32];
        return std::string{digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
    };
    std::string text = "layer,forward,backward,parameters,activations,boundary";
    for (std::size_t d = 0; !layers.empty() && d < layers.front().all_reduce.size(); ++d) {
        text += ",all_reduce_" + std::to_string(d + 2);
    }
    text += '\n';
    for (std::size_t l = 0; l < layers.size(); ++l) {
        auto const& layer = layers[l];
        text += std::to_string(l) + "," + number(layer.forward.count) + "," + number(layer.backward.count) + "," +
                number(layer.persistent.count / detail::state_bytes_per_parameter(policy)) + "," + number(layer.per_microbatch.count) + "," +
                number(layer.boundary.count);
        for (auto const time : layer.all_reduce) {
            text += "," + number(time.count);
        }
        text += '\n';
    }
    return text;
}

}  // namespace rheo::inline v0
