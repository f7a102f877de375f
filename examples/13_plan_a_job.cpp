// SPDX-License-Identifier: Apache-2.0
// What `rheo plan` knows, as a library call: the plan of a job, the memory of its ranks, what each loss leads to.
#include <cstdio>

#include <rheo/model/gpt.hpp>
#include <rheo/planner/make_forecast.hpp>
#include <rheo/planner/make_plan.hpp>
#include <rheo/schedule/families/zb_h1.hpp>

int main()
{
    auto const model = rheo::gpt_model({.vocabulary = 256, .context = 128, .width = 128, .heads = 4, .blocks = 6});
    rheo::planning_request const request{
        .schedule = rheo::zb_h1{}, .microbatches = 16, .microbatch = {4, 128}, .failures = 1, .min_ranks = 2, .memory_limit = rheo::mebibytes(80)};
    auto const made = rheo::make_plan(model, request, 7);
    if (!made) {
        std::printf("no plan: %s\n", made.error().c_str());
        return 1;
    }
    auto const forecast = rheo::make_forecast(made->plan, model, request);
    for (auto const& rank : forecast.memory) {
        auto const place = rheo::position_of(made->plan, rank.rank);
        std::printf("rank %d: pipeline %d, %.1f MiB\n", rank.rank.value, place.pipeline.value, rheo::in_mebibytes(needed_bytes(rank.parts)));
    }
    std::printf("%s\n", to_string(forecast.as_it_stands).c_str());
    for (auto const& after : forecast.ranks) {
        std::printf("without rank %d: %zu pipelines, %.1f MiB copied\n", after.lost.front().value, after.next.pipelines.size(),
                    rheo::in_mebibytes(after.next.copies.certificate.moved.value));
    }
    auto smaller = request;
    smaller.memory_limit = rheo::mebibytes(8);
    std::printf("with 8 MiB: %s\n", make_plan(model, smaller, 7).error().c_str());
}
