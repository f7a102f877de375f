// SPDX-License-Identifier: Apache-2.0
// The loss of a rank, played without hardware: the program that the ranks run, on modelled time up to the loss, what the survivors
// have finished by then, and so what is not computed again.
#include <cstdio>
#include <vector>

#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/played_step/play_step.hpp"

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
    std::vector<network_level<>> const machine{{5, network_topology::full, {microseconds(20), {5e9}}}};
    array_view<network_level<> const> const network{machine};
    std::printf("undisturbed, the step takes %.1f s\n", play_step<contended_network>(step, network)->end.count);

    constexpr auto detection = milliseconds(200);
    for (double const when : {2.5, 6.5, 9.5}) {
        modelled_loss const loss{rank_id{3}, {when}};
        auto const played = play_step<contended_network>(step, network, {}, {array_view{&loss, 1}, loss.at + detection});
        std::printf("rank 3 is lost at %.1f s; the others have left the step at %.1f s, with backwards of", when, played->end.count);
        int kept = 0;
        for (auto const& row : played->rows) {
            auto const& program = step.pipelines[at(row.pipeline)].program.rows[static_cast<std::size_t>(row.position)];
            int backwards = 0;
            for (std::size_t k = 0; k < row.done; ++k) {
                backwards += program[k].kind == instruction_kind::backward ? 1 : 0;
            }
            if (row.rank != loss.rank) {
                std::printf(" rank %d: %d,", row.rank.value, backwards);
                kept += backwards;
            }
        }
        std::printf(" %d of 20 kept\n", kept);
    }
}
