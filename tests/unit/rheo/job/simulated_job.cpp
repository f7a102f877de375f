// SPDX-License-Identifier: Apache-2.0
// Jobs over their whole time: without faults they are so many steps; a loss at any moment of a step leads to what a rehearsal of that step and the functions
// of a run lead to; what survivors keep is never worth less than doing the step again; and every nanosecond is in one account.
#include <algorithm>
#include <string>
#include <vector>

#include "rheo/job/cluster_steps.hpp"
#include "rheo/job/simulate_job.hpp"
#include "rheo/plan/holdings_under.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "small_job.hpp"
#include "support/catch.hpp"
#include "support/rehearsed_losses.hpp"

using namespace rheo;

namespace {

using namespace test;

/// The step that loses ranks and its rest, by the rehearsal of losses and the functions of a run. @param losses the later ones before the recovery ends
seconds rehearsed_step(job_description const& job, std::vector<modelled_loss> const& losses, bool keeps)
{
    auto const first = make_plan(job.model, job.request, job.ranks);
    REQUIRE(first.error() == "");
    auto const& p = first->plan;
    auto const known = make_replanning(job.model, job.request, job.ranks);
    auto const rules = membership_rules_of(job.request);
    auto const members = ranks_of(p);
    auto const in_force = plan_as_chosen(holdings_under(p, array_view{members}, known.cells_per_layer, known.optimizer), known, rules, recomposition_of(p));
    cluster_steps<> const steps{job.model, job.request, job.cluster};
    auto const whole = steps.step_of(p);
    auto const replan_rest = [&](test::interrupted_step const& first_part) {
        std::vector<rank_holdings> holdings;
        for (auto holds : in_force.salvage.after) {
            if (!std::binary_search(first_part.survivors.begin(), first_part.survivors.end(), holds.rank)) {
                continue;
            }
            for (auto& use : holds.uses) {
                for (auto const& f : first_part.finished) {
                    auto const span = layers_of(p.pipelines[at(f.pipeline)], f.stage);
                    if (keeps && f.rank == holds.rank && contains(span, known.state.uses[at(use.use)].layer)) {
                        use.done = use.done | f.microbatches;
                    }
                }
            }
            holdings.push_back(std::move(holds));
        }
        auto const next = plan_membership(holdings, p.pipelines, {}, known, rules);
        REQUIRE(next.error == "");
        plan rest{.schedule = p.schedule, .pipelines = next.pipelines, .work = next.salvage.work, .spares = next.spares};
        return steps.step_of(rest);
    };
    return test::rehearse(whole, array_view{losses}, phases, replan_rest).end;
}

}  // namespace

TEST_CASE("simulated_job: without faults it is so many steps")
{
    auto job = small_job(4, {2, 2}, {{1e-3}, {1e6}});
    auto const step = step_time(job);
    job.steps = 1000;
    for (auto const policy : {job_policy::rheo, job_policy::replay, job_policy::checkpoint}) {
        auto const out = simulated(job, policy);
        CHECK(out.account.end.count == step.count * 1000);
        CHECK(out.account.good == out.account.end);
        CHECK(out.account.steps == 1000);
        CHECK(out.plans == 1);
        CHECK(out.changes.empty());
        job.checkpoint_every = 300;  // three times, as none is written at the end
        auto const kept = simulated(job, policy);
        CHECK(kept.account.good == out.account.good);
        auto const copied = 2.0 * in_mebibytes(detail::state_bytes_of(job)) * 1048576.0 / (4 * 1e9);  // read and written, by four devices
        CHECK(kept.account.checkpoint.count == 3 * in_whole_nanoseconds(seconds{copied}));
        job.checkpoint_every = 0;
    }
    CHECK(simulated(job).computing.count == Approx(simulated(small_job(4, {2, 2}, {{1e-3}, {1e6}})).computing.count * 1000 / 6));
}

TEST_CASE("simulated_job: a loss is what a rehearsal leads to")
{
    for (auto const& sizes : {std::vector{2, 2}, std::vector{2, 3}, std::vector{1, 2, 1}}) {
        int ranks = 0;
        for (auto const n : sizes) {
            ranks += n;
        }
        auto job = small_job(ranks, sizes);
        auto const whole = step_time(job);
        job.steps = 1;
        for (int victim = 0; victim < ranks; ++victim) {
            for (int k = 0; k < 12; ++k) {
                INFO("rank " << victim << " at " << k << "/12 of " << in_s(whole).count << " s");
                auto const at = in_s(whole) * ((k + 0.375) / 12.0);
                for (bool const keeps : {true, false}) {
                    auto const out = simulated(job, keeps ? job_policy::rheo : job_policy::replay, {lost(victim, at)});
                    CHECK(in_s(out.account.end).count == Approx(rehearsed_step(job, {{rank_id{victim}, at}}, keeps).count).epsilon(1e-8));
                    CHECK(out.account.steps == 1);
                    REQUIRE(out.changes.size() == 1);
                    CHECK(out.changes[0].what == job_change::recovered);
                    CHECK(in_s(out.account.recovery) >= total_time(phases) - seconds{1e-6});
                }
            }
        }
    }
}

