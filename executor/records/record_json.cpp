// SPDX-License-Identifier: Apache-2.0
#include "executor/records/record_json.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/strict_json.hpp"
#include "executor/records/recovery_phases.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::ordered_json;

std::vector<int> numbers(std::vector<rank_id> const& ranks)
{
    std::vector<int> result;
    for (auto const rank : ranks) {
        result.push_back(rank.value);
    }
    return result;
}

/// What is not finite is null.
json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

double number_of(nlohmann::json const& object, char const* key)
{
    auto const& value = member(object, key);
    if (!value.is_number() && !value.is_null()) {
        throw json_error{fmt::format("has a '{}' that is neither a number nor null", key)};
    }
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::optional<double> known_number(nlohmann::json const& object, char const* key)
{
    return object.contains(key) ? std::optional{number_of(object, key)} : std::nullopt;
}

std::vector<rank_id> ranks_of(nlohmann::json const& object, char const* key)
{
    std::vector<rank_id> ranks;
    for (auto const& rank : list_member(object, key)) {
        ranks.push_back({static_cast<std::int32_t>(integer_of(rank, key, {0, INT32_MAX}))});
    }
    return ranks;
}

}  // namespace

recovery_record recovery_of(nlohmann::json const& object)
{
    auto const small = [&](char const* key) { return static_cast<std::int32_t>(integer_member(object, key, {0, INT32_MAX})); };
    recovery_record r{};
    r.generation = {small("generation")};
    r.step = {integer_member(object, "step", {})};
    r.attempt = {small("attempt")};
    r.lost = ranks_of(object, "lost");
    r.left = ranks_of(object, "left");
    r.change = object.contains("change") ? text_member(object, "change") : std::string{};
    r.ranks = small("ranks");
    r.pipelines = small("pipelines");
    for (auto const& p : recovery_phases) {
        r.*p.duration = {number_of(object, fmt::format("{}_s", p.name).c_str())};
    }
    r.copied = {integer_member(object, "copied_bytes", {})};
    r.rounds = object.contains("copy_rounds") ? small("copy_rounds") : 1;
    r.moved = {integer_member(object, "moved_bytes", {})};
    r.pairs_total = integer_member(object, "pairs_total", {});
    r.pairs_salvaged = integer_member(object, "pairs_salvaged", {});
    r.pairs_missing = integer_member(object, "pairs_missing", {});
    r.message = text_member(object, "message");
    r.communicators = integer_member(object, "communicators", {});
    r.memory = {integer_member(object, "memory_bytes", {})};
    return r;
}

checkpoint_record checkpoint_of(nlohmann::json const& object)
{
    return {{integer_member(object, "step", {})}, {integer_member(object, "bytes", {})}, {number_of(object, "duration_s")}};
}

level_record level_of(nlohmann::json const& object)
{
    auto const level = text_member(object, "level");
    auto const found = std::find(std::begin(safety_level_names), std::end(safety_level_names), level);
    if (found == std::end(safety_level_names)) {
        throw json_error{fmt::format("has the level '{}': expected {}", level, fmt::join(safety_level_names, " or "))};
    }
    return {.step = {integer_member(object, "step", {})},
            .level = static_cast<safety_level>(found - std::begin(safety_level_names)),
            .size = {integer_member(object, "bytes", {})},
            .duration = {number_of(object, "duration_s")},
            .copies = static_cast<int>(integer_member(object, "copies", {0, INT32_MAX}))};
}

step_record step_of(nlohmann::json const& object)
{
    auto const small = [&](char const* key) { return static_cast<int>(integer_member(object, key, {0, INT32_MAX})); };
    step_record r{};
    r.step = {integer_member(object, "step", {})};
    r.attempt = {small("attempt")};
    r.loss = number_of(object, "loss");
    r.gradient_norm = number_of(object, "gradient_norm");
    r.learning_rate = number_of(object, "learning_rate");
    r.tokens = integer_member(object, "tokens", {});
    r.duration = {number_of(object, "duration_s")};
    r.ranks = small("ranks");
    r.recoveries = object.contains("recoveries") ? small("recoveries") : 0;
    r.skipped = object.contains("skipped") && truth_member(object, "skipped");
    r.redone = text_member(object, "kind") == "redo";
    r.energy = {object.contains("energy_J") ? number_of(object, "energy_J") : 0.0};
    if (object.contains("model_flops_per_s")) {
        r.model_rate = {number_of(object, "model_flops_per_s")};
    }
    if (object.contains("mfu")) {
        r.compute = {r.model_rate.count / number_of(object, "mfu")};
    }
    return r;
}

