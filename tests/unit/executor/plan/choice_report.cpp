// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/choice_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/config/files/schedule_file.hpp"
#include "executor/plan/forecast_json.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

struct chosen_plan {
    run_config config;
    initial_plan made;
    step_limits limits;
};

chosen_plan choose(run_config config, int ranks)
{
    auto const model = gpt_model(config.model);
    auto made = make_plan(model, config, ranks);
    REQUIRE(made);
    auto const limits = limits_of_step(made->plan, model, config, ranks);
    settle_choices(config, made->plan);
    return {std::move(config), *std::move(made), limits};
}

}  // namespace

TEST_CASE("choice_report: the best plans and what binds")
{
    run_config config;
    config.plan.schedule = automatic_schedule();
    auto const chosen = choose(config, 4);
    CHECK(chosen.config.plan.schedule == chosen.made.plan.schedule);
    CHECK(chosen.made.compared.size() == schedule_family_count - 1);  // one cuts sequences
    auto const text = format_comparison(chosen.made.compared, "as modelled");
    CHECK(text.starts_with("\nplans compared (steps as modelled)\n  schedule"));
    CHECK(text.find("  chosen\n") != text.npos);
    CHECK(text.find("\n  and ") != text.npos);
    CHECK(std::count(text.begin(), text.end(), '\n') == 12);  // an empty line, two of titles, eight plans, one of the rest

    config.train.microbatch.slices = 2;
    CHECK(choose(config, 4).made.compared.size() == schedule_family_count);

    config = {};
    CHECK(format_comparison(choose(config, 4).made.compared, "as modelled").empty());
    auto const bound = format_limits(
        {.step = milliseconds(100), .without_memory_limit = milliseconds(70), .without_link_time = milliseconds(90), .without_waiting = milliseconds(80)},
        "as modelled");
    CHECK(bound ==
          "\nwhat binds (a step of 100.000 ms, as modelled)\n"
          "  without                            a step\n"
          "  waiting in the pipeline         80.000 ms\n"
          "  time of messages and exchanges  90.000 ms\n"
          "  plan.memory_mib                 70.000 ms  binds\n");
    CHECK(format_limits({.step = milliseconds(100), .without_link_time = milliseconds(99.5), .without_waiting = milliseconds(99.5)}, "as modelled")
              .find("computation: nothing else costs 1 %") != bound.npos);
}

TEST_CASE("choice_report: JSON has every plan that was compared")
{
    run_config config;
    config.plan.schedule = automatic_schedule();
    config.plan.memory = choose(config, 4).made.compared.front().fullest - bytes{1};
    config.plan.recompute = recompute_policy::automatic;
    auto const chosen = choose(config, 4);
    auto const f = make_forecast(chosen.made.plan, gpt_model(config.model), chosen.config);
    auto const read = nlohmann::json::parse(plan_as_json(chosen.made, f, chosen.limits))["forecast"];
    REQUIRE(read["compared"].size() == chosen.made.compared.size());
    for (std::size_t i = 0; i < chosen.made.compared.size(); ++i) {
        auto const& one = chosen.made.compared[i];
        auto const& row = read["compared"][i];
        CHECK(row["schedule"] == name_of(one.schedule));
        CHECK(row["tensor"] == one.degree);
        CHECK(row.contains("error") == !one.error.empty());
        CHECK((!one.error.empty() || (row["step_s"] == one.time.count && row["needed_bytes"] == one.fullest.count)));
    }
    CHECK(read["step_without_s"]["waiting"] == chosen.limits.without_waiting.count);
    CHECK(read["step_without_s"]["memory_limit"] == chosen.limits.without_memory_limit->count);
    CHECK(read["binds"] == name_of(binding_limit(chosen.limits)));
}
