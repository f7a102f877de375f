// SPDX-License-Identifier: Apache-2.0
// What a step waits for, from the records of its ranks: here of a rehearsal, else of a run (rheo analyze). A rank takes 1.3 times as long.
#include <cstdio>
#include <vector>

#include "rheo/analyze/step/run_analysis.hpp"
#include "rheo/analyze/step/slow_ranks.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/reductions.hpp"
#include "rheo/simulate/step.hpp"

using namespace rheo;

// A pipeline of 3 ranks with two equal layers each, six microbatches; a forward takes 10 ms, a message 1 ms.
modelled_pipeline pipeline(int first_rank)
{
    units_by_stage units;
    std::vector<rank_id> ranks;
    for (int s = 0; s < 3; ++s) {
        units.push_back({reduction_id{2 * s}, reduction_id{2 * s + 1}});
        ranks.push_back(rank_id{first_rank + s});
    }
    std::vector<stage_work> work;
    for (microbatch_id m{0}; m.value < 6; ++m) {
        work.push_back({m, stage_id{0}});
    }
    stage_cost const cost{milliseconds(10), milliseconds(20), milliseconds(10), milliseconds(10), milliseconds(1), milliseconds(1)};
    return {with_reductions(lower(one_f_one_b::program(3, work)), units, 6), ranks, stage_costs(3, cost)};
}

int main()
{
    modelled_step step{{pipeline(0), pipeline(3)}, std::vector<seconds>(6, milliseconds(2)), milliseconds(0.1), milliseconds(1), {}, {}, {}, {}};
    auto& slow = step.pipelines[1].costs[1];
    slow.forward = slow.forward * 1.3;
    slow.backward = slow.backward * 1.3;

    auto events = rehearse_step(step).events;  // or those of a run
    put_in_order(events);
    auto const run = recorded_steps(array_view<trace_event const>{events});
    auto const analysis = *analyze_run(run);

    std::printf("the step takes %.1f ms; its critical path:\n", in_milliseconds(analysis.span));
    for (std::size_t c = 0; c < step_class_count; ++c) {
        if (analysis.critical.of[c] > seconds{0.0}) {
            std::printf("  %-10s %6.1f ms, without it the step would take %.1f ms\n", step_class_names[c].data(), in_milliseconds(analysis.critical.of[c]),
                        in_milliseconds(analysis.span - analysis.saved.of[c]));
        }
    }
    std::printf("stages are idle for %.1f %% of the time, by the schedule for %.1f %%\n", 100 * analysis.breakdown.idle,
                100 * analysis.breakdown.idle_by_schedule);

    auto const loads = loads_of(run.steps, run.steps.front().generation, std::vector{0, 0, 0, 0, 0, 0});  // all layers are of one kind
    for (auto const& pace : slow_ranks(paces_of(loads, layer_times_of(loads)))) {
        std::printf("rank %d takes %.1f ms a microbatch where its layers take %.1f ms: %.2f times as long\n", pace.rank.value, in_milliseconds(pace.time),
                    in_milliseconds(pace.expected), slowness(pace));
    }
}
