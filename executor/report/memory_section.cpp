// SPDX-License-Identifier: Apache-2.0
#include "executor/report/memory_section.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "executor/plan/planning.hpp"

namespace rheo::inline v0 {

namespace {

using nlohmann::json;

/// Of one rank; what is not known is not there.
struct rank_memory {
    std::optional<bytes> planned_activations{};
    std::optional<bytes> measured_activations{};
    std::optional<bytes> planned_state{};
    std::optional<bytes> process{};
};

std::optional<bytes> bytes_of(json const& rank, char const* key)
{
    auto const size = rank.value(key, std::int64_t{0});
    return size > 0 ? std::optional{bytes{size}} : std::nullopt;
}

/// What a rank measured belongs to the last plan that it ran, which it wrote down with it; a killed rank wrote nothing, and has the first plan's figures.
rank_memory memory_of_rank(run_folder const& run, std::optional<model_description> const& model, json const& rank)
{
    rank_memory m;
    if (model) {
        auto const parts = memory_parts_of(*run.first, *model, run.config, rank_id{rank.value("rank", 0)});
        m.planned_activations = item_bytes(parts);
        m.planned_state = total(parts.state);
    }
    m.measured_activations = bytes_of(rank, "peak_activation_bytes");
    m.process = bytes_of(rank, "peak_memory_bytes");
    if (auto const planned = bytes_of(rank, "planned_activation_bytes")) {
        m.planned_activations = planned;
    }
    return m;
}

std::string amount(std::optional<bytes> size) { return size ? fmt::format("{:.1f} MiB", in_mebibytes(*size)) : "not known"; }

page_block bar(int part, std::optional<bytes> size)
{
    page_block made{{"part", part}, {"text", amount(size)}};
    if (size) {
        made["size"] = size->count;
    }
    return made;
}

}  // namespace

page_block memory_section(run_folder const& run, std::optional<model_description> const& model)
{
    auto bars = page_block::array();
    auto rows = page_block::array();
    for (auto const& rank : run.ranks) {
        auto const m = memory_of_rank(run, model, rank);
        auto const name = fmt::format("rank {}", rank.value("rank", 0));
        auto const host = rank.value("host", "");
        if (bars.size() < most_lanes) {
            bars.push_back({{"name", name + (host.empty() ? "" : ", " + host)},
                            {"bars", page_block::array({bar(0, m.planned_activations), bar(1, m.measured_activations)})}});
        }
        rows.push_back({name, host, amount(m.planned_activations), amount(m.measured_activations), amount(m.planned_state), amount(m.process)});
    }
    table_column const columns[] = {
        {"rank"}, {"host"}, {"activations, planned", true}, {"activations, measured", true}, {"state, planned", true}, {"whole process, peak", true}};
    page_block const drawn{{"type", "bars"}, {"parts", {"planned", "measured"}}, {"rows", std::move(bars)}};
    auto blocks = page_block::array({drawn});
    if (run.ranks.size() > most_lanes) {
        blocks.push_back(note_block(fmt::format("The bars show {} of {} ranks; the table has all.", most_lanes, run.ranks.size())));
    }
    blocks.push_back(table_block(columns, std::move(rows)));
    blocks.push_back(note_block(
        "Bars: activations, planned and measured of the same tensors, the most that a step holds. State: parameters, moments, accumulators and reduced gradients, "
        "by the first plan. The whole process has libraries, data and buffers for messages besides. A rank that was killed has left no measurement."));
    return blocks;
}

}  // namespace rheo::inline v0