ended_run ended_run_of(nlohmann::json const& report)
{
    ended_run run;
    auto& r = run.record;
    r.exit_code = static_cast<int>(integer_member(report, "exit_code", {0, 255}));
    r.message = text_member(report, "message");
    r.steps = {integer_member(report, "steps", {})};
    r.loss = known_number(report, "loss");
    r.validation_loss = known_number(report, "validation_loss");
    r.unigram_entropy = number_of(report, "unigram_entropy");
    r.digest_known = !member(report, "digest").is_null();
    r.digest = r.digest_known ? digest_member(report, "digest") : state_digest{};
    r.steps_skipped = integer_member(report, "steps_skipped", {});
    r.evaluations_not_finite = integer_member(report, "evaluations_not_finite", {});
    r.pairs_by_survivors = integer_member(report, "pairs_by_survivors", {});
    r.sample = text_member(report, "sample");
    r.plan_drawing = text_member(report, "plan");
    if (report.contains("energy_J")) {
        r.energy = {number_of(report, "energy_J")};
        r.energy_per_step = {number_of(report, "energy_J_per_step")};
        r.energy_per_token = {number_of(report, "energy_J_per_token")};
    }
    if (report.contains("energy_missing_ranks")) {
        r.energy_missing = ranks_of(report, "energy_missing_ranks");
    }
    for (auto const& recovery : list_member(report, "recoveries")) {
        run.recoveries.push_back(recovery_of(recovery));
    }
    return run;
}

json to_json(start_record const& r)
{
    return {{"kind", "start"}, {"step", r.step.value}, {"generation", r.generation.value}, {"ranks", r.ranks}, {"from_checkpoint", r.from_checkpoint}};
}

json to_json(step_record const& r)
{
    json object{{"kind", r.redone ? "redo" : "step"},
                {"step", r.step.value},
                {"attempt", r.attempt.value},
                {"loss", number(r.loss)},
                {"gradient_norm", number(r.gradient_norm)},
                {"learning_rate", r.learning_rate},
                {"tokens", r.tokens},
                {"duration_s", r.duration.count},
                {"tokens_per_s", static_cast<double>(r.tokens) / r.duration.count},
                {"ranks", r.ranks},
                {"recoveries", r.recoveries},
                {"skipped", r.skipped},
                {"pairs_computed", r.pairs_computed}};
    if (r.model_rate.count > 0) {
        object["model_flops_per_s"] = r.model_rate.count;
    }
    if (mfu(r) > 0) {
        object["mfu"] = mfu(r);
    }
    if (r.energy.count > 0) {
        object["energy_J"] = r.energy.count;
        object["energy_J_per_token"] = r.energy.count / static_cast<double>(r.tokens);
    }
    if (r.planned_time.count > 0) {
        object["planned_duration_s"] = r.planned_time.count;
        object["planned_energy_J"] = r.planned_energy.count;
    }
    return object;
}

json to_json(evaluation_record const& r) { return {{"kind", "evaluation"}, {"step", r.step.value}, {"loss", number(r.loss)}}; }

json to_json(recovery_record const& r)
{
    json object{{"kind", "recovery"},      {"generation", r.generation.value}, {"step", r.step.value}, {"attempt", r.attempt.value},
                {"lost", numbers(r.lost)}, {"left", numbers(r.left)},          {"ranks", r.ranks},     {"pipelines", r.pipelines}};
    if (!r.change.empty()) {
        object["change"] = r.change;
    }
    for (auto const& p : recovery_phases) {
        object[fmt::format("{}_s", p.name)] = (r.*p.duration).count;
    }
    object["total_s"] = total(r).count;
    object["copied_bytes"] = r.copied.count;
    if (r.rounds > 1) {
        object["copy_rounds"] = r.rounds;
    }
    object["moved_bytes"] = r.moved.count;
    object["pairs_total"] = r.pairs_total;
    object["pairs_salvaged"] = r.pairs_salvaged;
    object["pairs_missing"] = r.pairs_missing;
    object["message"] = r.message;
    object["communicators"] = r.communicators;
    object["memory_bytes"] = r.memory.count;
    return object;
}

json to_json(checkpoint_record const& r)
{
    return {{"kind", "checkpoint"},
            {"step", r.step.value},
            {"bytes", r.size.count},
            {"duration_s", r.duration.count},
            {"bytes_per_s", static_cast<double>(r.size.count) / r.duration.count}};
}

json to_json(level_record const& r)
{
    return {{"kind", "safe"},     {"step", r.step.value},  {"level", safety_level_names[static_cast<std::size_t>(r.level)]},
            {"copies", r.copies}, {"bytes", r.size.count}, {"duration_s", r.duration.count}};
}

json to_json(final_record const& r, std::span<recovery_record const> recoveries)
{
    json object{{"kind", "end"}, {"exit_code", r.exit_code}, {"message", r.message}, {"steps", r.steps.value}};
    if (r.loss) {
        object["loss"] = number(*r.loss);
    }
    if (r.validation_loss) {
        object["validation_loss"] = number(*r.validation_loss);
    }
    object.update(json{{"unigram_entropy", r.unigram_entropy},
                       {"digest", r.digest_known ? json(to_string(r.digest)) : json(nullptr)},
                       {"steps_skipped", r.steps_skipped},
                       {"evaluations_not_finite", r.evaluations_not_finite},
                       {"pairs_by_survivors", r.pairs_by_survivors},
                       {"sample", r.sample},
                       {"plan", r.plan_drawing},
                       {"recoveries", json::array()}});
    for (auto const& recovery : recoveries) {
        object["recoveries"].push_back(to_json(recovery));
    }
    if (r.energy.count > 0) {
        object["energy_J"] = r.energy.count;
        object["energy_J_per_step"] = r.energy_per_step.count;
        object["energy_J_per_token"] = r.energy_per_token.count;
    }
    if (!r.energy_missing.empty()) {
        object["energy_missing_ranks"] = numbers(r.energy_missing);
    }
    return object;
}

}  // namespace rheo::inline v0
