#pragma once
// SPDX-License-Identifier: Apache-2.0

// The state of a run in Prometheus' text format (version 0.0.4), for a collector on the host of the rank that writes, such as node_exporter's for text files.
// Names follow Prometheus' rules: base units, counters that end in _total. Every rank adds every record, so counters continue when another rank
// writes; they begin at 0 with a launch, and what is repeated after a checkpoint counts again, so that none of them ever falls within one.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "executor/records/progress.hpp"

namespace rheo::inline v0 {

/// The value of a label between its quotes: backslashes, quotes and line ends escaped; bytes that are not UTF-8 become '?'.
std::string escaped_label(std::string_view value);

class run_gauges {
public:
    /// @param run the run folder, the label of every sample  @param steps that the run will have
    run_gauges(std::string run, std::int64_t steps);

    /// @pre expect_record takes it
    void add(nlohmann::json const& record);

    /// All metrics with their help and type.
    std::string text() const;

private:
    std::string run_;
    std::int64_t steps_;
    step_pace pace_{};
    std::map<std::string, double, std::less<>> values_;  ///< by name; none: not known yet
};

/// The file; empty name: none. What cannot be written is tried again with the next record.
class prometheus_file {
public:
    prometheus_file(std::string path, std::string run, std::int64_t steps) : path_{std::move(path)}, gauges_{std::move(run), steps} {}

    /// @param writes whether this rank replaces the file. After a step it does so at most once a second
    /// @returns why it could not be written, the first time; else empty
    std::string add(nlohmann::json const& record, bool writes);

private:
    std::string path_;
    run_gauges gauges_;
    std::chrono::steady_clock::time_point written_{};
    bool failed_ = false;
};

}  // namespace rheo::inline v0
