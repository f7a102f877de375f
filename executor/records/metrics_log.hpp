#pragma once
// SPDX-License-Identifier: Apache-2.0

// metrics.jsonl, of which one rank is the writer at a time. Every rank adds every record and keeps the newest ones; the rank that
// begins to write compares them with the end of the file and adds what is missing there, because the last writer may have died before it
// wrote what all others have seen. Records are known by what they are about (a step and its attempt, the generation of a recovery,
// the sentence of a note), not by their text: durations differ from rank to rank.
//
// A start (executor/records/records.hpp) goes back to a state. Before its line is written, the steps, redos and evaluations in the file that it repeats become
// records of kind "undone": they are kept for what they took, and no step is there twice.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/records/record_files.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

class metrics_log {
public:
    explicit metrics_log(std::string path) : path_{std::move(path)} {}

    /// @param people what they read of it
    void add(nlohmann::ordered_json const& record, std::string people = {});
    /// The record of a start. @param from the committed steps of the state to resume from
    void start(nlohmann::ordered_json const& record, step_id from);

    /// This rank writes from now on. @returns what people have perhaps not read, of the records that were missing. What cannot be written is reported and tried again 10 s later, with what is missing then
    std::vector<std::string> begin_to_write();
    void stop_writing();

private:
    struct line {
        std::string key;
        std::string text;
        std::string people;
        std::int64_t repeated_from = -1;  ///< a step, redo or evaluation: repeated by a start from this step or an earlier one
        std::optional<step_id> undoes{};  ///< a start
    };
    struct tail {
        std::vector<std::string> keys;  ///< of the records behind the last start, and of that
        bool is_cut = false;            ///< older records of the same start may be in front of it
    };

    tail read_tail();
    void keep(line kept);
    void write(line const& entry);
    void undo(step_id from);

    static constexpr std::size_t most_lines = 256;
    static constexpr std::streamoff most_bytes = std::streamoff{1} << 18;

    std::string path_;
    appended_file file_{};  ///< open while this rank writes
    bool writes_ = false;
    std::chrono::steady_clock::time_point opened_{};  ///< or tried
    bool has_end_ = false;                            ///< behind the last start
    std::deque<line> kept_{};
};

}  // namespace rheo::inline v0
