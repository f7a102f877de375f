// SPDX-License-Identifier: Apache-2.0
// Steps of equal pipelines of equal stages: the simulation, instruction by instruction, gives the closed form.
#include "rheo/topology/link.hpp"
#include "steps.hpp"
#include "support/public_vectors.hpp"

using namespace rheo;

TEST_CASE("equal_stages: a simulated step takes the closed form")
{
    test::vector_table const table{test::read_vectors("sweep/equal_stages.csv")};
    for (auto const& line : table.lines) {
        CAPTURE(line);
        auto const stages = static_cast<int>(table.integer(line, "stages"));
        auto const count = static_cast<int>(table.integer(line, "microbatches"));
        auto const pipelines = static_cast<int>(table.integer(line, "pipelines"));
        units_by_stage units;
        stage_cost cost{};
        cost.forward = {table.number(line, "forward_s")};
        cost.backward = {table.number(line, "backward_s")};
        stage_costs const costs(static_cast<std::size_t>(stages), cost);
        for (int s = 0; s < stages; ++s) {
            units.push_back({reduction_id{s}});
        }
        modelled_step step{};
        for (int p = 0; p < pipelines; ++p) {
            std::vector<rank_id> ranks;
            for (int s = 0; s < stages; ++s) {
                ranks.push_back(rank_id{p * stages + s});
            }
            auto const lowered = lower(one_f_one_b::program(stages, test::microbatches(p * count, (p + 1) * count)));
            step.pipelines.push_back({with_reductions(lowered, units, stages), ranks, costs});
        }
        modelled_link const link{{table.number(line, "latency_s")}, {table.number(line, "bytes_per_s")}};
        step.reductions.assign(static_cast<std::size_t>(stages), reduction_time(link, {table.integer(line, "stage_bytes")}, pipelines));
        auto const simulated = rehearse_step(step);
        REQUIRE(simulated.sound.ok);
        CHECK(simulated.end.count == Approx(table.number(line, "step_s")).epsilon(1e-12).scale(0.0).margin(0.0));
    }
}
