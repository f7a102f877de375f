// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/recovery_log.hpp"

#include "support/catch.hpp"
#include "unit/executor/train/parts/kept_records.hpp"

using namespace rheo;

namespace {

std::vector<rank_id> ranks(std::vector<int> const& numbers)
{
    std::vector<rank_id> result;
    for (int const n : numbers) {
        result.push_back(rank_id{n});
    }
    return result;
}

/// Launched so long ago, so that durations since then are known to be at least that.
launch_clock launched_before(seconds ago)
{
    return launch_clock{std::chrono::steady_clock::now() -
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>{ago.count})};
}

membership_plan plan_that_copies(std::int64_t bytes_copied, int pairs_missing)
{
    membership_plan plan;
    plan.pipelines.resize(2);
    plan.copies.certificate.moved.value = bytes{bytes_copied};
    plan.message = "any 1 rank can be lost";
    for (int use = 0; use < 2; ++use) {
        auto& missing = plan.salvage.missing.emplace_back();
        missing.use = use_id{use};
        for (int m = 0; m < pairs_missing; ++m) {
            missing.done.insert(microbatch_id{m});
        }
    }
    return plan;
}

}  // namespace

TEST_CASE("recovery_log: one loss is one record, phase by phase")
{
    kept_records kept;
    recovery_log log{kept.record, launched_before({100.0})};
    auto const before = ranks({0, 1, 2, 3});
    CHECK(log.peer_lost(before));
    CHECK_FALSE(log.peer_lost(before));  // the second to go belongs to the same record
    log.took(&recovery_record::revoke, {50.0});
    log.also_took(&recovery_record::copy, {90.0});
    log.also_took(&recovery_record::copy, {90.0});
    log.shrunk(generation_id{2}, step_id{7}, attempt_id{1}, ranks({0, 3}), {});
    log.merged(plan_that_copies(4096, 3), plan{}, {.moved = {512}, .pairs_of_step = 20, .goes_on = false});
    log.close({0.25}, 6);
    CHECK_FALSE(log.is_open());
    CHECK(log.recoveries() == 1);

    auto const lines = kept.of_kind("recovery");
    REQUIRE(lines.size() == 1);
    auto const& r = lines.front();
    CHECK(r["lost"] == std::vector<int>{1, 2});
    CHECK(r["left"] == std::vector<int>{});
    CHECK((r["generation"] == 2 && r["step"] == 7 && r["attempt"] == 1 && r["ranks"] == 2 && r["pipelines"] == 2));
    CHECK((r["copied_bytes"] == 4096 && r["moved_bytes"] == 512 && r["communicators"] == 6));
    CHECK((r["pairs_missing"] == 6 && r["pairs_salvaged"] == 14 && r["pairs_total"] == 20));
    CHECK(r["message"] == "any 1 rank can be lost");
    CHECK(r["detect_s"] >= 100.0);  // nothing was done since the launch
    CHECK((r["revoke_s"] >= 50.0 && r["revoke_s"] < 90.0));
    CHECK((r["copy_s"] >= 20.0 && r["copy_s"] < 50.0));
    CHECK(r["first_instruction_s"] == 0.25);
    CHECK(r["memory_bytes"] > 0);
}

TEST_CASE("recovery_log: detection counts from the last progress")
{
    kept_records kept;
    recovery_log log{kept.record, launched_before({100.0})};
    log.progress();
    CHECK(log.last_progress() >= seconds{100.0});
    log.peer_lost(ranks({0, 1}));
    log.shrunk(generation_id{2}, step_id{1}, attempt_id{}, ranks({0}), {});
    log.merged(plan_that_copies(0, 0), plan{}, {});
    log.close({}, 2);
    CHECK(kept.of_kind("recovery").front()["detect_s"] < 50.0);
}

TEST_CASE("recovery_log: nothing is kept where no record is open")
{
    kept_records kept;
    recovery_log log{kept.record, launched_before({100.0})};
    log.took(&recovery_record::plan, {0.0});
    log.also_took(&recovery_record::copy, {0.0});
    log.merged(plan_that_copies(4096, 1), plan{}, {.moved = {1}, .pairs_of_step = 5, .goes_on = true});
    CHECK(log.merged_at() >= seconds{100.0});
    log.regroups(generation_id{3}, step_id{4}, ranks({0, 1, 2}), "");
    log.merged(plan_that_copies(1, 0), plan{}, {});
    log.close({}, 2);
    auto const r = kept.of_kind("recovery").front();
    CHECK((r["plan_s"] == 0.0 && r["copy_s"] == 0.0 && r["copied_bytes"] == 1 && r["pairs_total"] == 0));
    CHECK((r["ranks"] == 3 && r["lost"].empty() && r["left"].empty()));
}

TEST_CASE("recovery_log: a departure and its shrink are one record")
{
    kept_records kept;
    recovery_log log{kept.record, launched_before({1.0})};
    auto const members = ranks({0, 1, 2, 3});
    log.open(members);
    log.merged(plan_that_copies(1000, 0), plan{}, {.moved = {0}, .pairs_of_step = {}, .goes_on = true});
    log.shrunk(generation_id{2}, step_id{5}, attempt_id{}, ranks({0, 1, 2}), ranks({3}));
    log.shrunk(generation_id{3}, step_id{5}, attempt_id{}, ranks({0, 2}), {});  // and one is lost before the record is closed
    log.merged(plan_that_copies(24, 0), plan{}, {});
    log.close({}, 2);
    log.open(members);
    log.merged(plan_that_copies(7, 0), plan{}, {});
    log.close({}, 2);
    auto const lines = kept.of_kind("recovery");
    REQUIRE(lines.size() == 2);
    CHECK(lines[0]["left"] == std::vector<int>{3});
    CHECK(lines[0]["lost"] == std::vector<int>{1});
    CHECK(lines[0]["copied_bytes"] == 1024);  // of both rounds
    CHECK(lines[1]["copied_bytes"] == 7);
    CHECK(log.recoveries() == 2);
}
