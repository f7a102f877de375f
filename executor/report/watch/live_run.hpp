#pragma once
// SPDX-License-Identifier: Apache-2.0

// A running job as its folder shows it, polled: it reads files only, so any host that sees the folder can follow a job. Files may be half written, lines torn,
// the run resumed, rolled back to a checkpoint, or not there yet; what cannot be read stays as it was.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/config/config.hpp"
#include "executor/records/progress.hpp"
#include "executor/records/records.hpp"
#include "executor/records/run_folder.hpp"
#include "executor/report/watch/followed_file.hpp"
#include "rheo/plan/plan.hpp"

namespace rheo::inline v0 {

/// News of a run: a recovery, a checkpoint, a validation loss, a note.
struct live_event {
    double unix_time = 0;  ///< 0: not known
    std::string text;
    bool is_note = false;
};

/// A rank that has measured its memory.
struct live_memory {
    rank_id rank;
    bytes planned;
    bytes measured;
};

enum class run_phase : unsigned char {
    absent,    ///< no records yet
    starting,  ///< no step since the last start
    running,
    ended,    ///< with its last record
    stopped,  ///< without one: no process holds the folder
};

struct live_run {
    std::string folder;
    run_phase phase = run_phase::absent;
    std::optional<run_config> config{};
    std::optional<plan> plan_in_force{};
    std::map<std::int64_t, double> losses{};  ///< by committed steps, with the step; NaN: not finite
    std::int64_t steps = 0;                   ///< committed
    std::int64_t of_steps = 0;                ///< 0: not known
    std::optional<step_record> last{};        ///< committed
    step_pace pace{};
    int ranks = 0;  ///< 0: not known
    std::optional<evaluation_record> validation{};
    std::vector<recovery_record> recoveries{};  ///< since the last launch
    std::size_t checkpoints = 0;                ///< since then
    std::optional<checkpoint_record> last_checkpoint{};
    std::optional<level_record> last_safe{};  ///< before it is published
    joules energy{};                          ///< of all attempts that are recorded
    std::optional<live_memory> fullest{};
    std::vector<live_event> events{};  ///< in their order
    std::optional<run_end> end{};      ///< of the last launch
    double started = 0;                ///< unix time of the last start; 0: not known
    double newest = 0;                 ///< of the last record
    int readings = 0;                  ///< how often its records were read from the beginning
    std::size_t strange_lines = 0;     ///< whole lines that are no records

    /// Whether no more can come.
    bool is_over() const { return phase == run_phase::ended || phase == run_phase::stopped; }
};

/// Follows a run folder.
class run_follower {
public:
    explicit run_follower(std::string folder);

    /// Reads what is new. @returns whether there was anything
    bool poll();

    live_run const& now() const { return run_; }

private:
    void take(std::string const& line);
    void take(nlohmann::json const& record);
    void start(nlohmann::json const& record);
    void read_other_files();
    void read_plan();
    void read_ranks();
    run_phase phase_now(std::optional<bool> held) const;

    live_run run_;
    followed_file metrics_;
    std::string config_text_{};
    std::string plan_text_{};
    static constexpr int most_looks = 5;
    int looks_at_ranks_ = most_looks;  ///< that are left: ranks write their files in the first step after a change
    bool was_held_ = false;            ///< so its lock is seen from this host
    bool is_all_here_ = false;         ///< all its ranks are on this host
    bool has_started_ = false;         ///< there is a start, and no step behind it
};

}  // namespace rheo::inline v0
