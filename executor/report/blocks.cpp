// SPDX-License-Identifier: Apache-2.0
#include "executor/report/blocks.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "executor/report/page_asset.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

page_block shown_number(double value)
{
    if (!std::isfinite(value)) {
        return nullptr;
    }
    std::array<char, 32> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 6).ptr;
    double shown = 0;
    std::from_chars(text.data(), end, shown);
    if (std::abs(shown) < 1e9 && shown == std::trunc(shown)) {  // a whole number is shorter as one
        return static_cast<std::int64_t>(shown);
    }
    return shown;
}

page_block note_block(std::string_view text) { return {{"type", "note"}, {"text", text}}; }

page_block error_block(std::string_view text) { return {{"type", "note"}, {"text", text}, {"bad", true}}; }

void facts_block::add(std::string_view name, std::string_view value) { rows_.push_back(page_block::array({name, value})); }

page_block facts_block::block() const { return {{"type", "facts"}, {"rows", rows_}}; }

page_block table_block(std::span<table_column const> columns, page_block rows)
{
    auto heads = page_block::array();
    for (auto const& column : columns) {
        page_block head{{"name", column.name}};
        if (column.is_number) {
            head["number"] = true;
        }
        if (column.is_code) {
            head["code"] = true;
        }
        heads.push_back(std::move(head));
    }
    return {{"type", "table"}, {"columns", std::move(heads)}, {"rows", std::move(rows)}};
}

namespace {

/// Of how many points two are kept.
std::size_t thinned_to_two(std::size_t points, std::size_t most)
{
    auto const pairs = (most - 2) / 2;  // the ends stay besides
    return (points + pairs - 1) / pairs;
}

}  // namespace

curve thinned(curve const& whole, std::size_t most)
{
    expects(whole.x.size() == whole.y.size(), "a curve has as many x as y");
    expects(most >= 4, "a thinned curve has its ends and two points between them at least");
    if (whole.x.size() <= most) {
        return whole;
    }
    auto const length = thinned_to_two(whole.x.size(), most);
    curve result{whole.name, {}, {}, whole.colour};
    auto const keep = [&](std::size_t i) {
        if (result.x.empty() || result.x.back() < whole.x[i]) {
            result.x.push_back(whole.x[i]);
            result.y.push_back(whole.y[i]);
        }
    };
    keep(0);
    for (std::size_t from = 0; from < whole.x.size(); from += length) {
        auto const to = std::min(from + length, whole.x.size());
        auto lowest = to;
        auto highest = to;
        for (auto i = from; i < to; ++i) {
            if (std::isfinite(whole.y[i])) {
                lowest = lowest == to || whole.y[i] < whole.y[lowest] ? i : lowest;
                highest = highest == to || whole.y[i] > whole.y[highest] ? i : highest;
            }
        }
        if (lowest == to) {  // nothing finite: a gap
            keep(from);
            continue;
        }
        keep(std::min(lowest, highest));
        keep(std::max(lowest, highest));
    }
    keep(whole.x.size() - 1);  // charts over the same steps have the same ends
    return result;
}

page_block curves_block(curve_chart const& chart)
{
    page_block x{{"name", chart.over_time ? "time since the launch" : "step"}};
    if (chart.over_time) {
        x["unit"] = "s";
    }
    page_block y = page_block::object();
    if (chart.from_zero) {
        y["from_zero"] = true;
    }
    auto curves = page_block::array();
    std::size_t longest = 0;
    for (auto const& whole : chart.curves) {
        longest = std::max(longest, whole.x.size());
        auto const c = thinned(whole, most_curve_points);
        page_block drawn{{"name", c.name}, {"x", page_block::array()}, {"y", page_block::array()}};
        if (c.colour >= 0) {
            drawn["colour"] = c.colour;
        }
        for (std::size_t i = 0; i < c.x.size(); ++i) {
            drawn["x"].push_back(shown_number(c.x[i]));
            drawn["y"].push_back(shown_number(c.y[i]));
        }
        curves.push_back(std::move(drawn));
    }
    auto marks = page_block::array();
    for (auto const& mark : chart.marks) {
        marks.push_back({{"x", shown_number(mark.x)}, {"text", mark.text}});
    }
    page_block block{{"type", "curves"},  {"name", chart.name},          {"label", chart.name},       {"x", std::move(x)},
                     {"y", std::move(y)}, {"curves", std::move(curves)}, {"marks", std::move(marks)}, {"group", chart.over_time ? "seconds" : "steps"}};
    if (chart.is_stacked) {
        expects(longest <= most_curve_points, "bands are drawn as they are");
        block["stacked"] = true;
    }
    if (longest > most_curve_points) {
        auto const length = thinned_to_two(longest, most_curve_points);
        block["note"] = fmt::format("Thinned: of every {} of {} points the lowest and the highest are drawn.", length, longest);
    }
    return block;
}

