// SPDX-License-Identifier: Apache-2.0
#include "executor/report/memory_section.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/plan/planning.hpp"
#include "executor/records/recorded_memory.hpp"

namespace rheo::inline v0 {

namespace {

using nlohmann::json;

std::optional<bytes> bytes_of(json const& rank, std::string const& key)
{
    return rank.contains(key) ? std::optional{bytes{rank.value(key, std::int64_t{0})}} : std::nullopt;
}

/// A part of the plan as planned and as measured; what is not known is not there.
struct compared_part {
    std::string name;
    std::optional<bytes> planned{};
    std::optional<bytes> measured{};
};

/// What a rank measured belongs to the last plan that it ran, whose figures it wrote beside it; a killed rank wrote nothing, and has the first plan's.
std::vector<compared_part> parts_of_rank(run_folder const& run, std::optional<model_description> const& model, json const& rank)
{
    auto const first = model ? std::optional{memory_parts_of(*run.first, *model, run.config, rank_id{rank.value("rank", 0)})} : std::nullopt;
    std::vector<compared_part> parts;
    for (auto const& part : recorded_memory(first.value_or(memory_parts{}))) {
        std::string const key{part.name};
        auto const planned = bytes_of(rank, "planned_" + key + "_bytes");
        parts.push_back({key, planned ? planned : first ? std::optional{part.size} : std::nullopt, bytes_of(rank, "measured_" + key + "_bytes")});
        std::replace(parts.back().name.begin(), parts.back().name.end(), '_', ' ');
    }
    return parts;
}

/// None where one of them is not known.
std::optional<bytes> sum(std::optional<bytes> a, std::optional<bytes> b) { return a && b ? std::optional{*a + *b} : std::nullopt; }

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
    std::vector<compared_part> all;
    for (auto const& rank : run.ranks) {
        auto const parts = parts_of_rank(run, model, rank);
        compared_part total{"", bytes{}, bytes{}};
        for (auto const& part : parts) {
            total = {"", sum(total.planned, part.planned), sum(total.measured, part.measured)};
        }
        auto const name = fmt::format("rank {}", rank.value("rank", 0));
        auto const host = rank.value("host", "");
        if (bars.size() < most_lanes) {
            bars.push_back({{"name", name + (host.empty() ? "" : ", " + host)}, {"bars", page_block::array({bar(0, total.planned), bar(1, total.measured)})}});
        }
        rows.push_back({name, host, amount(total.planned), amount(total.measured), amount(bytes_of(rank, "peak_memory_bytes"))});
        if (total.measured) {
            all.resize(parts.size(), {"", bytes{}, bytes{}});
            for (std::size_t i = 0; i < parts.size(); ++i) {
                all[i] = {parts[i].name, sum(all[i].planned, parts[i].planned), sum(all[i].measured, parts[i].measured)};
            }
        }
    }
    table_column const columns[] = {{"rank"}, {"host"}, {"planned", true}, {"measured", true}, {"whole process, peak", true}};
    page_block const drawn{{"type", "bars"}, {"parts", {"planned", "measured"}}, {"rows", std::move(bars)}};
    auto blocks = page_block::array({drawn});
    if (run.ranks.size() > most_lanes) {
        blocks.push_back(note_block(fmt::format("The bars show {} of {} ranks; the table has all.", most_lanes, run.ranks.size())));
    }
    blocks.push_back(table_block(columns, std::move(rows)));
    if (!all.empty()) {
        auto by_part = page_block::array();
        for (auto const& part : all) {
            by_part.push_back({part.name, amount(part.planned), amount(part.measured)});
        }
        table_column const part_columns[] = {{"part, of all ranks that measured"}, {"planned", true}, {"measured", true}};
        blocks.push_back(table_block(part_columns, std::move(by_part)));
    }
    blocks.push_back(note_block(
        "Planned and measured are of the same parts: parameters, moments, accumulators, reduced gradients, and the most that a step holds of activations. "
        "The whole process has workspaces, libraries, data and buffers for messages besides. A rank that was killed has left no measurement."));
    return blocks;
}

}  // namespace rheo::inline v0
