// SPDX-License-Identifier: Apache-2.0
// The loss of a rank, rehearsed without hardware: the program that the ranks run, interpreted on modelled time up to the loss,
// what the survivors have finished by then, and so what is not recomputed.
#include <cstdio>

#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/simulate/loss.hpp"

using namespace rheo;

// Two pipelines of one model, 2 and 3 ranks, four microbatches each; an operation takes a second.
modelled_pipeline pipeline(std::vector<rank_id> ranks, int first_microbatch)
{
    std::vector<stage_work> work;
    for (int m = first_microbatch; m < first_microbatch + 4; ++m) {
        work.push_back({microbatch_id{m}, stage_id{0}});
    }
    auto const stages = static_cast<int>(ranks.size());
    return {lower(one_f_one_b::program(stages, work)), std::move(ranks), unit_costs(stages)};
}

int main()
{
    modelled_step const step{{pipeline({rank_id{0}, rank_id{1}}, 0), pipeline({rank_id{2}, rank_id{3}, rank_id{4}}, 4)},
                             {},
                             {0.1},
                             {0.1},
                             generation_id{1},
                             step_id{0},
                             attempt_id{0},
                             {0}};
    std::printf("undisturbed, the step takes %.1f s\n", rehearse_step(step).end.count);

    constexpr recovery_times phases{
        .detect = {0.2}, .revoke = {0.1}, .decide = {0.1}, .shrink = {0.1}, .link = {0}, .exchange = {0.1}, .plan = {0}, .copy = {0.5}, .merge = {0.1}};
    for (double const when : {2.5, 6.5, 9.5}) {
        modelled_loss const loss{rank_id{3}, {when}};
        auto const after = rehearse_losses(step, array_view{&loss, 1}, phases);
        std::printf("rank 3 is lost at %.1f s; %zu ranks continue at %.1f s as generation %d, with", when, after.survivors.size(), after.end.count,
                    after.generation.value);
        int kept = 0;
        for (auto const& f : after.finished) {
            kept += f.microbatches.size();
        }
        std::printf(" %d of 20 backwards kept:", kept);
        for (auto const& f : after.finished) {
            std::printf(" rank %d %d", f.rank.value, f.microbatches.size());
        }
        std::printf("\n");
    }
}
