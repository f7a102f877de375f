#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a run leaves behind: the effective config, metrics.jsonl, the trace and the final report in the
// run folder, and a live progress line for people. Every rank records its own trace events; the rank
// that speaks for the job (the lowest one alive, `speaker`) writes metrics and the progress line.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/tensor/digest.hpp"
#include "rheo/topology/index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"
#include "runtime/config.hpp"

namespace rheo::inline v0 {

struct step_record {
    step_id step;
    attempt_id attempt;
    double loss = 0;             ///< nats per token, mean of the step
    double gradient_norm = 0;
    double learning_rate = 0;
    std::int64_t tokens = 0;
    seconds duration;
    int ranks = 0;
    int recoveries = 0;          ///< so far
    bool skipped = false;
};

struct evaluation_record {
    step_id step;
    double loss = 0;             ///< nats per token of the validation split
};

/// How long each part of a recovery took on the speaker, what was lost and what was salvaged.
struct recovery_record {
    generation_id generation;    ///< the one that begins
    step_id step;
    std::vector<rank_id> lost;
    int ranks = 0;               ///< that go on
    int pipelines = 0;
    seconds detect, revoke, decide, shrink, link, tell, plan, copy, merge, first_instruction;
    std::int64_t copied_bytes = 0;       ///< parameters and moments, all ranks
    std::int64_t moved_bytes = 0;        ///< accumulators, all ranks
    std::int64_t pairs_total = 0;        ///< (use, microbatch) pairs of the step
    std::int64_t pairs_salvaged = 0;     ///< of these, those that need not be computed again
    std::int64_t pairs_missing = 0;
};

struct final_record {
    int exit_code = 0;
    std::string sentence;        ///< why it ended
    step_id steps;
    double loss = 0;
    double validation_loss = 0;
    double unigram_entropy = 0;
    state_digest digest;
    bool digest_known = false;
    std::int64_t pairs_computed = 0;     ///< weight-gradient contributions of all surviving ranks
    std::string sample;          ///< generated text
    std::string plan_drawing;
};

class records {
public:
    /// @param folder the run folder (created); @param quiet no progress line (--json).
    records(std::string folder, rank_id rank, bool trace, bool quiet);
    ~records();
    records(records&&) noexcept;
    records& operator=(records&&) noexcept;

    void speaker(bool is_speaker);                 ///< may change after every recovery
    void event(trace_event const& event);
    void step(step_record const& record);          ///< also flushes this rank's trace
    void evaluation(evaluation_record const& record);
    void recovery(recovery_record const& record);
    void note(std::string_view sentence);          ///< one line for people, also kept in the folder
    void flush();                                  ///< everything recorded is in the files when it returns
    void finish(final_record const& record);       ///< speaker: report.json, merged trace.json, the final table

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace rheo::inline v0