TEST_CASE("simulated_job: a second loss is what a rehearsal leads to")
{
    auto job = small_job(7, {2, 2, 3});
    auto const whole = step_time(job);
    job.steps = 1;
    for (int first = 0; first < job.ranks; first += 2) {
        for (int second = 1; second < job.ranks; second += 2) {
            for (double const after : {0.2, 0.6, 1.1, 1.7, 2.3}) {  // while survivors hear of the first, leave the step, recover
                for (double const part : {0.3, 0.55, 0.8}) {
                    INFO("rank " << first << " at " << part << ", then rank " << second << " after " << after << " s");
                    auto const at = in_s(whole) * part;
                    auto const out = simulated(job, job_policy::rheo, {lost(first, at), lost(second, at + seconds{after})});
                    REQUIRE(out.changes.size() == 1);
                    CHECK(out.changes[0].lost.size() == 2);
                    CHECK(in_s(out.account.end).count ==
                          Approx(rehearsed_step(job, {{rank_id{first}, at}, {rank_id{second}, at + seconds{after}}}, true).count).epsilon(1e-8));
                }
            }
        }
    }
}

TEST_CASE("simulated_job: a loss in the rest of a step")
{
    auto job = small_job(7, {2, 2, 3});
    auto const whole = step_time(job);
    job.steps = 1;
    for (int first = 0; first < job.ranks; first += 2) {
        auto const at = in_s(whole) * 0.7;
        auto const once = simulated(job, job_policy::rheo, {lost(first, at)});
        auto const begin = in_s(once.changes[0].at + once.changes[0].recovery);
        for (int second = 1; second < job.ranks; second += 2) {
            for (int k = 0; k < 8; ++k) {
                auto const then = begin + (in_s(once.account.end) - begin) * ((k + 0.5) / 8.0);
                INFO("rank " << first << ", then rank " << second << " in part " << k << " of 8 of the rest");
                std::vector<job_event> const losses{lost(first, at), lost(second, then)};
                auto const kept = simulated(job, job_policy::rheo, losses);
                CHECK(kept.account.steps == 1);
                CHECK(kept.changes.size() == 2);
                CHECK(kept.account.end <= simulated(job, job_policy::replay, losses).account.end);
            }
        }
    }
}

TEST_CASE("simulated_job: what survivors keep saves time")
{
    for (auto const& sizes : {std::vector{2, 2}, std::vector{2, 3, 2}}) {
        auto job = small_job(sizes.size() == 2 ? 4 : 7, sizes, {{1e-4}, {1e7}});
        auto const whole = step_time(job);
        for (int victim = 0; victim < job.ranks; ++victim) {
            for (int k = 0; k < 30; ++k) {
                INFO("rank " << victim << " at " << k << "/10");
                auto const at = in_s(whole) * ((k + 0.5) / 10.0);
                auto const kept = simulated(job, job_policy::rheo, {lost(victim, at)});
                auto const again = simulated(job, job_policy::replay, {lost(victim, at)});
                auto const restarted = simulated(job, job_policy::checkpoint, {lost(victim, at)});
                CHECK(kept.account.end <= again.account.end);
                CHECK(again.account.lost.count == in_whole_nanoseconds(at) % whole.count);
                CHECK(kept.account.lost <= again.account.lost);
                CHECK(again.account.lost <= restarted.account.lost);
                CHECK(kept.account.steps == 6);
                CHECK(restarted.account.steps == 6);
            }
        }
    }
}

