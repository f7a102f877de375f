#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the campaign runs: which plans, who dies where. Plain values and the functions that list them.

#include <string>
#include <string_view>
#include <vector>

namespace campaign {

/// One way to lay out a job.
struct layout {
    std::string pipelines;  ///< ranks of each, "2,3"; empty: as planned
    int ranks;
    std::string shares{};  ///< microbatches of each; empty: by speed
    std::string schedule = "1f1b";
    int threads = 1;
    int min_ranks = 1;        ///< fewest ranks of a pipeline, also after a loss
    int blocks = 4;           ///< of the model, which has two layers more
    bool rendezvous = false;  ///< stages meet for every message
    int spares = 0;           ///< ranks that wait
    int failures = 1;
    bool recompute = false;  ///< activations are evicted and recomputed
    int memory_kib = 0;      ///< of a rank: as few stages as it asks for compute again
    std::string layers{};    ///< of each stage; empty: cut by the planner
    int slices = 1;          ///< of each microbatch: decides the bits
    int shards = 1;          ///< of the model's width: decides the bits; 4 come with four heads
    std::string tensor{};    ///< ranks that share a stage, of each position; empty: one
    std::string changes{};   ///< of the plan, as plan.changes has them
    bool clocks = false;     ///< an emulated device per rank, whose clocks follow the plan
};

struct fault {
    int rank;
    int step;
    int attempt;        ///< -1: whichever comes first
    std::string phase;  ///< "leaves": in order, after the step
};

struct job_case {
    layout where;
    std::vector<fault> faults{};
    int steps = 4;
    int seed = 1;
    bool survives = true;  ///< false: the last copy of a layer dies
    std::string slow{};    ///< "rank@from-to:factor": a device that is slow for some steps
};

inline constexpr std::string_view phases[] = {"forward", "backward", "reduce", "decide", "shrink", "copy", "commit", "idle"};

/// "2,3 (3,5) 1f1b 2 threads"
std::string name_of(layout const& where);
std::string name_of(job_case const& what);

/// Arguments of train_once.
std::vector<std::string> arguments_of(job_case const& what);

std::vector<job_case> undisturbed_cases();
std::vector<job_case> phase_cases();
/// Ranks that share stages are killed in each phase, in their exchanges and in a change of the plan, too.
std::vector<job_case> group_cases();
std::vector<job_case> no_replica_cases();
std::vector<job_case> family_cases(bool all);
std::vector<job_case> slice_cases(bool all, int slices);

/// Clocks that follow the plan, with a rank that is slow and one that is lost at each phase; split backwards, slices, pairs computed at once.
std::vector<job_case> clock_cases(bool all);
std::vector<job_case> clock_cases_on_slices(bool all);

/// The layouts of jobs that are killed from outside, with ranks that may die together there.
struct shooting_range {
    layout where;
    std::vector<std::vector<int>> together;
};
std::vector<shooting_range> shooting_ranges();

}  // namespace campaign
