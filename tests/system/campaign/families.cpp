// SPDX-License-Identifier: Apache-2.0
#include "campaigns.hpp"

#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace campaign {

namespace {

bool all_equal(driver& drive, std::vector<job_case> const& cases, std::string const& what)
{
    auto const& first = cases.front().where;
    auto const expected = drive.undisturbed(4, first.blocks, first.slices, first.shards);
    std::atomic<std::int64_t> salvaged{0};
    std::atomic<int> lost{0};
    bool const good = drive.all(cases.size(), [&](std::size_t i) {
        auto run = drive.start(cases[i]);
        auto const found = run.finish();
        auto wrong = faults_of(cases[i], found, expected);
        for (auto& message : missed(cases[i], found)) {
            wrong.push_back(std::move(message));
        }
        if (cases[i].faults.empty()) {
            for (auto& message : faults_of_memory(run.run_folder(), cases[i].where.ranks)) {
                wrong.push_back(std::move(message));
            }
        }
        for (auto const& r : found.recoveries) {
            salvaged += r.pairs_salvaged;
            ++lost;
        }
        return run.judged(wrong);
    });
    std::printf("%zu jobs of %s, %d of them lost a rank and kept %" PRId64 " pairs\n", cases.size(), what.c_str(), lost.load(), salvaged.load());
    return good;
}

}  // namespace

bool families(driver& drive, bool all) { return all_equal(drive, family_cases(all), "all schedules"); }

bool groups(driver& drive) { return all_equal(drive, group_cases(), "ranks that share stages"); }

bool slices(driver& drive, bool all)
{
    bool good = all_equal(drive, slice_cases(all, 2), "schedules on 2 slices");
    return all_equal(drive, slice_cases(all, 4), "schedules on 4 slices") && good;
}

bool clocks(driver& drive, bool all)
{
    bool good = all_equal(drive, clock_cases(all), "clocks that follow the plan");
    return all_equal(drive, clock_cases_on_slices(all), "the same on 2 slices") && good;
}

}  // namespace campaign
