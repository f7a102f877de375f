// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include <algorithm>
#include <cstdio>

#include "../slowest_rank.hpp"

void compare(bench_run const& run, std::string const& what, double bytes, std::vector<way> ways)
{
    for (int i = 0; i < run.repeats; ++i) {
        for (auto& w : ways) {
            w.best = std::min(w.best, bench::seconds_of_slowest(w.work));
        }
    }
    auto const& baseline = ways.back();
    for (auto const& w : ways) {
        auto const rate = bytes / w.best / 1e9;
        auto const share = baseline.best / w.best;
        if (run.self != 0) {
            continue;
        }
        if (run.json) {
            std::printf(R"({"bench": "reshard", "case": "%s", "way": "%s", "gigabytes_per_s": %.4f, "baseline": "%s", "of_baseline": %.4f})"
                        "\n",
                        what.c_str(), w.name.c_str(), rate, baseline.name.c_str(), share);
        } else {
            std::printf("%-36s %-24s %8.2f GB/s  %6.1f %% of %s\n", what.c_str(), w.name.c_str(), rate, 100.0 * share, baseline.name.c_str());
        }
    }
}
