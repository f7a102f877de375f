// SPDX-License-Identifier: Apache-2.0
// The planner as a library call. What it plans for a config, tests/unit/executor/plan/planning.cpp says.
#include "rheo/planner/make_plan.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "rheo/model/gpt.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/planner/contingency_plans.hpp"
#include "rheo/planner/group_prices.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/interleaved.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

model_description const gpt = gpt_model({.vocabulary = 256, .context = 64, .width = 64, .heads = 4, .blocks = 6});

/// A schedule of one's own type.
struct mine {
    static constexpr std::string_view name = "mine";
    static constexpr rheo::program program(schedule_shape shape) { return interleaved::program(shape); }
};

/// All that need no slices.
std::vector<any_schedule> schedules_of_whole_sequences()
{
    std::vector<any_schedule> schedules;
    for (auto const family : schedule_families()) {
        if (!cuts_sequences(family)) {
            schedules.push_back(family);
        }
    }
    return schedules;
}

bytes fullest_rank(plan const& p, model_description const& model, planning_request const& request)
{
    bytes most;
    for (auto const& pipeline : p.pipelines) {
        for (auto const rank : ranks_of(pipeline)) {
            most = std::max(most, needed_bytes(memory_parts_of(p, model, request.microbatch, request.policy, rank)));
        }
    }
    return most;
}

}  // namespace

TEST_CASE("make_plan: every family, every number of ranks can run")
{
    for (auto const family : schedule_families()) {
        for (int ranks = 1; ranks <= 6; ++ranks) {
            INFO(name_of(family) << " on " << ranks);
            planning_request const request{.schedule = family, .microbatch = {4, 64, cuts_sequences(family) ? 2 : 1}, .failures = 0};
            auto const made = make_plan(gpt, request, ranks);
            REQUIRE(made);
            CHECK(made->plan.schedule == family);
            CHECK(plan_error(made->plan, gpt, request, ranks).empty());
            CHECK(plan_error(made->plan, gpt, request, ranks + 1) != "");
        }
    }
}

TEST_CASE("make_plan: a schedule without a known name is carried")
{
    planning_request const request{.schedule = mine{}, .failures = 0};
    auto const made = make_plan(gpt, request, 2);
    REQUIRE(made);
    CHECK(made->plan.schedule == mine{});
    CHECK(name_of(made->plan.schedule) == "mine");
    CHECK(plan_error(made->plan, gpt, request, 2).empty());
    auto named = made->plan;
    auto const nothing_known = detail::unknown_family("mine");
    named.schedule = any_schedule{nothing_known};
    CHECK(plan_error(named, gpt, request, 2) == "no schedule is called 'mine'");
    named.schedule = {};
    CHECK(plan_error(named, gpt, request, 2) == "a plan needs a schedule");
}

TEST_CASE("make_plan: the memory limit decides; errors name keys")
{
    planning_request request{.schedule = one_f_one_b{}, .pipelines = {2}, .failures = 0};
    auto const plain = make_plan(gpt, request, 2);
    REQUIRE(plain);
    bytes fullest;
    for (rank_id r{0}; r.value < 2; ++r) {
        fullest = std::max(fullest, needed_bytes(memory_parts_of(plain->plan, gpt, request.microbatch, request.policy, r)));
    }
    request.memory_limit = fullest;
    CHECK(plan_error(plain->plan, gpt, request, 2).empty());
    request.memory_limit = fullest - bytes{1};
    CHECK(plan_error(plain->plan, gpt, request, 2).find("of state and activations, but plan.memory_mib is ") != std::string::npos);
    request.memory_limit = bytes{104857};  // what 0.1 MiB is in whole bytes
    CHECK(make_plan(gpt, request, 2).error().starts_with("no pipeline of 2 ranks keeps within plan.memory_mib = 0.1; the least that one needs is "));
    request.memory_limit = mebibytes(2);
    CHECK(make_plan(gpt, request, 2).error().starts_with("no pipeline of 2 ranks keeps within plan.memory_mib = 2; the least that one needs is "));
}

