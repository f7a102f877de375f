// SPDX-License-Identifier: Apache-2.0
#include "campaigns.hpp"
#include "watch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace campaign {

namespace {

constexpr int long_steps = 24;

struct shot {
    int rank;
    double at;  ///< of the training: 0.52 of 25 attempts is in the first attempt after the 13th has ended
};

/// Waits until the job is so far or over. Time itself would say little: how fast a job is depends on what else runs.
void wait_for(trial& run, clock::time_point begun, double progress)
{
    using namespace std::chrono_literals;
    int const attempts = static_cast<int>(progress);
    auto const until = begun + deadline;
    while (run.running().running() && attempts_of(run.run_folder()) < attempts && clock::now() < until) {
        std::this_thread::sleep_for(500us);
    }
    // The rest of it in time: an attempt took as long as those before it in the mean.
    auto const each = attempts > 0 ? (clock::now() - begun) / attempts : clock::duration{20ms};
    std::this_thread::sleep_for(std::chrono::duration_cast<clock::duration>((progress - attempts) * each));
}

}  // namespace

bool random_kills(driver& drive, std::uint64_t seed)
{
    constexpr std::size_t count = 50;
    constexpr int enough = 40;
    auto const expected = drive.undisturbed(long_steps);
    auto const ranges = shooting_ranges();

    std::mt19937_64 draw{seed};
    auto const random = [&] { return static_cast<double>(draw() >> 11) * 0x1p-53; };
    std::vector<std::vector<shot>> shots;
    for (std::size_t i = 0; i < count; ++i) {
        auto const& range = ranges[i % ranges.size()];
        if (i % 4 == 3) {  // two: in the same moment, while the others recover from the first, or at any two moments
            auto const& both = range.together[draw() % range.together.size()];
            auto const first = random();
            auto const later = random();
            shots.push_back({{both[0], first}, {both[1], i % 12 == 3 ? first : i % 12 == 7 ? first + 0.03 * later : later}});
        } else {
            shots.push_back({{static_cast<int>(draw() % static_cast<unsigned>(range.where.ranks)), random()}});
        }
        std::sort(shots.back().begin(), shots.back().end(), [](shot a, shot b) { return a.at < b.at; });
    }

    std::mutex counting;
    std::array<int, 6> hits{};
    int jobs_hit = 0;
    int kills = 0;
    int recoveries = 0;
    std::vector<int> hits_by_tenth(10);
    auto const shoot = [&](std::size_t i) {
        auto const& where = ranges[i % ranges.size()].where;
        auto run = drive.start({.where = where, .steps = long_steps});
        auto const processes = ranks_of(run);
        auto const begun = clock::now();
        for (auto const& s : shots[i]) {
            wait_for(run, begun, s.at * (long_steps + 1));
            if (run.running().running()) {  // else the number may belong to another process by now
                ::kill(processes[static_cast<std::size_t>(s.rank)], SIGKILL);
            }
        }
        auto const found = run.finish();
        auto const wrong = faults_of(run.what(), found, expected);
        std::string line;
        bool hit_any = false;
        std::lock_guard const lock{counting};
        for (auto const& s : shots[i]) {
            int step = -1;
            for (auto const& r : found.recoveries) {
                if (std::find(r.lost.begin(), r.lost.end(), s.rank) != r.lost.end()) {
                    step = r.step;
                }
            }
            ++kills;
            if (step >= 0) {
                hit_any = true;
                ++hits[static_cast<std::size_t>(s.rank)];
                ++hits_by_tenth[std::min<std::size_t>(9, static_cast<std::size_t>(10 * s.at))];
            }
            char text[96];
            std::snprintf(text, sizeof text, "  rank %d at %.3f: %s", s.rank, s.at, step < 0 ? "after the end" : ("in step " + std::to_string(step)).c_str());
            line += text;
        }
        jobs_hit += hit_any ? 1 : 0;
        recoveries += static_cast<int>(found.recoveries.size());
        std::printf("%2zu  %-28s%s\n", i, name_of(where).c_str(), line.c_str());
        std::fflush(stdout);
        return run.judged(wrong);
    };
    bool good = drive.all(count, shoot);

    std::printf("\nseed of the times %" PRIu64 ": %d kills in %zu jobs, %d of the jobs hit before their end, %d recoveries\nhits by rank:", seed, kills, count,
                jobs_hit, recoveries);
    for (auto const n : hits) {
        std::printf(" %d", n);
    }
    std::printf("\nhits by tenth of the training:");
    for (auto const n : hits_by_tenth) {
        std::printf(" %d", n);
    }
    std::printf("\n");
    if (jobs_hit < enough) {
        std::printf("FAILED  fewer than %d of %zu jobs were hit before their end\n", enough, count);
        good = false;
    }
    return good;
}

}  // namespace campaign
