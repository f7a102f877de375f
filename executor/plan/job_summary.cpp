// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/job_summary.hpp"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "executor/plan/amount_text.hpp"
#include "executor/plan/equal_pipelines.hpp"
#include "executor/plan/plan_tables.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace {

std::string size_text(bytes size) { return memory_text(in_mebibytes(size)); }

/// The rank of the plan that needs most; of pipelines that are alike the first one is looked at.
std::pair<rank_id, memory_parts> fullest_rank(plan const& p, model_description const& model, run_config const& config)
{
    std::pair<rank_id, memory_parts> fullest{};
    for (auto const& kind : kinds_of_pipelines(p)) {
        for (auto const rank : ranks_of(p.pipelines[kind.front()])) {
            auto parts = memory_parts_of(p, model, config, rank);
            if (needed_bytes(parts) > needed_bytes(fullest.second)) {
                fullest = {rank, std::move(parts)};
            }
        }
    }
    return fullest;
}

}  // namespace

std::vector<std::string> job_summary(plan const& p, model_description const& model, run_config const& config, std::int64_t training_tokens,
                                     std::string const& order, bool is_new)
{
    std::int64_t parameters = 0;
    for (auto const& layer : model.layers) {
        parameters += parameter_count(layer);
    }
    auto const& train = config.train;
    auto const tokens = std::int64_t{train.microbatches} * train.microbatch.sequences * train.microbatch.tokens;
    std::vector<int> shares;
    for (auto const& work : p.work) {
        shares.push_back(static_cast<int>(work.size()));
    }
    auto const [rank, parts] = fullest_rank(p, model, config);
    auto const limit = config.plan.memory > bytes{} ? fmt::format(" of plan.memory_mib = {:g}", in_mebibytes(config.plan.memory)) : std::string{};
    std::vector<std::string> lines{
        fmt::format("model   {} layers, {} parameters", model.layers.size(), count_text(static_cast<double>(parameters))),
        fmt::format("step    {} tokens in {} microbatches of {} x {}; the data have {} tokens", count_text(static_cast<double>(tokens)), train.microbatches,
                    train.microbatch.sequences, train.microbatch.tokens, count_text(static_cast<double>(training_tokens))),
        fmt::format("plan    {}, {}, microbatches {}", format_sizes(p.pipelines), name_of(p.schedule), format_sum(shares)),
        fmt::format("memory  at most {}{} on rank {}: state {}, activations {}", size_text(needed_bytes(parts)), limit, rank.value,
                    size_text(total(parts.state)), size_text(item_bytes(parts)))};
    if (!order.empty()) {
        lines.insert(lines.begin() + 2, fmt::format("data    {}", order));
    }
    if (is_new) {
        lines.emplace_back("the first step is computed twice: its first attempt finds the scales of its sums");
    }
    return lines;
}

}  // namespace rheo::inline v0