TEST_CASE("make_plan: the least memory of a refusal is the least")
{
    std::string const says = "; the least that one needs is ";
    int refused = 0;
    for (auto const family : schedule_families()) {
        for (auto const recompute : {recompute_policy::never, recompute_policy::automatic, recompute_policy::selective}) {
            for (std::vector<int> const& pipelines : {std::vector{1}, std::vector{3}, std::vector{2, 2}, std::vector<int>{}}) {
                if (cuts_sequences(family) && recompute == recompute_policy::automatic) {
                    continue;  // slices are kept
                }
                INFO(name_of(family) << ", " << static_cast<int>(recompute) << ", pipelines " << pipelines.size());
                auto const ranks = pipelines.empty() ? 4 : std::accumulate(pipelines.begin(), pipelines.end(), 0);
                planning_request request{.schedule = family,
                                         .microbatch = {4, 64, cuts_sequences(family) ? 2 : 1},
                                         .pipelines = pipelines,
                                         .failures = 0,
                                         .memory_limit = bytes{20000},
                                         .recompute = recompute};
                auto const error = make_plan(gpt, request, ranks).error();
                auto const place = error.find(says);
                if (place == std::string::npos) {
                    CHECK(error.find(" can be made for ") != std::string::npos);
                    continue;
                }
                ++refused;
                auto const least = std::stod(error.substr(place + says.size()));
                request.memory_limit = bytes{static_cast<std::int64_t>(least * (1 << 20))};
                CHECK(make_plan(gpt, request, ranks).error() == "");
                request.memory_limit = bytes{static_cast<std::int64_t>((least * 0.999 - 0.011) * (1 << 20))};
                auto const below = make_plan(gpt, request, ranks).error();
                REQUIRE(below.find(says) != std::string::npos);
                CHECK(std::stod(below.substr(below.find(says) + says.size())) == Approx(least).epsilon(0.002));
            }
        }
    }
    CHECK(refused > 100);
}

TEST_CASE("make_plan: times are of the described machine")
{
    planning_request request{.schedule = one_f_one_b{}, .pipelines = {4}, .failures = 0};
    auto const slow = make_plan(gpt, request, 4);
    request.machine.between_nodes = {{1.0}, {1.0}};  // a message takes longer than all layers
    auto const slower = make_plan(gpt, request, 4);
    REQUIRE(slow);
    REQUIRE(slower);
    CHECK(slow->time < slower->time);
    request.pipelines.clear();
    auto const apart = make_plan(gpt, request, 4);
    REQUIRE(apart);
    CHECK(apart->plan.pipelines.size() == 4);  // so no rank sends any
}

TEST_CASE("make_forecast: a loss leads to what replanning makes")
{
    planning_request const request{.schedule = one_f_one_b{}, .pipelines = {2, 3}, .shares = {3, 5}, .failures = 1};
    auto const made = make_plan(gpt, request, 5);
    REQUIRE(made);
    auto const forecast = make_forecast(made->plan, gpt, request);
    REQUIRE(forecast.ranks.size() == 5);
    CHECK(forecast.as_it_stands.ranks == 1);
    auto const known = make_replanning(gpt, request, 5);
    for (auto const& outcome : forecast.ranks) {
        CHECK_FALSE(outcome.only_copy);
        CHECK(outcome.next.pipelines == outcome_of(outcome.lost, made->plan, known, membership_rules_of(request)).next.pipelines);
    }
    for (auto const& rank : forecast.memory) {
        CHECK(rank.parts == memory_parts_of(made->plan, gpt, request.microbatch, request.policy, rank.rank));
    }
    CHECK(forecast.instantiations.size() == 5);
    CHECK(forecast.step == made->time);
}

TEST_CASE("make_plan: the shortest step of all schedules and degrees")
{
    auto const model = on_grid(gpt, 2);
    for (int const ranks : {1, 3, 4, 6}) {
        for (int const failures : {0, 1}) {
            INFO(ranks << " ranks, " << failures << " failures");
            planning_request request{.schedule = one_f_one_b{}, .candidates = schedules_of_whole_sequences(), .tensor = {{0}}, .failures = failures};
            auto const chosen = make_plan(model, request, ranks);
            REQUIRE(chosen);
            auto const degrees = std::min(2, ranks);
            REQUIRE(chosen->compared.size() == request.candidates.size() * static_cast<std::size_t>(degrees));
            CHECK(std::is_sorted(chosen->compared.begin(), chosen->compared.end(),
                                 [](compared_plan const& a, compared_plan const& b) { return a.degraded != b.degraded ? b.degraded : a.time < b.time; }));
            CHECK(chosen->compared.front().schedule == chosen->plan.schedule);
            CHECK(chosen->compared.front().degree == largest_group(chosen->plan));
            CHECK(chosen->compared.front().time == chosen->time);
            CHECK(chosen->compared.front().fullest == fullest_rank(chosen->plan, model, request));
            for (auto const schedule : std::exchange(request.candidates, {})) {
                request.schedule = schedule;
                for (int degree = 1; degree <= degrees; ++degree) {
                    request.tensor = {{degree}};
                    auto const alone = make_plan(model, request, ranks);
                    REQUIRE(alone);
                    CHECK((alone->degraded > chosen->degraded || time_of_step(alone->plan, model, request) >= chosen->time));
                }
            }
        }
    }
}

