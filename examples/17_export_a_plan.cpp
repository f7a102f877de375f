// SPDX-License-Identifier: Apache-2.0
// A plan as Chakra execution traces, one file per rank as simulators read them, and what the step takes on two networks: who waits for what, before
// anything runs. Two pipelines of different lengths share the gradients of a GPT-2.
#include <cstdio>
#include <string>
#include <vector>

#include "rheo/model/gpt.hpp"
#include "rheo/model/state.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/simulate/chakra/play_traces.hpp"
#include "rheo/simulate/chakra/write_execution.hpp"
#include "rheo/trace/chakra/read_rank.hpp"
#include "rheo/trace/chakra/reader.hpp"

using namespace rheo;

int main()
{
    auto const model = gpt_model({.vocabulary = 50257, .context = 1024, .width = 768, .heads = 12, .blocks = 12});
    auto const layers = static_cast<int>(model.layers.size());
    plan p{};
    p.schedule = one_f_one_b{};
    p.pipelines = {{{layer_id{0}, layer_id{8}, layer_id{14}}, {{rank_id{0}}, {rank_id{1}}}},
                   {{layer_id{0}, layer_id{5}, layer_id{10}, layer_id{14}}, {{rank_id{2}}, {rank_id{3}}, {rank_id{4}}}}};
    p.work = deal(std::vector{4, 6});

    auto const step = *step_programs_of(p, reduction_units(state_of(model), layers), layers);
    auto const sizes = sizes_of(p, model, {.sequences = 1, .tokens = 1024}, bf16);
    auto const order = order_execution(step, 5);
    std::vector<std::string> files(5);
    for (std::size_t i = 0; i < step.ranks.size(); ++i) {
        for (std::size_t k = 0; k < step.ranks[i].size(); ++k) {
            auto const rank = step.ranks[i][k];
            auto const nodes = execution_nodes(step, sizes, order, {i, k}, 5);
            write_execution([&](std::string_view bytes) { files[at(rank)] += bytes; }, rank, array_view{nodes});
        }
    }

    chakra_trace_set traces{{}, with_all_ranks(order.groups, 5)};
    for (std::int32_t rank = 0; rank < 5; ++rank) {
        traces.ranks.push_back(*read_rank(chakra_bytes{files[static_cast<std::size_t>(rank)]}, {rank, 5, traces.groups}));
    }
    chakra_play_rules<contended_network> rules{};
    rules.devices.assign(5, {{100e12}, {2e12}, {}});  // operations and bytes a second
    for (double const rate : {50e9, 10e9}) {
        std::vector<network_level<>> const levels{{5, network_topology::switched, {microseconds(5.0), {rate}}}};
        auto const played = *play_traces<contended_network>(traces, levels, rules);
        std::printf("links of %2.0f GB/s: %.1f ms\n", rate / 1e9, in_milliseconds(played.end));
        for (std::size_t r = 0; r < 5; ++r) {
            std::printf("  rank %zu: %2zu nodes, computes for %.1f ms, waits for messages and sums for %.1f ms\n", r, traces.ranks[r].steps.size(),
                        in_milliseconds(played.ranks[r].busy), in_milliseconds(played.ranks[r].exposed));
        }
    }
}
