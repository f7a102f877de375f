// SPDX-License-Identifier: Apache-2.0
// Points of a sweep: a row is a step of the simulated job, its parts add up; what binds it is what, doubled, shortens it most; the planner's choice is the
// quickest row of all equal pipelines of the same ranks.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rheo/job/sweep_step.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr modelled_link no_time{{0.0}, {1e30}};

job_description job_on(int ranks, std::vector<int> pipelines, modelled_link links = no_time, flop_rate compute = {1e9}, bytes_per_second traffic = {1e15})
{
    job_description job{.model = gpt_model({.vocabulary = 32, .context = 8, .width = 16, .heads = 2, .blocks = 6}),
                        .request = {.schedule = one_f_one_b{}, .microbatches = 16, .microbatch = {1, 8}, .pipelines = std::move(pipelines)},
                        .cluster = {.device = {{compute, traffic, gibibytes(1)}, {300}, {100}},
                                    .levels = {{"node", {ranks, network_topology::full, links}}},
                                    .different = {},
                                    .storage = {},
                                    .recovery = {}},
                        .ranks = ranks,
                        .steps = 3};
    job.request = on_cluster(job.request, job.cluster);
    return job;
}

std::string binding(job_description const& job)
{
    auto const row = sweep_step<contended_network>(job);
    REQUIRE(row.why_not == "");
    return row.binds;
}

}  // namespace

TEST_CASE("sweep_step: a row is a step of the simulated job")
{
    for (auto const& pipelines : {std::vector{2, 2}, std::vector{1, 3}, std::vector{4}}) {
        auto job = job_on(4, pipelines, {{1e-6}, {1e8}}, {1e9}, {1e9});
        auto const row = sweep_step<contended_network>(job, {.binds = false});
        REQUIRE(row.is_feasible());
        auto const out = simulate_job<contended_network>(job);
        REQUIRE(out.error() == "");
        auto const close = [](double value) { return Approx(value).epsilon(0.01); };  // sums in fewer messages
        CHECK(static_cast<double>(out->account.good.count) == close(3.0 * static_cast<double>(row.played.time.count)));
        CHECK(total_energy(*out).count == close(3.0 * (row.played.computing + row.played.waiting).count));
        CHECK(out->fullest == row.played.fullest);
        CHECK(total_time(row.played.parts) == row.played.time);
        CHECK(row.pipelines == pipelines);
        CHECK(row.tokens == 16 * 8);
        CHECK(tokens_per_second(row) == Approx(128.0 * 1e9 / static_cast<double>(row.played.time.count)));
        CHECK(row.binds == "");
        CHECK_FALSE(row.goodput);
    }
}

TEST_CASE("sweep_step: a row has the clocks of the simulated job")
{
    auto job = job_on(4, {2, 2});
    job.clocks = job_clocks{{{}, watts{90}}, {.costs = {.blocking = watts{90}}}};
    for (int l = 0; l < static_cast<int>(job.model.layers.size()); ++l) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            for (int k = 0; k < 3; ++k) {
                seconds const time{(kind == instruction_kind::forward ? 0.010 : 0.021) * (1.0 + 0.2 * k)};
                job.clocks->layers.rows.push_back({rank_id{-1}, stage_id{l}, kind, {1400.0 - 200.0 * k}, time, watts{300.0 - 70.0 * k} * time});
            }
        }
    }
    for (seconds const deadline : {seconds{}, seconds{1e3}}) {  // the fastest clocks, and those of the least energy
        job.clocks->request.deadline = deadline;
        auto const row = sweep_step<contended_network>(job);
        INFO(row.why_not);
        auto const whole = *simulate_job<contended_network>(job);
        CHECK(row.played.time.count * 3 == whole.account.good.count);
        CHECK(row.played.computing.count * 3 == Approx(whole.computing.count));
        CHECK(row.played.waiting.count * 3 == Approx(whole.waiting.count).epsilon(0.01));
        CHECK(row.binds == "compute");
        auto slow = job;
        slow.cluster.device.description.compute = slow.cluster.device.description.compute * 0.5;
        slow.request.machine.device = job.request.machine.device;  // the same plan
        CHECK(sweep_step<contended_network>(slow).played.time == row.played.time);
    }
    job.clocks->layers.rows.pop_back();
    job.clocks->layers.rows.pop_back();
    job.clocks->layers.rows.pop_back();
    CHECK_FALSE(sweep_step<contended_network>(job).is_feasible());
}