TEST_CASE("make_plan: a schedule that runs as another loses the tie")
{
    planning_request const request{
        .schedule = one_f_one_b{}, .candidates = {dualpipe{}, one_f_one_b{}}, .pipelines = {3}, .failures = 0};  // DualPipe needs an even number of ranks
    auto const chosen = make_plan(gpt, request, 3);
    REQUIRE(chosen);
    CHECK(name_of(chosen->plan.schedule) == "1f1b");
    REQUIRE(chosen->compared.size() == 2);
    CHECK(chosen->compared[0].instead.empty());
    CHECK(chosen->compared[1].instead.starts_with("1f1b: dualpipe cannot be made for 3 ranks"));
    CHECK(chosen->compared[1].time == chosen->time);
}

TEST_CASE("make_plan: recomputation takes time, so cuts may save it")
{
    planning_request request{.schedule = gpipe{}, .pipelines = {1}, .failures = 0};
    auto const plain = make_plan(gpt, request, 1);
    request.recompute = recompute_policy::always;
    auto const again = make_plan(gpt, request, 1);
    REQUIRE(plain);
    REQUIRE(again);
    seconds forwards;
    for (auto const& layer : planned_layers(gpt, request)) {
        forwards += layer.forward * static_cast<double>(request.microbatches);
    }
    CHECK((time_of_step(again->plan, gpt, request) - time_of_step(plain->plan, gpt, request)).count == Approx(forwards.count).epsilon(1e-4));

    // An item whose backward comes next keeps its activation, so with 1F1B the last rank recomputes nothing.
    for (int const ranks : {1, 2, 4}) {
        request = {.schedule = one_f_one_b{}, .pipelines = {ranks}, .failures = 0};
        auto const keeps = make_plan(gpt, request, ranks);
        request.recompute = recompute_policy::always;
        auto const drops = make_plan(gpt, request, ranks);
        REQUIRE(keeps);
        REQUIRE(drops);
        auto const before = time_of_step(keeps->plan, gpt, request);
        auto const after = time_of_step(drops->plan, gpt, request);
        CHECK(after.count < before.count + forwards.count);
        CHECK((ranks == 1 ? after.count == Approx(before.count).epsilon(1e-9) : after > before));
        CHECK(parts_of_step(drops->plan, gpt, request, after).waiting > -1e-4);
    }

    // With less memory than gpipe needs, the shorter of recomputation and a schedule that holds less.
    request = {.schedule = one_f_one_b{}, .candidates = {gpipe{}, one_f_one_b{}}, .pipelines = {4}, .failures = 0};
    auto const unlimited = make_plan(gpt, request, 4);
    REQUIRE(unlimited);
    request.memory_limit = unlimited->compared.back().fullest - bytes{1};  // gpipe's: both take as long
    request.recompute = recompute_policy::automatic;
    auto const limited = make_plan(gpt, request, 4);
    REQUIRE(limited);
    CHECK(name_of(limited->plan.schedule) == "1f1b");
    CHECK_FALSE(limited->compared.front().recomputes);
    CHECK(limited->compared.back().recomputes);
    CHECK(limited->compared.back().time > limited->time);
    CHECK(fullest_rank(limited->plan, gpt, request) <= *request.memory_limit);

    request.memory_limit = bytes{1000};
    auto const refused = make_plan(gpt, request, 4).error();
    CHECK(refused.starts_with("plan.schedule = \"auto\": no schedule has a plan; with gpipe, "));
    CHECK(refused.find("; the least that one needs is ") != std::string::npos);
}