TEST_CASE("simulated_job: a checkpoint counts when it is written")
{
    auto job = small_job(4, {2, 2});
    job.steps = 9;
    job.checkpoint_every = 2;
    auto const step = step_time(job).count;
    auto const copied = detail::change_times<free_network>{job}.snapshot(4).count * 1e9;
    for (double const writing : {0.4, 1.6, 2.6}) {  // steps that it takes: no other one begins meanwhile
        auto const size = static_cast<double>(detail::state_bytes_of(job).count);
        job.cluster.storage->write = {size / (writing * static_cast<double>(step) * 1e-9)};
        for (int k = 0; k < 18; ++k) {
            // The job without the loss, step by step.
            auto const at = (0.5 * k + 0.25) * static_cast<double>(step);
            double now = 0, begin = 0, written = 0;
            int committed = 0, newest = 0, in_writing = 0;
            while (now + static_cast<double>(step) <= at) {
                now += static_cast<double>(step);
                ++committed;
                newest = in_writing > 0 && written <= now ? std::exchange(in_writing, 0) : newest;
                if (committed % 2 == 0 && in_writing == 0) {
                    now += copied;
                    in_writing = committed;
                    written = now + writing * static_cast<double>(step);
                }
            }
            begin = now;
            newest = in_writing > 0 && written <= at ? in_writing : newest;
            auto const out = simulated(job, job_policy::checkpoint, {lost(3, nanoseconds(at))});
            INFO("writing " << writing << " steps, a loss in step " << committed);
            REQUIRE(out.changes.size() == 1);
            auto const lost_time = at - begin + (committed - newest) * static_cast<double>(step);
            CHECK(static_cast<double>(out.changes[0].lost_time.count) == Approx(lost_time).epsilon(1e-6));
            CHECK(out.account.steps == 9);
        }
    }
}

TEST_CASE("simulated_job: losses at once, in a recovery, of all")
{
    auto job = small_job(6, {2, 2, 2});
    job.checkpoint_every = 2;
    auto const step = in_s(step_time(job));
    auto const at_once = simulated(job, job_policy::rheo, {lost(0, step * 0.5), lost(3, step * 0.5)});
    REQUIRE(at_once.changes.size() == 1);
    CHECK(at_once.changes[0].lost == std::vector{rank_id{0}, rank_id{3}});
    CHECK(at_once.account.steps == 6);

    auto const during = simulated(job, job_policy::rheo, {lost(0, step * 0.5), lost(3, step * 0.5 + seconds{2.3})});
    REQUIRE(during.changes.size() == 1);
    CHECK(during.changes[0].lost == std::vector{rank_id{0}, rank_id{3}});
    CHECK(during.account.recovery > at_once.account.recovery);

    auto const all = simulated(job, job_policy::rheo, {lost(0, step * 3.5), lost(2, step * 3.5), lost(4, step * 3.5)});
    REQUIRE(all.changes.size() == 1);
    CHECK(all.changes[0].what == job_change::restarted);
    CHECK(all.changes[0].step == 3);
    CHECK(all.changes[0].why.substr(0, 23) == "no survivor holds layer");
    CHECK(all.account.steps == 6);

    auto pair = small_job(4, {2, 2});
    pair.steps = 40;
    auto const again = simulated(pair, job_policy::rheo, {lost(3, step * 0.5), back(3, step * 1.5), lost(3, step * 30.0)});
    CHECK(again.account.steps == 40);
    REQUIRE(again.changes.size() == 3);
    CHECK(again.changes[0].ranks == 3);
    CHECK(again.changes[1].what == job_change::regrouped);
    CHECK(again.changes[1].ranks == 4);
    CHECK(again.changes[2].what == job_change::recovered);
}

TEST_CASE("simulated_job: a rank returns to the group that it left")
{
    auto job = small_job(4, {2, 2});
    job.model = on_grid(job.model, 2);
    job.request.tensor.values = {2};
    job.request = on_cluster(job.request, job.cluster);
    auto const step = in_s(step_time(job));
    job.steps = 20;
    auto const returns = simulated(job, job_policy::rheo, {lost(3, step * 0.5), back(3, step * 5.5)});
    REQUIRE(returns.changes.size() == 2);
    CHECK(returns.changes[0].what == job_change::recovered);
    CHECK(returns.changes[0].ranks == 3);
    CHECK(returns.changes[1].what == job_change::regrouped);
    CHECK(returns.changes[1].ranks == 4);
    auto const stays_away = simulated(job, job_policy::rheo, {lost(3, step * 0.5)});
    CHECK(returns.account.end < stays_away.account.end);
}

