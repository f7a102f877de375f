// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/equal_pipelines.hpp"

#include <numeric>

#include "executor/plan/plan_report.hpp"
#include "executor/plan/plan_tables.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("equal_pipelines: long lists are written by their runs")
{
    CHECK(format_sum({}).empty());
    CHECK(format_sum({2, 3}) == "2 + 3");
    CHECK(format_sum({1, 1, 1, 1, 1, 1, 1, 1}) == "1 + 1 + 1 + 1 + 1 + 1 + 1 + 1");
    CHECK(format_sum({2, 2, 2, 2, 3, 3, 3, 3, 9}) == "4 x 2 + 4 x 3 + 9");
    std::vector<int> numbers(20);
    std::iota(numbers.begin(), numbers.end(), 1);
    CHECK(format_sum(numbers) == "1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + ... (12 more runs)");
    CHECK(format_numbers(numbers) == "1 to 20");
    numbers.push_back(40);
    CHECK(format_numbers(numbers) == "1 to 20, 40");
    CHECK(format_numbers({1, 3, 7}) == "1, 3, 7");
    std::vector<int> odd;
    for (int i = 0; i < 30; ++i) {
        odd.push_back(2 * i + 1);
    }
    CHECK(format_numbers(odd) == "1, 3, 5, 7, 9, 11, 13, ... 59");
}

TEST_CASE("equal_pipelines: sizes of pipelines")
{
    auto const sizes_of = [](std::vector<int> const& sizes) {
        std::vector<pipeline_instance> pipelines;
        rank_id next{0};
        for (auto const size : sizes) {
            pipelines.push_back({{layer_id{0}, layer_id{1}}, {}});
            for (int s = 0; s < size; ++s, ++next) {
                pipelines.back().stages.push_back({next});
            }
        }
        return format_sizes(pipelines);
    };
    CHECK(sizes_of({3, 2}) == "2 pipelines of 3 + 2 ranks");
    CHECK(sizes_of(std::vector(12, 2)) == "12 pipelines of 2 ranks");
    CHECK(sizes_of(std::vector(12, 1)) == "12 pipelines of 1 rank");
    CHECK(sizes_of({2, 2, 2, 2, 2, 2, 2, 2, 3}) == "9 pipelines of 8 x 2 + 3 ranks");
}

TEST_CASE("equal_pipelines: a plan of many ranks fits a screen")
{
    run_config config;
    config.model.blocks = 4;
    config.train.microbatches = 4000;
    config.plan.failures = 1;
    config.plan.spares = 3;
    config.plan.pipelines = {};
    config.plan.min_ranks = 4;
    auto const model = running_model(config);
    auto const first = make_plan(model, config, 1000);
    REQUIRE(first);
    auto const kinds = kinds_of_pipelines(first->plan);
    CHECK(kinds.size() < 5);
    std::size_t all = 0;
    for (auto const& kind : kinds) {
        all += kind.size();
        for (auto const i : kind) {
            CHECK(first->plan.pipelines[i].cuts == first->plan.pipelines[kind.front()].cuts);
            CHECK(first->plan.work[i].size() == first->plan.work[kind.front()].size());
        }
    }
    CHECK(all == first->plan.pipelines.size());
    auto const f = make_forecast(first->plan, model, config);
    auto const text = format_plan(first->plan, model, config, f);
    CHECK(std::count(text.begin(), text.end(), '\n') < 130);
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
        end = text.find('\n', begin);
        CHECK(end - begin < 260);
    }
    CHECK(text.find(" like it: ") != std::string::npos);
    CHECK(text.find(" (1 of ") != std::string::npos);
}
