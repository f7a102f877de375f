// SPDX-License-Identifier: Apache-2.0
// The account of a job's energy: whatever attempts come to nothing and whichever rank is lost, what was reported counts once.
#include "executor/records/energy_account.hpp"

#include <fstream>
#include <map>
#include <random>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

std::vector<rank_id> ranks_to(int n)
{
    std::vector<rank_id> ranks;
    for (rank_id r{0}; r.value < n; ++r) {
        ranks.push_back(r);
    }
    return ranks;
}

}  // namespace

TEST_CASE("energy_account: total equals what the devices counted")
{
    std::mt19937 random{7};
    for (int round = 0; round < 100; ++round) {
        auto members = ranks_to(2 + static_cast<int>(random() % 5));
        energy_account account{members, {{100.0}, 0}, 10};
        account.resume_from({});
        std::map<rank_id, double> counts;   // what each device has counted
        std::map<rank_id, double> settled;  // as of the last settled attempt
        double unseen = 0;
        std::vector<rank_id> missing;
        std::int64_t committed = 0;
        for (int attempt = 0; attempt < 30; ++attempt) {
            for (auto const r : members) {
                counts[r] += static_cast<double>(random() % 8);
            }
            std::vector<rank_id> lost;
            if (members.size() > 1 && random() % 6 == 0) {
                auto const which = static_cast<std::ptrdiff_t>(random() % members.size());
                members.erase(members.begin() + which);
            }
            auto const asked = account.ranks();
            std::vector<double> known;
            std::vector<double> reported;
            std::vector<rank_id> lacking;
            double drawn = 0;
            for (auto const r : asked) {
                bool const lives = std::find(members.begin(), members.end(), r) != members.end();
                bool const seen = lives || r.value % 2 == 0;  // those with odd numbers were alone on their hosts
                known.push_back(seen ? 1 : 0);
                reported.push_back(seen ? counts[r] : 0);
                drawn += seen ? counts[r] - settled[r] : 0.0;
                if (!seen) {
                    lacking.push_back(r);
                }
            }
            CHECK(account.update(members, known, reported).count == drawn);
            if (random() % 3 == 0) {
                continue;  // it came to nothing
            }
            bool const commits = random() % 2 == 0;
            committed += commits ? 1 : 0;
            CHECK(account.settled(commits) == lacking);
            for (auto const r : asked) {
                unseen += std::find(lacking.begin(), lacking.end(), r) != lacking.end() ? counts[r] - settled[r] : 0.0;
                settled[r] = counts[r];
            }
            missing.insert(missing.end(), lacking.begin(), lacking.end());
            double all = 100;
            for (auto const& [r, count] : settled) {
                all += count;
            }
            CHECK(account.total().count == all - unseen);
            CHECK(account.tokens() == 10 * committed);
            CHECK(account.missing() == missing);
        }
    }
}

TEST_CASE("energy_account: energy stays counted after a rollback")
{
    auto const members = ranks_to(1);
    energy_account account{members, {{50.0}, 30}, 10};  // records of three steps
    account.resume_from(step_id{5});                    // of five: two had no device
    std::vector<double> const known{1.0};
    double drawn = 0;
    auto const step = [&] {
        drawn += 4;
        account.update(members, known, std::vector{drawn});
        account.settled(true);
    };
    for (int i = 0; i < 4; ++i) {
        step();
    }
    CHECK(account.tokens() == 70);
    account.resume_from(step_id{7});
    CHECK(account.tokens() == 50);
    CHECK(account.total().count == 66.0);
    account.resume_from(step_id{2});
    CHECK(account.tokens() == 20);
    step();
    CHECK(account.tokens() == 30);
    CHECK(account.total().count == 70.0);
}

TEST_CASE("energy_account: earlier records: all joules, kept tokens")
{
    temporary_folder const folder;
    CHECK(energy_of_records(folder.path.string(), step_id{9}) == energy_so_far{});
    folder.write("metrics.jsonl", R"({"kind":"note","message":"energy_J"}
{"kind":"redo","step":0,"tokens":10,"energy_J":1.0}
{"kind":"step","step":0,"tokens":10,"energy_J":2.0}
{"kind":"step","step":1,"tokens":10}
{"kind":"step","step":2,"tokens":10,"energy_J":4.0}
{"kind":"step","step":3,"tokens":10,"energy_J":8.0}
{"kind":"step","step":2,"tokens":10,"energy_J":16.0}
{"kind":"step","step":2,"tokens":10,"energy_J":null}
{"kind":"step","step":"2","tokens":10,"energy_J":1000.0}
{"kind":"undone","was":"step","step":1,"tokens":10,"energy_J":32.0}
{"kind":"end","energy_J":1000.0}
{"kind":"step","step":4,"tokens":10,"energy_J":3)");
    CHECK(energy_of_records(folder.path.string(), step_id{3}) == energy_so_far{{63.0}, 20});
    CHECK(energy_of_records(folder.path.string(), step_id{4}).tokens == 30);
}
