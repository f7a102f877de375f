// SPDX-License-Identifier: Apache-2.0
#include "campaigns.hpp"

#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace campaign {

bool families(driver& drive, bool all)
{
    auto const cases = family_cases(all);
    auto const expected = drive.undisturbed(4, cases.front().where.blocks);
    std::atomic<std::int64_t> salvaged{0};
    std::atomic<int> lost{0};
    bool const good = drive.all(cases.size(), [&](std::size_t i) {
        auto run = drive.start(cases[i]);
        auto const found = run.finish();
        auto wrong = faults_of(cases[i], found, expected);
        for (auto& sentence : missed(cases[i], found)) {
            wrong.push_back(std::move(sentence));
        }
        if (cases[i].faults.empty()) {
            for (auto& sentence : faults_of_memory(run.run_folder(), cases[i].where.ranks)) {
                wrong.push_back(std::move(sentence));
            }
        }
        for (auto const& r : found.recoveries) {
            salvaged += r.pairs_salvaged;
            ++lost;
        }
        return run.judged(wrong);
    });
    std::printf("%zu jobs of all schedules, %d of them lost a rank and kept %" PRId64 " pairs\n", cases.size(), lost.load(), salvaged.load());
    return good;
}

}  // namespace campaign
