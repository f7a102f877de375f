#pragma once
// SPDX-License-Identifier: Apache-2.0

// Plans of any schedule family on any number of ranks, and their execution traces in memory.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rheo/model/gpt.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/schedule/families/schedule_form.hpp"
#include "rheo/simulate/chakra/write_execution.hpp"
#include "rheo/trace/chakra/read_rank.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "support/catch.hpp"

namespace test {

using namespace rheo;

inline constexpr microbatch_shape small_shape{.sequences = 1, .tokens = 8};

/// With tied tables: layers of three kinds.
inline model_description deep_gpt(int blocks = 30) { return gpt_model({.vocabulary = 32, .context = 8, .width = 16, .heads = 2, .blocks = blocks}); }

/// Layers dealt evenly to the stages of a family on these ranks; none where the family cannot have so many.
inline std::optional<pipeline_instance> pipeline_on(any_schedule family, std::vector<rank_id> const& ranks, int layers)
{
    auto const form = form_of(family, static_cast<int>(ranks.size()));
    if (!form || stages_per_copy(form->where) > layers) {
        return std::nullopt;
    }
    auto const stages = stages_per_copy(form->where);
    pipeline_instance pipeline;
    for (int s = 0; s <= stages; ++s) {
        pipeline.cuts.push_back(layer_id{s * layers / stages});
    }
    for (int const position : form->where.positions) {
        pipeline.stages.push_back({ranks[static_cast<std::size_t>(position)]});
    }
    return pipeline;
}

/// Pipelines of these numbers of ranks, one after the other; none where the family has one of them not.
inline std::optional<plan> plan_on(any_schedule family, std::vector<int> const& pipelines, std::vector<int> const& microbatches, int layers)
{
    plan p{};
    p.schedule = family;
    int next = 0;
    for (auto const count : pipelines) {
        std::vector<rank_id> ranks;
        for (int r = 0; r < count; ++r) {
            ranks.push_back(rank_id{next++});
        }
        auto const pipeline = pipeline_on(family, ranks, layers);
        if (!pipeline) {
            return std::nullopt;
        }
        p.pipelines.push_back(*pipeline);
    }
    p.work = deal(microbatches);
    return p;
}

/// The files of all ranks of a step, by rank; of a rank that is lost one without nodes.
inline std::vector<std::string> files_of(step_programs const& step, step_sizes const& sizes, std::int32_t ranks)
{
    auto const order = order_execution(step, ranks);
    auto const voters = ranks_of(step).size();
    std::vector<std::string> files(static_cast<std::size_t>(ranks));
    auto const write = [&](rank_id rank, std::vector<execution_node> const& nodes) {
        write_execution([&](std::string_view piece) { files[at(rank)] += piece; }, rank, array_view{nodes});
    };
    for (std::int32_t r = 0; r < ranks; ++r) {
        write(rank_id{r}, {});
    }
    for (std::size_t p = 0; p < step.ranks.size(); ++p) {
        for (std::size_t k = 0; k < step.ranks[p].size(); ++k) {
            files[at(step.ranks[p][k])].clear();
            write(step.ranks[p][k], execution_nodes(step, sizes, order, {p, k}, voters));
        }
    }
    for (auto const rank : step.waiting) {
        files[at(rank)].clear();
        write(rank, waiting_nodes(order));
    }
    return files;
}

/// Read under the contract of consumers.
inline chakra_trace_set read_files(std::vector<std::string> const& files, std::vector<chakra_group> groups)
{
    auto const ranks = static_cast<std::int32_t>(files.size());
    chakra_trace_set traces{{}, with_all_ranks(std::move(groups), ranks)};
    for (std::int32_t r = 0; r < ranks; ++r) {
        auto read = read_rank(chakra_bytes{files[static_cast<std::size_t>(r)]}, {r, ranks, traces.groups});
        REQUIRE(read.error() == "");
        traces.ranks.push_back(*std::move(read));
    }
    return traces;
}

}  // namespace test
