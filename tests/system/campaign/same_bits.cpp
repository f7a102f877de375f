// SPDX-License-Identifier: Apache-2.0
#include "campaigns.hpp"

#include <cstdio>
#include <string>

namespace campaign {

bool same_bits(driver& drive)
{
    auto const expected = drive.undisturbed(4);
    auto const cases = undisturbed_cases();
    bool good = drive.all(cases.size(), [&](std::size_t i) {
        auto run = drive.start(cases[i]);
        auto const found = run.finish();
        auto wrong = faults_of(cases[i], found, expected);
        if (!found.recoveries.empty()) {
            wrong.push_back("a job without failures recovers");
        }
        if (found.pairs_by_survivors != expected.pairs * 5) {
            wrong.push_back(std::to_string(found.pairs_by_survivors) + " pairs were computed, expected " + std::to_string(expected.pairs * 5));
        }
        return run.judged(wrong);
    });
    // Digests that are always the same would agree, too.
    job_case const control{.where = cases.front().where, .seed = 2};
    auto other = drive.start(control);
    auto const found = other.finish();
    auto wrong = faults_of(control, found, {"", expected.pairs, ""});
    if (found.digest == expected.digest) {
        wrong.push_back("another seed ends with the same digest");
    }
    good = other.judged(wrong) && good;
    std::printf("%zu layouts, schedules and thread counts: %s; another seed: %s\n", cases.size(), expected.digest.c_str(), found.digest.c_str());
    return good;
}

}  // namespace campaign
