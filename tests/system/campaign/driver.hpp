#pragma once
// SPDX-License-Identifier: Apache-2.0

// What every campaign does with its cases: starts jobs in folders of their own, several at once, has them judged, and keeps
// the folders of those that are wrong.

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "judge.hpp"
#include "launch.hpp"

namespace campaign {

/// Far above what a run takes on a loaded machine; tests do not assert times.
inline constexpr std::chrono::seconds deadline{60};

/// A job that runs or has run, in a folder of its own.
class trial {
public:
    trial(std::filesystem::path const& train_once, std::filesystem::path const& work, job_case what);

    job_case const& what() const { return what_; }
    std::filesystem::path run_folder() const { return folder_ / "run"; }
    job& running() { return *job_; }

    evidence finish(std::chrono::seconds until = deadline);

    /// Says what is wrong with the run, or forgets it.
    bool judged(std::vector<std::string> const& wrong) const;

private:
    job_case what_;
    std::filesystem::path folder_;
    std::optional<job> job_;
};

class driver {
public:
    /// Empties the work folder and writes the text that all jobs learn into it.
    driver(std::filesystem::path const& train_once, std::filesystem::path const& work);

    trial start(job_case what) const { return {train_once_, work_, std::move(what)}; }

    /// The undisturbed job on one rank: what all others must end with.
    reference undisturbed(int steps, int blocks = 4, int slices = 1, int shards = 1);

    /// Calls `each(i)` for all indices, several at once. A call returns false when something is wrong.
    bool all(std::size_t count, std::function<bool(std::size_t)> const& each) const;

private:
    std::filesystem::path train_once_;
    std::filesystem::path work_;
};

}  // namespace campaign
