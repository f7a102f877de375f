// SPDX-License-Identifier: Apache-2.0
#include "executor/records/monitor/prometheus_file.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "executor/config/text_file.hpp"
#include "rheo/trace/chakra/utf8.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;

struct metric {
    char const* name;
    char const* type;
    char const* help;
};

constexpr metric metrics[] = {
    {"rheo_running", "gauge", "1 while the job runs, 0 after its end."},
    {"rheo_exit_code", "gauge", "Exit code of the job, after its end."},
    {"rheo_last_record_timestamp_seconds", "gauge", "Unix time of the newest record."},
    {"rheo_start_timestamp_seconds", "gauge", "Unix time of the last start, or of the return to a checkpoint."},
    {"rheo_target_steps", "gauge", "Steps that the run will have."},
    {"rheo_committed_steps", "gauge", "Steps in the state of the run."},
    {"rheo_remaining_seconds", "gauge", "Expected time to the last step, by the pace of the newest steps."},
    {"rheo_ranks", "gauge", "Ranks of the job."},
    {"rheo_pipelines", "gauge", "Pipelines since the newest recovery."},
    {"rheo_train_loss", "gauge", "Training loss of the newest step, in nats per token."},
    {"rheo_validation_loss", "gauge", "Newest validation loss, in nats per token."},
    {"rheo_gradient_norm", "gauge", "Norm of the gradient of the newest step."},
    {"rheo_learning_rate", "gauge", "Learning rate of the newest step."},
    {"rheo_tokens_per_second", "gauge", "Tokens per second of the newest step."},
    {"rheo_model_flops_per_second", "gauge", "Model flops per second of the newest step."},
    {"rheo_mfu_ratio", "gauge", "Model flops utilization of the newest step, by the compute that plan.cluster describes."},
    {"rheo_step_duration_seconds", "gauge", "Time of the newest step."},
    {"rheo_process_resident_memory_bytes", "gauge", "Resident memory of the process of the reporting rank."},
    {"rheo_state_and_activation_bytes", "gauge", "State, gradients and activations that the reporting rank holds."},
    {"rheo_joules_per_token", "gauge", "Energy of the newest step by its tokens."},
    {"rheo_checkpoint_steps", "gauge", "Committed steps in the newest checkpoint."},
    {"rheo_safe_steps", "gauge", "Committed steps in the newest checkpoint that is safe, at any level."},
    {"rheo_checkpoint_bytes", "gauge", "Size of the newest checkpoint."},
    {"rheo_steps_total", "counter", "Steps committed by this launch; repeated ones count again."},
    {"rheo_step_seconds_total", "counter", "Time of these steps."},
    {"rheo_tokens_total", "counter", "Tokens of these steps."},
    {"rheo_skipped_steps_total", "counter", "Those of these steps with a loss or gradient that is not finite."},
    {"rheo_redone_attempts_total", "counter", "Attempts of steps that were not committed."},
    {"rheo_energy_joules_total", "counter", "Energy of all ranks in all attempts."},
    {"rheo_recoveries_total", "counter", "Changes of the members or of the plan."},
    {"rheo_recovery_seconds_total", "counter", "Time of these changes."},
    {"rheo_lost_ranks_total", "counter", "Ranks that were lost."},
    {"rheo_checkpoints_total", "counter", "Checkpoints that were completed."},
    {"rheo_checkpoint_seconds_total", "counter", "Time of these checkpoints, beside the training."},
};

double number(json const& record, char const* key)
{
    auto const found = record.find(key);
    return found != record.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

/// As the format has it; whole numbers without a fraction.
std::string value_text(double value)
{
    return std::isnan(value)                                      ? "NaN"
           : std::isinf(value)                                    ? (value > 0 ? "+Inf" : "-Inf")
           : std::abs(value) < 1e15 && value == std::trunc(value) ? fmt::format("{:.0f}", value)
                                                                  : fmt::format("{}", value);
}

}  // namespace

std::string escaped_label(std::string_view value)
{
    std::string escaped;
    while (!value.empty()) {
        auto const length = detail::utf8_length(value);
        switch (auto const c = value.front()) {
        case '\\':
        case '"': (escaped += '\\') += c; break;
        case '\n': escaped += "\\n"; break;
        default: escaped += length > 0 ? value.substr(0, length) : "?";
        }
        value.remove_prefix(length > 0 ? length : 1);
    }
    return escaped;
}

