// SPDX-License-Identifier: Apache-2.0
#include "executor/records/record_line.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;

constexpr std::string_view texts[] = {"kind", "was", "message", "host", "sample", "plan"};
constexpr std::string_view whole_numbers[] = {
    "step", "attempt", "generation", "ranks", "pipelines", "tokens", "bytes", "rank", "pid", "exit_code", "steps", "steps_skipped", "evaluations_not_finite"};
constexpr std::string_view lists_of_ranks[] = {"lost", "left"};
constexpr std::string_view numbers[] = {"loss", "gradient_norm", "learning_rate", "validation_loss", "unigram_entropy", "mfu"};

template <class Names>
bool is_one_of(Names const& names, std::string_view key)
{
    return std::find(std::begin(names), std::end(names), key) != std::end(names);
}

/// Every whole number that a record holds is exact as a double, too.
constexpr integer_limits whole{0, std::int64_t{1} << 53};
constexpr integer_limits a_rank{0, INT32_MAX};

void expect_member(std::string const& key, json const& value)
{
    if (is_one_of(texts, key) && !value.is_string()) {
        throw json_error{fmt::format("has a '{}' that is not a text", key)};
    }
    if ((key == "skipped" || key == "from_checkpoint") && !value.is_boolean()) {
        throw json_error{fmt::format("has a '{}' that is neither true nor false", key)};
    }
    if (key == "digest" && !value.is_string() && !value.is_null()) {
        throw json_error{"has a 'digest' that is neither a text nor null"};
    }
    if (is_one_of(whole_numbers, key) || key.ends_with("_bytes") || key.starts_with("pairs_")) {
        integer_of(value, key.c_str(), key == "rank" || key == "attempt" ? a_rank : whole);
    }
    if (is_one_of(lists_of_ranks, key)) {
        if (!value.is_array()) {
            throw json_error{fmt::format("has a '{}' that is not a list", key)};
        }
        for (auto const& rank : value) {
            integer_of(rank, key.c_str(), a_rank);
        }
    }
    bool const has_unit = key.ends_with("_s") || key.ends_with("_J") || key.find("_J_per_") != key.npos;
    if ((is_one_of(numbers, key) || has_unit) && !value.is_number() && !value.is_null()) {  // null: it was not finite
        throw json_error{fmt::format("has a '{}' that is neither a number nor null", key)};
    }
}

}  // namespace

void expect_record(json const& object)
{
    if (!object.is_object()) {
        throw json_error{"is not an object"};
    }
    for (auto const& [key, value] : object.items()) {
        expect_member(key, value);
    }
}

std::optional<json> record_of(std::string_view line)
{
    auto object = json::parse(line.begin(), line.end(), nullptr, false);
    if (object.is_discarded()) {
        return std::nullopt;
    }
    expect_record(object);
    return object;
}

}  // namespace rheo::inline v0