TEST_CASE("simulated_job: a step has its last nanosecond")
{
    auto const job = small_job(4, {2, 2});
    auto const step = step_time(job);
    auto const inside = simulated(job, job_policy::rheo, {{{step.count - 1}, job_event_kind::lose, rank_id{1}, rank_id{1}}});
    auto const behind = simulated(job, job_policy::rheo, {{{step.count}, job_event_kind::lose, rank_id{1}, rank_id{1}}});
    REQUIRE(inside.changes.size() == 1);
    REQUIRE(behind.changes.size() == 1);
    CHECK(inside.changes[0].step == 0);
    CHECK(behind.changes[0].step == 1);
    CHECK(behind.account.lost.count == 0);
}

TEST_CASE("simulated_job: ranks wait, leave and are slow")
{
    auto job = small_job(4, {2, 2});
    job.request.min_ranks = 2;
    auto const step = in_s(step_time(job));
    std::vector<job_event> const all_but_one{lost(0, step * 1.5), lost(1, step * 1.5), lost(2, step * 1.5), back(0, step * 20.0)};
    auto const halted = simulated(job, job_policy::rheo, all_but_one);
    CHECK(halted.account.halted.count > 0);
    CHECK(halted.account.steps == 6);
    auto const never = simulated(job, job_policy::rheo, {all_but_one.begin(), all_but_one.end() - 1});
    CHECK(never.account.steps < 6);
    CHECK(never.error.find("no rank returns") != std::string::npos);

    auto const drained = simulated(job, job_policy::rheo, {{{in_whole_nanoseconds(step * 1.5)}, job_event_kind::drain, rank_id{3}, rank_id{3}}});
    REQUIRE(drained.changes.size() == 1);
    CHECK(drained.changes[0].what == job_change::regrouped);
    CHECK(drained.account.lost.count == 0);
    CHECK(drained.changes[0].ranks <= 3);

    auto const slow = simulated(job, job_policy::rheo,
                                {{{in_whole_nanoseconds(step * 1.5)}, job_event_kind::slow, rank_id{3}, rank_id{3}, 2.0},
                                 {{in_whole_nanoseconds(step * 5.0)}, job_event_kind::well, rank_id{3}, rank_id{3}}});
    CHECK(slow.account.end.count > step_time(job).count * 6);
    CHECK(slow.account.good == slow.account.end);
    CHECK(slow.plans == 2);

    auto coming = job;
    coming.begins_with_ranks = false;
    auto const created = simulated(coming, job_policy::rheo, {back(0, {1.0}), back(1, {2.0}), back(2, {3.0}), back(3, {3.0})});
    CHECK(created.account.creating.count == 2'000'000'000);
    CHECK(created.account.steps == 6);
}

TEST_CASE("simulated_job: the same seed gives the same job")
{
    auto job = small_job(6, {2, 2, 2}, {{1e-4}, {1e7}});
    job.steps = 400;
    job.checkpoint_every = 10;
    auto const step = in_s(step_time(job));
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        for (auto const policy : {job_policy::rheo, job_policy::replay, job_policy::checkpoint}) {
            job_event_source const events{{}, random_losses{.mtbf = step * 60.0, .repair = step * 12.0, .seed = seed, .ranks = 6}};
            auto const one = simulate_job<contended_network>(job, policy, events);
            REQUIRE(one.error() == "");
            CHECK(one->account.steps == 400);
            CHECK(one->changes.size() > 20);
            CHECK(*one == *simulate_job<contended_network>(job, policy, events));
        }
    }
}

TEST_CASE("simulated_job: losses that no step outlives end it")
{
    auto const job = small_job(4, {2, 2});
    for (auto const policy : {job_policy::rheo, job_policy::checkpoint}) {
        job_event_source const storm{{}, random_losses{.mtbf = seconds{0.01}, .repair = seconds{0.001}, .seed = 1, .ranks = 4}};
        auto const out = simulate_job<free_network>(job, policy, storm);
        REQUIRE(out.error() == "");
        CHECK(out->account.steps == 0);
        CHECK(out->error.find("losses come faster than recoveries end") != std::string::npos);
    }
}

TEST_CASE("simulated_job: what cannot be simulated is refused")
{
    auto job = small_job(4, {2, 2});
    auto const error = [&] { return simulate_job<free_network>(job).error(); };
    job.ranks = 5;
    CHECK(error() == "the job has 5 ranks, the cluster 4 devices; expected a device for each rank, and at least one");
    job.ranks = 4;
    job.cluster.device.description.compute.count = 0;
    CHECK(error() == "the device of the cluster cannot be: rates and memory are above zero, powers at least zero, and all are finite");
    job = small_job(4, {2, 2}, {{0.0}, {1e-12}});
    CHECK(error().find("times of a job are at most 2^62 ns, 146 years") != std::string::npos);
}
