// SPDX-License-Identifier: Apache-2.0
// What a job says before it begins: the model, a step, the plan, and the memory of the rank that needs most.
#include "executor/plan/job_summary.hpp"

#include <algorithm>

#include "executor/plan/amount_text.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("job_summary: a job in a few lines")
{
    run_config config;
    config.model.blocks = 6;
    config.train.microbatches = 12;
    config.plan.pipelines = {3, 2};
    auto const model = gpt_model(config.model);
    auto const first = make_plan(model, config, 5);
    REQUIRE(first.error() == "");
    auto lines = job_summary(first->plan, model, config, 123'456, "", true);
    REQUIRE(lines.size() == 5);
    CHECK(lines[0].starts_with("model   8 layers, "));
    CHECK(lines[1] == "step    3072 tokens in 12 microbatches of 4 x 64; the data have 123.5 k tokens");
    CHECK(lines[2].starts_with("plan    2 pipelines of 3 + 2 ranks, 1f1b, microbatches "));
    CHECK(lines[4] == "the first step is computed twice: its first attempt finds the scales of its sums");
    bytes most{};
    for (auto const& pipeline : first->plan.pipelines) {
        for (auto const rank : ranks_of(pipeline)) {
            most = std::max(most, needed_bytes(memory_parts_of(first->plan, model, config, rank)));
        }
    }
    auto const needed = static_cast<double>(most.count) / 1048576.0;
    CHECK(lines[3].starts_with("memory  at most " + memory_text(needed) + " on rank "));
    config.plan.memory = mebibytes(64);
    lines = job_summary(first->plan, model, config, 123'456, "each sequence once per epoch", false);
    REQUIRE(lines.size() == 5);
    CHECK(lines[2] == "data    each sequence once per epoch");
    CHECK(lines[4].find(" of plan.memory_mib = 64 on rank ") != std::string::npos);
}