run_gauges::run_gauges(std::string run, std::int64_t steps) : run_{std::move(run)}, steps_{steps}
{
    values_["rheo_running"] = 1;
    values_["rheo_target_steps"] = static_cast<double>(steps);
    for (auto const& m : metrics) {
        if (std::string_view{m.type} == "counter" && m.name != std::string_view{"rheo_energy_joules_total"}) {
            values_[m.name] = 0;
        }
    }
}

void run_gauges::add(json const& record)
{
    auto const kind = record.value("kind", "");
    auto const set = [&](char const* name, char const* key) {
        if (record.contains(key)) {
            values_[name] = number(record, key);
        }
    };
    auto const count = [&](char const* name, double amount) { values_[name] += std::isfinite(amount) ? amount : 0.0; };
    set("rheo_last_record_timestamp_seconds", "unix_time_s");
    set("rheo_committed_steps", "steps");
    if (kind == "step" || kind == "redo") {
        set("rheo_ranks", "ranks");
        set("rheo_process_resident_memory_bytes", "memory_bytes");
        set("rheo_state_and_activation_bytes", "state_and_activation_bytes");
        if (record.contains("energy_J")) {
            count("rheo_energy_joules_total", number(record, "energy_J"));
        }
        if (kind == "redo") {
            count("rheo_redone_attempts_total", 1);
            return;
        }
        set("rheo_train_loss", "loss");
        set("rheo_gradient_norm", "gradient_norm");
        set("rheo_learning_rate", "learning_rate");
        set("rheo_tokens_per_second", "tokens_per_s");
        set("rheo_model_flops_per_second", "model_flops_per_s");
        set("rheo_mfu_ratio", "mfu");
        set("rheo_joules_per_token", "energy_J_per_token");
        count("rheo_steps_total", 1);
        count("rheo_step_seconds_total", number(record, "duration_s"));
        count("rheo_tokens_total", number(record, "tokens"));
        count("rheo_skipped_steps_total", record.value("skipped", false) ? 1 : 0);
        set("rheo_step_duration_seconds", "duration_s");
        if (auto const duration = number(record, "duration_s"); std::isfinite(duration)) {
            pace_.add({duration});
        }
        values_["rheo_remaining_seconds"] = pace_.left(steps_ - record.value("steps", std::int64_t{0})).count;
    } else if (kind == "evaluation") {
        set("rheo_validation_loss", "loss");
    } else if (kind == "start") {
        set("rheo_start_timestamp_seconds", "unix_time_s");
        set("rheo_ranks", "ranks");
        values_["rheo_running"] = 1;
        values_.erase("rheo_exit_code");
    } else if (kind == "recovery") {
        set("rheo_ranks", "ranks");
        set("rheo_pipelines", "pipelines");
        count("rheo_recoveries_total", 1);
        count("rheo_recovery_seconds_total", number(record, "total_s"));
        count("rheo_lost_ranks_total", record.contains("lost") ? static_cast<double>(record["lost"].size()) : 0);
    } else if (kind == "safe") {
        set("rheo_safe_steps", "step");
    } else if (kind == "checkpoint") {
        set("rheo_checkpoint_steps", "step");
        set("rheo_safe_steps", "step");
        set("rheo_checkpoint_bytes", "bytes");
        count("rheo_checkpoints_total", 1);
        count("rheo_checkpoint_seconds_total", number(record, "duration_s"));
    } else if (kind == "end") {
        set("rheo_exit_code", "exit_code");
        values_["rheo_running"] = 0;
        values_["rheo_remaining_seconds"] = 0;
    }
}

std::string run_gauges::text() const
{
    auto const label = escaped_label(run_);
    std::string result;
    for (auto const& m : metrics) {
        if (auto const value = values_.find(m.name); value != values_.end()) {
            result += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0}{{run=\"{3}\"}} {4}\n", m.name, m.help, m.type, label, value_text(value->second));
        }
    }
    return result;
}

std::string prometheus_file::add(json const& record, bool writes)
{
    if (path_.empty()) {
        return {};
    }
    gauges_.add(record);
    auto const now = std::chrono::steady_clock::now();
    bool const is_step = record.value("kind", "") == "step";
    if (!writes || (is_step && now - written_ < std::chrono::seconds{1})) {
        return {};
    }
    written_ = now;
    try {
        write_whole(path_, gauges_.text());
        failed_ = false;
    } catch (exit_error const& error) {  // a training does not end for it
        if (!std::exchange(failed_, true)) {
            return fmt::format("{}; training continues without it", error.what());
        }
    }
    return {};
}

}  // namespace rheo::inline v0
