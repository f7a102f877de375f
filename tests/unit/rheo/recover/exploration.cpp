// SPDX-License-Identifier: Apache-2.0
// Every state that four ranks can reach, whatever dies when and whatever arrives in which order; and the
// same with each rule of the protocol taken away, which must be seen.
#include "exploration.hpp"

#include "rheo/pipeline/repair_groups.hpp"
#include "support/catch.hpp"

using namespace small_job;

namespace {

findings check_all_hold(job_settings const& job, std::size_t at_least = 50'000)
{
    auto const found = explore(job);
    for (auto const& w : found.wrong) {
        FAIL_CHECK(w.wrong.how << "; the way there: " << w.way);
    }
    CHECK(found.complete);
    CHECK(found.states > at_least);
    CHECK(found.endings[static_cast<std::size_t>(leave_reason::finished)] > 0);
    if (job.kills >= 2) {
        CHECK(found.in_third_generation > 1000);  // recoveries after, and inside, recoveries are among the states
    }
    return found;
}

/// A job on which each harm shows: survivors change places, so that accumulators move.
job_settings restless(manners how)
{
    job_settings job;
    job.planner = how;
    return job;
}

template <protocol_rules Rules>
void check_harm(property expected, job_settings const& job = restless(manners::rotate))
{
    auto const found = explore<Rules>(job, expected, 500'000);
    auto const* broken = found.broken(expected);
    REQUIRE(broken != nullptr);
    INFO(broken->wrong.how << "; the way there: " << broken->way);
    CHECK(!broken->way.empty());
}

/// The library's own planner on the small job: templates of one and two ranks, two copies wanted.
recovery_plan plan_really(std::vector<rank_holdings> const& holdings, job_settings const& job)
{
    std::vector<seconds> const times{seconds{1}, seconds{1}};
    replanning known{state(), layers, {}, {1, job.microbatches}, bytes{12}, {}};
    known.ready.templates.push_back(make_template({layer_id{0}, layer_id{2}}, times));
    known.ready.templates.push_back(make_template({layer_id{0}, layer_id{1}, layer_id{2}}, times));
    return replan(holdings, known);
}

/// The same for groups of two ranks, by the library's own repair.
recovery_plan plan_groups_really(std::vector<rank_holdings> const& holdings, job_settings const& job)
{
    replanning known{state(), layers, {}, {1, job.microbatches}, bytes{12}, {}};
    known.cells_per_layer = 2;
    std::vector<rank_id> ranks;
    for (auto const& holds : holdings) {
        ranks.push_back(holds.rank);
    }
    std::vector const before{group_of({rank_id{0}, rank_id{1}}), group_of({rank_id{2}, rank_id{3}})};
    return replan(holdings, known, repair_groups(before, ranks, {job.microbatches, 1}, [](pipeline_instance const&) { return true; }));
}

}  // namespace

TEST_CASE("exploration: two kills: agreement, exact counts")
{
    auto const how = GENERATE(manners::keep, manners::rotate, manners::spare);
    auto const found = check_all_hold(restless(how));
    CHECK(found.endings[static_cast<std::size_t>(leave_reason::state_lost)] > 0);  // both holders of a layer can be the two
}

TEST_CASE("exploration: the same with the library's own plans")
{
    job_settings job;
    job.planned = plan_really;
    check_all_hold(job);
}

TEST_CASE("exploration: redo and second step, one kill")
{
    auto job = restless(GENERATE(manners::keep, manners::rotate, manners::spare));
    job.kills = 1;
    job.steps = 2;
    job.redo_first = true;
    auto const found = check_all_hold(job);
    CHECK(found.endings[static_cast<std::size_t>(leave_reason::state_lost)] == 0);  // each layer has two holders
}

TEST_CASE("exploration: a drain with one or two kills")
{
    auto job = restless(GENERATE(manners::keep, manners::rotate, manners::spare));
    job.steps = 2, job.wants_to_leave = GENERATE(0, 3);
    job.kills = GENERATE(1, 2);
    auto const found = check_all_hold(job, 30'000);
    CHECK((found.endings[static_cast<std::size_t>(leave_reason::state_lost)] == 0) == (job.kills == 1));
}

TEST_CASE("exploration: all leave but one, and nothing is lost")
{
    job_settings job;
    job.ranks = 2, job.steps = 2, job.kills = 0, job.planner = manners::rotate, job.wants_to_leave = 0;
    auto const found = explore(job);
    CHECK(found.wrong.empty());
    CHECK(found.endings[static_cast<std::size_t>(leave_reason::finished)] > 0);
}

TEST_CASE("exploration: regroup between steps, one kill")
{
    job_settings job;
    job.ranks = 3, job.steps = 2, job.kills = 1, job.regroups = 1;
    check_all_hold(job, 10'000);
}

TEST_CASE("exploration: a plan changes twice, one kill")
{
    job_settings job;
    job.ranks = 3, job.steps = 3, job.kills = 1, job.regroups = 2;
    check_all_hold(job, 10'000);
}

TEST_CASE("exploration: places change in rounds, one kill")
{
    job_settings job;
    job.ranks = 3, job.steps = 3, job.kills = GENERATE(0, 1), job.regroups = 2, job.planner = manners::single, job.in_place = true;
    auto const found = explore(job);
    for (auto const& w : found.wrong) {
        FAIL_CHECK(w.wrong.how << "; the way there: " << w.way);
    }
    CHECK(found.complete);
    CHECK(found.states > 500);
    CHECK(found.endings[static_cast<std::size_t>(leave_reason::finished)] > 0);
    CHECK((found.endings[static_cast<std::size_t>(leave_reason::state_lost)] == 0) == (job.kills == 0));  // each layer has one holder
    std::vector<rank_holdings> const held{
        {rank_id{0}, step_id{1}, {layer_id{0}}, {}}, {rank_id{1}, step_id{1}, {layer_id{1}}, {}}, {rank_id{2}, step_id{1}, {}, {}}};
    CHECK(plan_for(held, {}, job).salvage.more);
}

TEST_CASE("exploration: two groups of two ranks, two kills")
{
    auto job = restless(GENERATE(manners::keep, manners::rotate, manners::spare));
    job.section.groups = true;
    auto const found = check_all_hold(job);
    CHECK(found.endings[static_cast<std::size_t>(leave_reason::state_lost)] > 0);
}

TEST_CASE("exploration: groups by the library's own repair")
{
    job_settings job;
    job.section.groups = true;
    job.planned = plan_groups_really;
    check_all_hold(job);
}

TEST_CASE("exploration: groups change their places, one kill")
{
    job_settings job;
    job.ranks = 4, job.steps = 2, job.kills = 1, job.regroups = 1;
    job.section.groups = true;
    auto const found = check_all_hold(job);
    CHECK(found.endings[static_cast<std::size_t>(leave_reason::state_lost)] == 0);
}

TEST_CASE("exploration: redundant pipeline, two kills")
{
    job_settings job;
    job.ranks = 3, job.steps = 2, job.planner = manners::single, job.section.safety = true;
    check_all_hold(job, 10'000);
}

TEST_CASE("exploration: without a rule the harm is seen")
{
    SECTION("commit by the vote alone") { check_harm<protocol_rules{.success_counts = false}>(property::commits_agree); }
    SECTION("accumulators are copied, not moved") { check_harm<protocol_rules{.senders_clear = false}>(property::counted_once); }
    SECTION("messages of any generation are taken") { check_harm<protocol_rules{.stamps_count = false}>(property::counted_once); }
    SECTION("an agreement of its own for the recovery")
    {
        check_harm<protocol_rules{.one_decide = false}>(property::commits_agree);
        check_harm<protocol_rules{.one_decide = false}>(property::waits_end);
    }
    SECTION("leaving without a revocation") { check_harm<protocol_rules{.leaving_revokes = false}>(property::waits_end); }
    SECTION("merging before the decision") { check_harm<protocol_rules{.decide_then_merge = false}>(property::counted_once); }
    SECTION("leaving without giving, or before all have it")
    {
        job_settings alone;  // one pipeline: no other rank holds what this one holds
        alone.ranks = 2, alone.steps = 2, alone.kills = 0, alone.planner = manners::rotate, alone.wants_to_leave = 1;
        check_harm<protocol_rules{.leavers_give = false}>(property::leaving_loses_nothing, alone);
        check_harm<protocol_rules{.leavers_vote = false}>(property::leaving_loses_nothing, alone);
    }
    SECTION("each rank follows its own requests")
    {
        auto job = restless(manners::keep);
        job.steps = 2, job.kills = 0, job.wants_to_leave = 1;
        check_harm<protocol_rules{.requests_are_reduced = false}>(property::waits_end, job);
    }
    SECTION("a backward books at its end, behind its exchange")
    {
        auto job = restless(manners::keep);
        job.section.groups = job.section.books_late = true, job.kills = 1;
        auto const found = explore(job, property::counted_once, 500'000);
        CHECK(found.broken(property::counted_once) != nullptr);
    }
    SECTION("forgetting a layer that was received")
    {
        check_harm<protocol_rules{.copies_are_kept = false}>(property::lost_only_if_lost, restless(manners::keep));
    }
}

TEST_CASE("exploration: larger: more kills, microbatches, steps, ranks", "[.long]")
{
    auto job = restless(GENERATE(manners::keep, manners::rotate, manners::spare));
    SECTION("three kills") { job.kills = 3; }
    SECTION("four microbatches") { job.microbatches = 4; }
    SECTION("two steps, the first one redone") { job.steps = 2, job.redo_first = true; }
    SECTION("five ranks") { job.ranks = 5; }
    check_all_hold(job);
}
