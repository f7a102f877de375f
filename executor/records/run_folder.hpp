#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a run left behind, read back: for the report and for people's own tools. Torn ends of files are
// normal (a rank was killed) and leave out what is not whole; a record that says something else than records do is rejected.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/config/config.hpp"
#include "executor/records/records.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/trace/event.hpp"

namespace rheo::inline v0 {

struct run_folder {
    run_config config;
    std::vector<nlohmann::json> metrics;  ///< one object per whole line of metrics.jsonl
    nlohmann::json report;                ///< report.json; null when the run has not ended
    std::vector<nlohmann::json> ranks;    ///< ranks/<r>.json, by rank
    std::vector<trace_event> events;      ///< of all ranks, by rank and start
    std::vector<std::string> left_out;    ///< a sentence for each trace of which only the beginning could be read
    std::optional<plan> first;            ///< plan.json, the plan that the run began with

    /// The metrics of one kind, in their order.
    std::vector<nlohmann::json const*> of_kind(std::string const& kind) const;
};

/// Traces are most of what a run leaves, and need not be read for its figures.
enum class traces : unsigned char { read, leave };

/// Reads all of it. @throws exit_error when the folder holds no run; exit_error; exit_error for its config.toml and plan.json
run_folder read_run_folder(std::string const& folder, traces with = traces::read);

/// The plan of a run's steps in a generation. @throws exit_error when the run has not kept it
plan plan_of_generation(std::string const& folder, generation_id generation);

/// report.json, or another file with what it holds. @throws exit_error
ended_run read_report(std::string const& path);

/// How a run ended, as its report says.
struct run_end {
    int exit_code = 0;
    std::string message;
    std::int64_t steps = 0;  ///< committed
};

/// None when the folder has no report: the run continues, or all its ranks were lost. @throws exit_error
std::optional<run_end> how_it_ended(std::string const& folder);

}  // namespace rheo::inline v0
