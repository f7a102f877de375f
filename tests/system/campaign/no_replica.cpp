// SPDX-License-Identifier: Apache-2.0
#include "campaigns.hpp"

#include <cstdio>
#include <mutex>
#include <utility>

namespace campaign {

bool no_replica(driver& drive)
{
    auto const cases = no_replica_cases();
    bool const good = drive.all(cases.size(), [&](std::size_t i) {
        auto run = drive.start(cases[i]);
        auto const found = run.finish();
        auto wrong = faults_of(cases[i], found, {});
        for (auto& message : missed(cases[i], found)) {
            wrong.push_back(std::move(message));
        }
        if (wrong.empty()) {
            static std::mutex one_at_a_time;
            std::lock_guard const lock{one_at_a_time};
            std::printf("exit code 6  %-44s %s\n", name_of(cases[i]).c_str(), found.message.c_str());
        }
        return run.judged(wrong);
    });
    std::printf("%zu cases\n", cases.size());
    return good;
}

}  // namespace campaign
