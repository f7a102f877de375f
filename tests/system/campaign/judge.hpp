#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a run left in its folder, and what is wrong with it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cases.hpp"
#include "launch.hpp"

namespace campaign {

/// A death that a rank announced.
struct death {
    int rank;
    int step;
    int attempt;
    std::string phase;
};

struct recovery {
    int step;
    int attempt;
    std::vector<int> lost;
    std::int64_t pairs_total;
    std::int64_t pairs_salvaged;
    std::int64_t pairs_missing;
    std::vector<int> left{};  ///< in order
    std::int64_t communicators = 0;
    std::int64_t memory_bytes = 0;
};

struct evidence {
    ending end;
    std::string output{};
    bool has_result = false;
    std::string digest{};
    std::string validation{};  ///< the validation loss of report.json, as it stands there
    std::string message{};
    int exit_code = -1;                   ///< as the job wrote it
    std::int64_t pairs_by_survivors = 0;  ///< by all survivors, in the whole run
    std::vector<death> deaths{};
    std::vector<recovery> recoveries{};                      ///< in report.json
    std::map<std::pair<int, int>, std::int64_t> attempts{};  ///< (step, attempt) -> contributions of its last section
    double energy = 0;                                       ///< in report.json, J
    int planned = 0;                                         ///< steps with clocks of a plan
    std::string unreadable{};                                ///< what of the folder could not be read, and why
};

evidence read_evidence(std::filesystem::path const& folder, std::string output, ending end);

/// What every run of the job must end with.
struct reference {
    std::string digest;
    std::int64_t pairs = 0;    ///< (use, microbatch) pairs of one attempt
    std::string validation{};  ///< empty: not compared
};

/// Everything that is wrong with a run of the case. Which deaths there should have been is another question.
std::vector<std::string> faults_of(job_case const& what, evidence const& found, reference const& expected);

/// Ranks whose measured memory differs from the plan, part by part. @param ranks of a job without failures
std::vector<std::string> faults_of_memory(std::filesystem::path const& folder, int ranks);

/// The faults of the case that did not happen as they should: each must be announced by the rank, once, and be in the
/// recovery of the right attempt.
std::vector<std::string> missed(job_case const& what, evidence const& found);

}  // namespace campaign
