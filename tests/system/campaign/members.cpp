// SPDX-License-Identifier: Apache-2.0
#include "campaigns.hpp"
#include "watch.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace campaign {

namespace {

constexpr int steps_per_change = 4;
constexpr std::chrono::seconds long_deadline{400};
constexpr int most_communicators = 19;  ///< a pair in use, eight in reserve, and the one that they are made of

/// What grows from change to change although nothing is there to make it grow.
std::vector<std::string> growth(std::vector<recovery> const& recoveries)
{
    std::vector<std::string> wrong;
    std::int64_t early = 0;
    std::int64_t late = 0;
    auto const few = recoveries.size() / 3;
    for (std::size_t i = 0; i < recoveries.size(); ++i) {
        auto const& r = recoveries[i];
        if (r.communicators < 3 || r.communicators > most_communicators) {
            wrong.push_back(std::to_string(r.communicators) + " communicators are open after change " + std::to_string(i + 1));
        }
        (i < few ? early : late) = std::max(i < few ? early : late, r.memory_bytes);
    }
#ifdef __SANITIZE_ADDRESS__
    constexpr std::int64_t room = 256 << 20;  // of what was freed this sanitizer keeps so much; leaks it finds by itself
#else
    constexpr std::int64_t room = 8 << 20;  // fewer ranks hold more layers each: less than this, all of them
#endif
    std::printf("memory of the rank that speaks: at most %" PRId64 " KiB in the first third of the changes, %" PRId64 " KiB later\n", early / 1024,
                late / 1024);
    if (early <= 0 || late > early + room) {
        wrong.push_back("the memory grows from " + std::to_string(early) + " to " + std::to_string(late) + " bytes");
    }
    return wrong;
}

}  // namespace

bool members_change(driver& drive, std::uint64_t seed, int ranks, int changes)
{
    int const steps = steps_per_change * (changes + 1);
    auto const expected = drive.undisturbed(steps);

    std::mt19937_64 draw{seed};
    std::vector<int> order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[draw() % i]);
    }
    // At points that every rank comes to, those that wait included: before a vote, behind it, between two steps.
    constexpr std::array moments{"decide", "commit", "idle"};
    job_case what{.where = {.pipelines = "", .ranks = ranks, .min_ranks = 2, .spares = 2, .failures = 2}, .steps = steps};
    std::vector<int> killed;
    std::vector<int> left;
    for (int i = 0; i < changes; ++i) {
        auto const rank = order[static_cast<std::size_t>(i)];
        bool const leaves = i == 0 || (i > 1 && draw() % 3 == 0);
        (leaves ? left : killed).push_back(rank);
        what.faults.push_back({rank, 1 + steps_per_change * i + static_cast<int>(draw() % 3), -1, leaves ? "leaves" : moments[draw() % moments.size()]});
    }
    auto run = drive.start(what);
    auto const found = run.finish(long_deadline);
    auto wrong = faults_of(what, found, expected);
    if (attempts_of(run.run_folder()) != steps + 1) {
        wrong.push_back(std::to_string(attempts_of(run.run_folder())) + " attempts are recorded, expected " + std::to_string(steps + 1) + ", each once");
    }
    std::vector<int> lost_in_job;
    std::vector<int> left_in_job;
    for (auto const& r : found.recoveries) {
        lost_in_job.insert(lost_in_job.end(), r.lost.begin(), r.lost.end());
        left_in_job.insert(left_in_job.end(), r.left.begin(), r.left.end());
    }
    if (lost_in_job != killed || left_in_job != left) {
        wrong.push_back("the recoveries name other ranks than those that were killed or drained, or in another order");
    }
    auto const grown = growth(found.recoveries);
    wrong.insert(wrong.end(), grown.begin(), grown.end());
    std::printf("seed %" PRIu64 ": %d ranks, %zu killed, %zu left in order, %d steps in %.1f s\n", seed, ranks, killed.size(), left.size(), steps,
                found.end.duration.count());
    return run.judged(wrong);
}

}  // namespace campaign
