#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a run left behind, read back: for the report and for people's own tools. Torn ends of files are
// normal (a rank was killed) and leave out what is not whole.

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rheo/plan/plan.hpp"
#include "rheo/trace/event.hpp"
#include "runtime/config.hpp"

namespace rheo::inline v0 {

struct run_folder {
    run_config config;
    std::vector<nlohmann::json> metrics;  ///< one object per whole line of metrics.jsonl
    nlohmann::json report;                ///< report.json; null when the run has not ended
    std::vector<nlohmann::json> ranks;    ///< ranks/<r>.json, by rank
    std::vector<trace_event> events;      ///< of all ranks, by rank and start
    std::optional<plan> first;            ///< plan.json, the plan that the run began with

    /// The metrics of one kind, in their order.
    std::vector<nlohmann::json const*> of_kind(std::string const& kind) const;
};

/// Reads all of it. @throws records_error when the folder holds no run
run_folder read_run_folder(std::string const& folder);

}  // namespace rheo::inline v0
