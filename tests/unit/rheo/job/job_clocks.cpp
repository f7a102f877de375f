// SPDX-License-Identifier: Apache-2.0
// Jobs with clocks: without faults the energy is that of the energy account of a step, as often as there are steps; clocks cost no time; a loss keeps the books.
#include <vector>

#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/plan_clocks.hpp"
#include "rheo/simulate/energy.hpp"
#include "small_job.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace test;

namespace {

constexpr watts blocking{90.0};

/// Three clocks: slower ones take longer and draw less. Layers differ, so that stages wait for each other.
profile profile_of(model_description const& model)
{
    profile layers{{}, blocking};
    for (int l = 0; l < static_cast<int>(model.layers.size()); ++l) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            auto const base = (kind == instruction_kind::forward ? 0.010 : 0.021) * (1.0 + 0.15 * (l % 3));
            for (int k = 0; k < 3; ++k) {
                auto const time = base * (1.0 + 0.2 * k);
                layers.rows.push_back({rank_id{-1}, stage_id{l}, kind, {1400.0 - 200.0 * k}, {time}, {time * (300.0 - 70.0 * k)}});
            }
        }
    }
    return layers;
}

job_description clocked_job(int ranks, std::vector<int> pipelines, seconds deadline = {})
{
    auto job = small_job(ranks, std::move(pipelines));
    job.clocks = job_clocks{profile_of(job.model), {.costs = {.blocking = blocking}, .deadline = deadline}};
    return job;
}

/// The energy of a step of that time by the energy accounts of the pipelines.
joules energy_of_step(job_description const& job, plan const& p, seconds time)
{
    std::vector<pipeline_frontier> made;
    std::vector<pipeline_frontier const*> all;
    made.reserve(p.pipelines.size());
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        made.push_back(*make_pipeline_frontier(p, i, job.clocks->layers, job.clocks->request, array_view<slow_rank const>{},
                                               make_group_exchanges(job.model, job.request)));
        all.push_back(&made.back());
    }
    auto const chosen = *choose_clocks(array_view<pipeline_frontier const* const>{all}, job.clocks->request);
    joules sum{};
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const& activities = made[i].curve.activities;
        std::vector<std::size_t> next(static_cast<std::size_t>(activities.network.rows));
        auto const clocked = plan_with(activities, blocking, [&](std::size_t k) {
            auto const row = static_cast<std::size_t>(activities.network.operations[k].row);
            auto const clock = chosen.clocks[i][row][next[row]++];
            for (auto const& option : made[i].options[static_cast<std::size_t>(activities.curve_of[k])]) {
                if (option.clock == clock) {
                    return option;
                }
            }
            FAIL("no option at the clock");
            return clock_option{};
        });
        auto const others = ranks_of(p.pipelines[i]).size() - static_cast<std::size_t>(activities.network.rows);  // of groups, beside the first of each
        sum += total_energy(energy_account(activities.network, clocked, blocking, time)) + blocking * time * static_cast<double>(others);
    }
    return sum;
}

}  // namespace

TEST_CASE("job_clocks: without faults it is the account of a step")
{
    for (auto const& sizes : {std::vector{3}, std::vector{2, 2}, std::vector{2, 3}, std::vector{1, 4}}) {
        int ranks = 0;
        for (auto const n : sizes) {
            ranks += n;
        }
        for (double const longer : {0.0, 1.05, 1.3}) {
            auto job = clocked_job(ranks, sizes);
            auto const p = make_plan(job.model, job.request, ranks)->plan;
            auto const step = in_s(step_time(job));
            job.clocks->request.deadline = step * longer;
            auto const out = simulated(job);
            auto const time = in_s(out.account.end) / 6.0;
            CHECK(total_energy(out).count == Approx((energy_of_step(job, p, time) * 6.0).count).epsilon(1e-6));
            CHECK(time >= step * 0.999999);
            CHECK(time <= step * std::max(1.0, longer) + seconds{0.3});
            if (longer == 1.3) {
                CHECK(total_energy(out) < total_energy(simulated(clocked_job(ranks, sizes))));
            }
        }
    }
}

TEST_CASE("job_clocks: groups have one clock, losses and returns too")
{
    auto job = clocked_job(4, {2, 2});
    job.model = on_grid(job.model, 2);
    job.request.tensor.values = {2};
    job.request = on_cluster(job.request, job.cluster);
    auto const p = make_plan(job.model, job.request, 4)->plan;
    auto const step = in_s(step_time(job));
    for (double const longer : {0.0, 1.2}) {
        job.clocks->request.deadline = step * longer;
        auto const out = simulated(job);
        CHECK(total_energy(out).count == Approx((energy_of_step(job, p, in_s(out.account.end) / 6.0) * 6.0).count).epsilon(1e-6));
    }
    job.clocks->request.deadline = {};
    job.steps = 12;
    auto const even = simulated(job);
    auto const out = simulated(job, job_policy::rheo, {lost(3, step * 2.4), back(3, step * 6.5)});
    CHECK(out.account.steps == 12);
    REQUIRE(out.changes.size() == 2);
    CHECK(out.account.end > even.account.end);
    CHECK(simulated(job, job_policy::rheo, {{{}, job_event_kind::slow, rank_id{0}, rank_id{0}, 1.5}}).account.end > even.account.end);
}

TEST_CASE("job_clocks: losses, slow ranks and evaluations have clocks")
{
    auto job = clocked_job(5, {2, 3});
    job.eval_microbatches = 4;
    auto const step = in_s(step_time(job));
    auto const even = simulated(job);
    for (int victim = 0; victim < 5; ++victim) {
        auto const out = simulated(job, job_policy::rheo, {lost(victim, step * 2.4)});
        CHECK(out.account.steps == 6);
        CHECK(out.computing.count > 0.0);
        CHECK(simulated(job, job_policy::replay, {lost(victim, step * 2.4)}).account.end >= out.account.end);
        CHECK(out == simulated(job, job_policy::rheo, {lost(victim, step * 2.4)}));
    }
    std::vector<job_event> const slow{{{}, job_event_kind::slow, rank_id{0}, rank_id{0}, 1.5}};
    auto const answered = simulated(job, job_policy::rheo, slow);
    job.clocks->answers_slow_ranks = false;
    auto const left = simulated(job, job_policy::rheo, slow);
    CHECK(answered.account.end > even.account.end);
    CHECK(total_energy(answered) <= total_energy(left) * 1.000001);
}

TEST_CASE("job_clocks: what has no clocks is refused")
{
    auto job = clocked_job(4, {2, 2});
    auto const error = [&] { return simulate_job<free_network>(job).error(); };
    CHECK(error() == "");
    job.clocks->layers.rows.resize(6);
    CHECK(error() == "the clock profile has 1 layers, the model 8");
    job = clocked_job(4, {2, 2});
    job.cluster.different = {{0, 0, job.cluster.device, {}}};
    job.cluster.different[0].device.description.compute.count *= 2.0;
    CHECK(error() == "the cluster has nodes with other devices, but a clock profile is that of one kind of device");
    job = clocked_job(4, {2, 2});
    job.clocks->layers.rows.erase(job.clocks->layers.rows.begin(), job.clocks->layers.rows.begin() + 6);
    CHECK(error().find("the plan cannot have clocks: ") == 0);
}