TEST_CASE("sweep_step: what binds is what shortens the step most")
{
    CHECK(binding(job_on(2, {1, 1})) == "compute");
    CHECK(binding(job_on(2, {1, 1}, no_time, {1e18}, {1e6})) == "memory traffic");
    CHECK(binding(job_on(2, {2}, {{0.0}, {1e5}})) == "links of node");
    CHECK(binding(job_on(2, {1, 1}, {{10.0}, {1e30}}, {1e18})) == "microbatches");  // reductions and vote once for twice the tokens
    auto long_way = job_on(2, {2}, {{10.0}, {1e30}}, {1e18});                       // each microbatch waits for messages
    long_way.request.microbatches = 1024;
    CHECK(binding(long_way) == "latency");
}

TEST_CASE("sweep_step: a lack of memory is reported as what binds")
{
    auto job = job_on(2, {1, 1});
    job.request.memory_limit = bytes{1000};
    auto const row = sweep_step<contended_network>(job);
    CHECK(row.why_not.find("plan.memory_mib") != std::string::npos);
    CHECK(row.binds == "device memory");
    job.ranks = 3;
    CHECK(sweep_step<contended_network>(job).why_not.find("the job has 3 ranks, the cluster 2 devices") != std::string::npos);
}

TEST_CASE("sweep_step: the least memory costs time, twice as much less")
{
    auto job = job_on(4, {4});
    job.request.microbatch = {8, 8};
    auto const free = sweep_step<contended_network>(job, {.binds = false});
    job.request.recompute = recompute_policy::automatic;
    std::int64_t least = 0;
    for (auto most = free.played.fullest.count; most - least > 1;) {
        auto const middle = (least + most) / 2;
        job.request.memory_limit = bytes{middle};
        (sweep_step<contended_network>(job, {.binds = false}).is_feasible() ? most : least) = middle;
    }
    for (auto const limit : {least + 1, least + 1000, 2 * least, 10 * least}) {  // the plan is the one that planning makes
        job.request.memory_limit = bytes{limit};
        auto const planned = make_plan(job.model, job.request, job.ranks);
        REQUIRE(planned);
        CHECK(sweep_step<contended_network>(job, {.binds = false}).planned == planned->time);
    }
    job.request.memory_limit = bytes{least + 1};
    auto const row = sweep_step<contended_network>(job);
    REQUIRE(row.is_feasible());
    CHECK(row.played.fullest.count < free.played.fullest.count);
    CHECK(row.played.time > free.played.time);
    CHECK(row.binds == "compute");  // twice as much halves the step, memory saves what is recomputed
}

TEST_CASE("sweep_step: goodput falls as losses come oftener")
{
    auto job = job_on(4, {2, 2}, {{1e-6}, {1e8}});
    job.cluster.recovery = recovery_times{{1.0}, {0.5}, {0.0}, {0.0}, {0.0}, {0.0}, {0.0}, {0.0}, {0.0}};
    double before = 1.0;
    for (double const hours : {1000.0, 10.0, 0.1, 0.001}) {
        job.request.mtbf = seconds{hours * 3600.0};
        auto const row = sweep_step<contended_network>(job, {.binds = false, .goodput = true});
        REQUIRE(row.goodput);
        CHECK(*row.goodput < before);
        CHECK(*row.goodput > 0.0);
        before = *row.goodput;
    }
    job.request.mtbf = seconds{6.0};  // a loss each 1.5 s costs as long and what is lost of a step
    CHECK(*sweep_step<contended_network>(job, {.binds = false, .goodput = true}).goodput == Approx(0.5).epsilon(0.01));
}

TEST_CASE("sweep_step: the planner chooses the quickest row")
{
    int compared = 0;
    for (int ranks = 2; ranks <= 12; ++ranks) {
        for (double const rate : {1e30, 1e7, 1e5}) {
            auto job = job_on(ranks, {}, {{1e-6}, {rate}});
            auto const chosen = sweep_step<contended_network>(job, {.binds = false});
            REQUIRE(chosen.why_not == "");
            if (chosen.pipelines.front() != chosen.pipelines.back() || chosen.pipelines.size() < 2) {
                continue;
            }
            std::optional<swept_step> first;
            for (int pipelines = 2; pipelines <= ranks; ++pipelines) {  // f + 1 of them
                if (ranks % pipelines != 0) {
                    continue;
                }
                job.request.pipelines.assign(static_cast<std::size_t>(pipelines), ranks / pipelines);
                auto const row = sweep_step<contended_network>(job, {.binds = false});
                if (row.is_feasible() && (!first || row.planned < first->planned)) {
                    first = row;
                }
            }
            REQUIRE(first);
            CHECK(chosen.pipelines == first->pipelines);
            CHECK(chosen.planned == first->planned);
            ++compared;
        }
    }
    CHECK(compared >= 10);
}
