#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a run shows in TensorBoard: a function of metrics.jsonl, in event files in the run folder. One rank writes at a time; each writer has a file of its
// own, named so that TensorBoard reads it after those before. A file begins with the points of the newest steps that metrics.jsonl holds, as a new session
// from the first of them: so what the last writer had not written is there, what is repeated after a checkpoint is not there twice, and no curve goes back.
// Steps of points are committed steps: the first step has its loss at 1, where a validation loss after it is, too.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/records/monitor/event_file.hpp"
#include "executor/records/record_files.hpp"

namespace rheo::inline v0 {

/// What a record adds to curves.
struct record_points {
    std::int64_t step = 0;  ///< committed
    double unix_time = 0;
    std::vector<tagged_scalar> points;
};

/// None for records of other kinds than step and evaluation. @pre expect_record takes it
std::optional<record_points> points_of(nlohmann::json const& record);

class tensorboard_log {
public:
    /// @param folder the run folder
    explicit tensorboard_log(std::string folder) : folder_{std::move(folder)} {}

    /// This rank writes from now on, or the job went back to a state: metrics.jsonl has all records so far.
    /// @returns why there are no curves from here on; else empty
    std::string begin();
    void stop() { file_ = appended_file{}; }

    /// Writes the points of a record that metrics.jsonl has got since begin().
    void add(nlohmann::json const& record);

private:
    std::string folder_;
    appended_file file_{};
};

}  // namespace rheo::inline v0