namespace {

/// What a legend calls it.
std::string text_of(activity kind)
{
    switch (kind) {
    case activity::forward: return "forward";
    case activity::backward: return "backward";
    case activity::input_gradient: return "input gradient";
    case activity::weight_gradient: return "weight gradient";
    case activity::recompute: return "recompute";
    case activity::await_reduction: return "wait for a reduction";
    case activity::decide: return "vote";
    default: break;
    }
    std::string text{name_of(kind)};
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

}  // namespace

bool is_drawn_in_lanes(trace_event const& e)
{
    return !is_instruction(e.activity) || is_work(static_cast<instruction_kind>(e.activity)) || e.activity == activity::await_reduction;
}

page_block lanes_block(std::span<trace_event const> events, lane_chart const& chart)
{
    expects(chart.begin < chart.end, "a drawing of lanes needs a span of time");
    auto const lanes = std::min(chart.ranks.size(), most_lanes);
    page_block names = page_block::array();
    std::map<rank_id, std::size_t> lane_of;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        names.push_back(fmt::format("rank {}", chart.ranks[lane].value));
        lane_of[chart.ranks[lane]] = lane;
    }
    std::vector<activity> kinds;
    auto boxes = page_block::array();
    std::size_t left_out = 0;
    for (auto const& e : events) {
        auto const lane = lane_of.find(e.rank);
        if (lane == lane_of.end() || e.end <= chart.begin || e.start >= chart.end) {
            continue;
        }
        if (boxes.size() == most_boxes) {
            ++left_out;
            continue;
        }
        auto const kind = std::find(kinds.begin(), kinds.end(), e.activity) - kinds.begin();
        if (kind == std::ssize(kinds)) {
            kinds.push_back(e.activity);
        }
        auto const start = std::max(e.start, chart.begin);
        page_block box{lane->second, kind, shown_number((start - chart.begin).count), shown_number((std::min(e.end, chart.end) - start).count)};
        bool const is_computed = is_instruction(e.activity) && is_work(static_cast<instruction_kind>(e.activity));
        if (is_computed && e.item != no_item) {
            box.push_back(e.item);
        }
        boxes.push_back(std::move(box));
    }
    auto kind_names = page_block::array();
    for (auto const kind : kinds) {
        kind_names.push_back({{"name", name_of(kind)}, {"text", text_of(kind)}});
    }
    page_block block{{"type", "lanes"},
                     {"lanes", std::move(names)},
                     {"kinds", std::move(kind_names)},
                     {"length", shown_number((chart.end - chart.begin).count)},
                     {"boxes", std::move(boxes)}};
    if (!chart.group.empty()) {
        block["group"] = chart.group;
    }
    if (chart.ranks.size() > lanes || left_out > 0) {
        block["note"] =
            fmt::format("Drawn: {} of {} ranks, {} of {} events.", lanes, chart.ranks.size(), block["boxes"].size(), block["boxes"].size() + left_out);
    }
    return block;
}

page_block beside_block(page_block parts) { return {{"type", "beside"}, {"parts", std::move(parts)}}; }

page_block folded_block(std::string_view name, page_block blocks) { return {{"type", "folded"}, {"name", name}, {"blocks", std::move(blocks)}}; }

page_block text_block(std::string_view preformatted) { return {{"type", "pre"}, {"text", preformatted}}; }

page_block section(std::string_view name, page_block blocks) { return {{"name", name}, {"blocks", std::move(blocks)}}; }

std::string page_of(page_block const& data)
{
    auto const json = data.dump(-1, ' ', false, page_block::error_handler_t::replace);
    std::string page{page_before_data};
    page.reserve(page.size() + json.size() + page_after_data.size() + 1024);
    for (char const c : json) {  // JSON has this character in texts alone; a text may not end the script that it stands in
        if (c == '<') {
            page += "\\u003c";
        } else {
            page += c;
        }
    }
    return page += page_after_data;
}

}  // namespace rheo::inline v0
