// SPDX-License-Identifier: Apache-2.0
#include "executor/report/steps_csv.hpp"

#include <array>
#include <cstdint>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rheo::inline v0 {

namespace {

using nlohmann::json;

/// Behind the committed steps and the validation loss there.
constexpr std::array columns{"unix_time_s",
                             "attempt",
                             "loss",
                             "gradient_norm",
                             "learning_rate",
                             "tokens",
                             "duration_s",
                             "ranks",
                             "tokens_per_s",
                             "recoveries",
                             "skipped",
                             "pairs_computed",
                             "energy_J",
                             "planned_duration_s",
                             "planned_energy_J",
                             "memory_bytes",
                             "state_and_activation_bytes",
                             "model_flops_per_s",
                             "mfu"};

std::string cell(json const& record, char const* key)
{
    auto const found = record.find(key);
    return found == record.end() ? "" : found->is_boolean() ? (found->get<bool>() ? "1" : "0") : found->is_number() ? found->dump() : "nan";
}

}  // namespace

std::string steps_csv(run_folder const& run)
{
    std::map<std::int64_t, std::string> validation;  // by committed steps
    for (auto const* e : run.of_kind("evaluation")) {
        validation[e->value("step", std::int64_t{0})] = cell(*e, "loss");
    }
    auto text = fmt::format("steps,validation_loss,{}\n", fmt::join(columns, ","));
    for (auto const* s : run.of_kind("step")) {
        auto const steps = s->value("step", std::int64_t{0}) + 1;
        auto const found = validation.find(steps);
        text += fmt::format("{},{}", steps, found == validation.end() ? "" : found->second);
        for (auto const* column : columns) {
            text += ',' + cell(*s, column);
        }
        text += '\n';
    }
    return text;
}

}  // namespace rheo::inline v0
