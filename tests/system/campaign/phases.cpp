// SPDX-License-Identifier: Apache-2.0
#include "campaigns.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace campaign {

namespace {

/// How often something was hit, as a table of what by layout.
class hit_table {
public:
    void add(std::string const& row, std::string const& column) { ++hits_[row][column]; }
    int of(std::string const& row, std::string const& column) const
    {
        auto const r = hits_.find(row);
        auto const c = r == hits_.end() ? std::map<std::string, int>::const_iterator{} : r->second.find(column);
        return r == hits_.end() || c == r->second.end() ? 0 : c->second;
    }
    void print(std::string const& title, std::vector<std::string> const& rows, std::vector<std::string> const& columns) const
    {
        std::printf("\n%-28s", title.c_str());
        for (auto const& column : columns) {
            std::printf("%10s", column.c_str());
        }
        for (auto const& row : rows) {
            std::printf("\n%-28s", row.c_str());
            for (auto const& column : columns) {
                std::printf("%10d", of(row, column));
            }
        }
        std::printf("\n");
    }

private:
    std::map<std::string, std::map<std::string, int>> hits_;
};

}  // namespace

bool phases_hit(driver& drive)
{
    auto const expected = drive.undisturbed(4);
    auto const cases = phase_cases();
    std::mutex counting;
    hit_table by_phase;
    hit_table by_victim;
    std::map<std::string, std::int64_t> missing_at_decide;  // layout -> pairs that the single victims of step 2 took along
    std::int64_t salvaged = 0;
    std::int64_t again = 0;
    auto const run_case = [&](std::size_t i) {
        auto const& what = cases[i];
        auto run = drive.start(what);
        auto const found = run.finish();
        auto wrong = faults_of(what, found, expected);
        for (auto& message : missed(what, found)) {
            wrong.push_back(std::move(message));
        }
        std::lock_guard const lock{counting};
        auto const where = name_of(what.where);
        for (auto const& death : found.deaths) {
            bool const recovered = std::any_of(found.recoveries.begin(), found.recoveries.end(),
                                               [&](recovery const& r) { return std::find(r.lost.begin(), r.lost.end(), death.rank) != r.lost.end(); });
            if (recovered) {
                by_phase.add(where, death.phase);
                by_victim.add(where, std::to_string(death.rank));
            }
        }
        for (auto const& r : found.recoveries) {
            salvaged += r.pairs_salvaged;
            again += r.pairs_missing;
        }
        if (what.faults.size() == 1 && what.faults.front().phase == "decide" && what.faults.front().step == 2 && found.recoveries.size() == 1) {
            missing_at_decide[where] += found.recoveries.front().pairs_missing;
        }
        return run.judged(wrong);
    };
    bool good = drive.all(cases.size(), run_case);

    std::vector<std::string> layouts;
    for (auto const& what : cases) {
        if (std::find(layouts.begin(), layouts.end(), name_of(what.where)) == layouts.end()) {
            layouts.push_back(name_of(what.where));
        }
    }
    by_phase.print("hits by phase", layouts, {std::begin(phases), std::end(phases)});
    by_victim.print("hits by victim", layouts, {"0", "1", "2", "3", "4", "5"});
    std::printf("\n%zu cases; pairs kept %" PRId64 ", recomputed %" PRId64 "\n", cases.size(), salvaged, again);
    for (auto const& where : {cases.front().where, cases[static_cast<std::size_t>(cases.front().where.ranks) * std::size(phases)].where}) {
        auto const name = name_of(where);
        for (auto const phase : phases) {
            if (by_phase.of(name, std::string{phase}) == 0) {
                std::printf("FAILED  no rank died at %s of %s\n", std::string{phase}.c_str(), name.c_str());
                good = false;
            }
        }
        for (int victim = 0; victim < where.ranks; ++victim) {
            if (by_victim.of(name, std::to_string(victim)) == 0) {
                std::printf("FAILED  rank %d of %s never died\n", victim, name.c_str());
                good = false;
            }
        }
        // Who dies before its vote, when all is computed, takes along exactly its own contributions: over all ranks, one attempt.
        if (missing_at_decide[name] != expected.pairs) {
            std::printf("FAILED  the ranks of %s take along %" PRId64 " pairs one by one, but a step has %" PRId64 "\n", name.c_str(), missing_at_decide[name],
                        expected.pairs);
            good = false;
        }
    }
    return good;
}

}  // namespace campaign
