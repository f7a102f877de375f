// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/clock_follower.hpp"

#include "rheo/plan/pipeline_schedule.hpp"
#include "support/catch.hpp"
#include "unit/executor/train/parts/kept_records.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr clock_request request{.costs = {.blocking = {80.0}}};

/// Four layers, the last of them as long as the others together: stages before it have time for a lower clock.
profile four_layers()
{
    profile measured;
    for (int layer = 0; layer < 4; ++layer) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double const work = (kind == instruction_kind::forward ? 1.0 : 2.0) * (layer == 3 ? 3.0 : 1.0);
            measured.rows.push_back({rank_id{-1}, stage_id{layer}, kind, {1400.0}, milliseconds(10.0 * work), {4.0 * work}});
            measured.rows.push_back({rank_id{-1}, stage_id{layer}, kind, {1000.0}, milliseconds(13.0 * work), {2.9 * work}});
        }
    }
    return measured;
}

/// 1F1B on one pipeline of four ranks, three microbatches.
plan four_stages()
{
    plan p;
    p.schedule = one_f_one_b{};
    auto& pipeline = p.pipelines.emplace_back();
    for (int s = 0; s <= 4; ++s) {
        pipeline.cuts.push_back(layer_id{s});
    }
    for (int s = 0; s < 4; ++s) {
        pipeline.stages.push_back({rank_id{s}});
    }
    p.work = deal(std::vector<int>{3});
    return p;
}

std::vector<rank_id> const members{rank_id{0}, rank_id{1}, rank_id{2}, rank_id{3}};

}  // namespace

TEST_CASE("clock_follower: without frontiers it chooses nothing")
{
    kept_records kept;
    clock_follower none{nullptr, kept.record, launch_clock{}};
    CHECK_FALSE((none.follows() || none.must_choose() || none.must_precompute()));
    std::vector<double> const slowness{1, 1, 1, 9};
    CHECK_FALSE((none.observe_slowness(members, slowness, {}) || none.observe_slowness(members, slowness, {})));
    none.report_precomputed(true);
    CHECK(none.carried_to(schedule_of(four_stages(), 0).compute.rows[0], 4).empty());
    CHECK(kept.notes().empty());
}

TEST_CASE("clock_follower: chosen clocks are the library's, noted once")
{
    kept_records kept;
    frontier_cache frontiers{four_layers(), request};
    clock_follower follower{&frontiers, kept.record, launch_clock{}};
    auto const p = four_stages();
    REQUIRE(follower.must_choose());
    follower.choose(p, rank_id{0}, false, true);  // quiet
    CHECK(kept.notes().empty());
    follower.choose(p, rank_id{0}, false, false);
    follower.choose(p, rank_id{0}, false, false);
    CHECK_FALSE(follower.must_choose());
    frontier_cache other{four_layers(), request};
    CHECK(follower.chosen().clocks == other.choose(p, {})->clocks);
    auto const notes = kept.notes();
    REQUIRE(notes.size() == 1);
    CHECK_THAT(notes[0], ContainsSubstring("clocks for a step of ") && ContainsSubstring("less than at the highest ones"));
    follower.merged();
    CHECK(follower.must_choose());
    CHECK(follower.must_precompute());
}

TEST_CASE("clock_follower: an evaluation has the clocks of its stage")
{
    kept_records kept;
    frontier_cache frontiers{four_layers(), request};
    clock_follower follower{&frontiers, kept.record, launch_clock{}};
    auto const p = four_stages();
    follower.choose(p, rank_id{0}, false, true);
    auto const row = schedule_of(p, 0).compute.rows[0];
    auto const forward = *std::find_if(row.begin(), row.end(), [](instruction const& i) { return i.kind == instruction_kind::forward; });
    megahertz highest{};
    std::size_t next = 0;
    for (auto const& i : row) {
        if (is_compute(i.kind)) {
            auto const clock = follower.chosen().clocks[0][0][next++];
            highest = i.kind == instruction_kind::forward ? std::max(highest, clock) : highest;
        }
    }
    std::vector<instruction> const evaluation(5, forward);
    auto const carried = follower.carried_to(evaluation, 4);
    REQUIRE(carried.size() == 5);
    CHECK(std::all_of(carried.begin(), carried.end(), [&](megahertz clock) { return clock == highest; }));
    follower.choose(p, rank_id{9}, false, true);  // a rank that waits
    CHECK(follower.carried_to(evaluation, 4).empty());
}

TEST_CASE("clock_follower: a slow rank changes the clocks in time")
{
    kept_records kept;
    frontier_cache frontiers{four_layers(), request};
    clock_follower follower{&frontiers, kept.record, launch_clock{}};
    auto const p = four_stages();
    follower.choose(p, rank_id{0}, false, false);
    auto const before = follower.chosen();
    std::vector<double> const slowness{1.0, 1.5, 1.0, 1.0};
    CHECK_FALSE(follower.observe_slowness(members, slowness, {}));  // once is no straggler
    CHECK_FALSE(follower.must_choose());
    CHECK(follower.observe_slowness(members, slowness, {}));
    REQUIRE(follower.must_choose());
    follower.choose(p, rank_id{0}, false, false);
    frontier_cache other{four_layers(), request};
    CHECK(follower.chosen().clocks == other.choose(p, std::vector<slow_rank>{{rank_id{1}, 1.5}})->clocks);
    CHECK(follower.chosen().time > before.time);
    CHECK_THAT(kept.notes().back(), ContainsSubstring("; rank 1 takes 1.50 times as long"));
}

TEST_CASE("clock_follower: after a recovery late frontiers are noted")
{
    kept_records kept;
    frontier_cache frontiers{four_layers(), request};
    clock_follower follower{&frontiers, kept.record, launch_clock{}};
    auto const clocks = follower.clocks_for(four_stages(), true);
    CHECK(clocks);
    REQUIRE(kept.notes().size() == 1);
    CHECK_THAT(kept.notes()[0], ContainsSubstring("of 1 frontiers of clocks 1 had not been precomputed"));
    CHECK(follower.clocks_for(four_stages(), true)->clocks == clocks->clocks);  // there by now
    CHECK(kept.notes().size() == 1);
}
