// SPDX-License-Identifier: Apache-2.0
// Evaluations of a job: as many as a run makes, each as long as its forwards take, in an account of their own that a restart from a checkpoint takes back.
#include <cstdint>
#include <vector>

#include "small_job.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace test;

namespace {

job_description evaluating(job_description job, std::int64_t every, int microbatches)
{
    job.eval_every = every;
    job.eval_microbatches = microbatches;
    return job;
}

whole_nanoseconds evaluation_time(job_description job, int microbatches)
{
    job.steps = 1;
    return simulated(evaluating(job, 0, microbatches)).account.evaluation;
}

}  // namespace

TEST_CASE("evaluations: as many as a run makes, in their own account")
{
    auto job = small_job(4, {2, 2}, {{1e-3}, {1e6}});
    auto const without = simulated(job);
    CHECK(without.account.evaluation.count == 0);
    auto const one = evaluation_time(job, 5);
    CHECK(one.count > 0);
    for (std::int64_t every = 0; every <= 7; ++every) {
        std::int64_t count = 1;  // the one at the end
        for (std::int64_t step = 1; step < job.steps; ++step) {
            count += every > 0 && step % every == 0 ? 1 : 0;
        }
        auto const with = simulated(evaluating(job, every, 5));
        CHECK(with.account.evaluation.count == count * one.count);
        CHECK(with.account.good == without.account.good);
        CHECK(with.account.end == without.account.end + with.account.evaluation);
        CHECK(with.account.steps == 6);
        CHECK(with.plans == 1);
        CHECK(total_energy(with) > total_energy(without));
    }
    CHECK(simulated(evaluating(job, 0, 8)).account.evaluation > one);
}

TEST_CASE("evaluations: forwards of one rank after the other")
{
    auto const job = small_job(1, {1});
    cluster_steps<> const steps{job.model, job.request, job.cluster};
    auto const p = make_plan(job.model, job.request, 1)->plan;
    auto const forward = steps.step_of(p).pipelines[0].costs[0].forward;
    auto const vote = phases.decide;
    CHECK(in_s(evaluation_time(job, 7)).count == Approx((forward * 7.0 + vote).count).epsilon(1e-9));
}

TEST_CASE("evaluations: a loss in one is recovered from")
{
    auto const job = evaluating(small_job(6, {2, 2, 2}), 2, 6);
    auto const step = step_time(small_job(6, {2, 2, 2}));
    auto const one = evaluation_time(job, 6);
    auto const even = simulated(job);
    for (int k = 0; k < 6; ++k) {
        auto const part = whole_nanoseconds{one.count * k / 6 + 1};
        // before the third step: that time is lost, and the evaluation is repeated
        auto const at = in_s(whole_nanoseconds{2 * step.count + part.count});
        for (auto const policy : {job_policy::rheo, job_policy::replay}) {
            auto const out = simulated(job, policy, {lost(3, at)});
            REQUIRE(out.changes.size() == 1);
            CHECK(out.changes[0].step == 2);
            CHECK(out.changes[0].lost_time == part);
            CHECK(out.account.lost == part);
            CHECK(out.account.steps == 6);
            CHECK(out.account.evaluation >= even.account.evaluation);
        }
        // in the one at the end
        auto const last = simulated(job, job_policy::rheo, {lost(3, in_s(even.account.end - one + part))});
        REQUIRE(last.changes.size() == 1);
        CHECK(last.changes[0].step == 6);
        CHECK(last.account.steps == 6);
        CHECK(last.account.lost == part);
        CHECK(last.account.good == even.account.good);
        CHECK(last.account.evaluation.count > 2 * one.count);
    }
}

TEST_CASE("evaluations: a loss in a step repeats the one before it")
{
    auto const job = evaluating(small_job(6, {2, 2, 2}), 2, 6);
    auto const step = in_s(step_time(small_job(6, {2, 2, 2})));
    auto const one = evaluation_time(job, 6);
    auto const in_third = simulated(job, job_policy::rheo, {lost(3, step * 2.5 + in_s(one))});
    auto const in_fourth = simulated(job, job_policy::rheo, {lost(3, step * 3.5 + in_s(one))});
    CHECK(in_third.changes.at(0).step == 2);
    CHECK(in_fourth.changes.at(0).step == 3);
    auto const after = (in_fourth.account.evaluation - one).count / 2;  // by the ranks that are left: before the fifth step, and at the end
    CHECK(in_third.account.evaluation.count == in_fourth.account.evaluation.count + after);
}

TEST_CASE("evaluations: a restart takes those after the checkpoint back")
{
    auto job = evaluating(small_job(4, {2, 2}), 1, 4);
    job.checkpoint_every = 2;
    auto const even = simulated(job);
    auto const step = in_s(step_time(small_job(4, {2, 2})));
    for (double const part : {1.5, 2.5, 3.5, 5.0, 6.5}) {
        auto const out = simulated(job, job_policy::checkpoint, {lost(3, step * part)});
        CHECK(out.account.steps == 6);
        REQUIRE(out.changes.size() == 1);
        CHECK(out.account.lost == out.changes[0].lost_time);
    }
    job.until = {even.account.end.count - 1};  // in the evaluation at the end
    auto const cut = simulated(job);
    CHECK(cut.account.steps == 6);
    CHECK(cut.account.unfinished == evaluation_time(job, 4) - whole_nanoseconds{1});
}
