// SPDX-License-Identifier: Apache-2.0
#include "executor/report/energy_section.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rheo::inline v0 {

namespace {

constexpr int columns = 240;
constexpr seconds longest_run{1e10};  ///< a trace that says more is none

/// What happened in a part of the run's time.
struct column {
    joules drawn{};         ///< by computations
    seconds computing{};    ///< of all ranks, at known clocks
    double clock_time = 0;  ///< MHz s
    double lowest = 0;
    double highest = 0;
    seconds present{};  ///< of all ranks that were there
};

struct run_time {
    seconds begin{};
    seconds end{};
    std::vector<column> parts = std::vector<column>(columns);

    seconds width() const { return (end - begin) / columns; }
    seconds middle(std::size_t k) const { return begin + (static_cast<double>(k) + 0.5) * width(); }

    /// Calls `visit(column, how long)` for what of the time from `from` to `to` lies in each column.
    template <class Visit>
    void share(seconds from, seconds to, Visit&& visit)
    {
        auto const place = [&](seconds when) { return std::clamp(static_cast<int>((when - begin) / width()), 0, columns - 1); };
        for (int k = place(from); k <= place(to); ++k) {
            auto const first = std::max(from, begin + static_cast<double>(k) * width());
            auto const last = std::min(to, begin + static_cast<double>(k + 1) * width());
            if (last > first) {
                visit(parts[static_cast<std::size_t>(k)], last - first);
            }
        }
    }
};

run_time columns_of(run_folder const& run)
{
    run_time time;
    std::map<rank_id, std::pair<seconds, seconds>> present;
    for (auto const& e : run.events) {
        auto const [place, fresh] = present.try_emplace(e.rank, e.start, e.end);
        place->second = {std::min(place->second.first, e.start), std::max(place->second.second, e.end)};
    }
    bool first = true;
    for (auto const& [rank, span] : present) {
        time.begin = first ? span.first : std::min(time.begin, span.first);
        time.end = first ? span.second : std::max(time.end, span.second);
        first = false;
    }
    if (!(time.end > time.begin) || time.end - time.begin > longest_run) {
        return time;
    }
    for (auto const& [rank, span] : present) {
        time.share(span.first, span.second, [](column& c, seconds part) { c.present += part; });
    }
    for (auto const& e : run.events) {
        auto const whole = e.end - e.start;
        if (!(e.clock.count > 0.0 || e.energy.count > 0.0) || !(whole > seconds{})) {
            continue;
        }
        time.share(e.start, e.end, [&](column& c, seconds part) {
            c.drawn += e.energy * (part / whole);
            c.computing += part;
            c.clock_time += e.clock.count * part.count;
            c.lowest = c.lowest == 0.0 ? e.clock.count : std::min(c.lowest, e.clock.count);
            c.highest = std::max(c.highest, e.clock.count);
        });
    }
    return time;
}

std::vector<curve_mark> marks_of(run_folder const& run)
{
    std::vector<curve_mark> marks;
    for (auto const& e : run.events) {
        if (e.activity == activity::shrink) {
            marks.push_back({e.end.count, fmt::format("the members changed in step {}", e.step.value + 1)});
        }
    }
    return marks;
}

void add(curve& to, double x, double y)
{
    to.x.push_back(x);
    to.y.push_back(y);
}

page_block charts_of(run_time const& time, run_folder const& run)
{
    auto const blocking = run.config.power.blocking;
    curve power{.name = "all ranks", .colour = 3};
    curve mean{.name = "mean", .colour = 0};
    curve lowest{.name = "lowest", .colour = 5};
    curve highest{.name = "highest", .colour = 1};
    for (std::size_t k = 0; k < time.parts.size(); ++k) {
        auto const& c = time.parts[k];
        auto const when = time.middle(k).count;
        auto const waiting = c.present > c.computing ? c.present - c.computing : seconds{};
        add(power, when, ((c.drawn + blocking * waiting) / time.width()).count);
        if (c.clock_time > 0.0) {
            add(mean, when, c.clock_time / c.computing.count);
            add(lowest, when, c.lowest);
            add(highest, when, c.highest);
        }
    }
    auto const marks = marks_of(run);
    bool const has_clocks = !mean.x.empty();
    auto blocks = page_block::array({curves_block({.name = "Power, W", .curves = {std::move(power)}, .marks = marks, .over_time = true, .from_zero = true})});
    if (has_clocks) {
        blocks.push_back(
            curves_block({.name = "Clock, MHz", .curves = {std::move(mean), std::move(lowest), std::move(highest)}, .marks = marks, .over_time = true}));
    }
    return blocks;
}

}  // namespace

page_block energy_section(run_folder const& run)
{
    bool const known = std::any_of(run.events.begin(), run.events.end(), [](trace_event const& e) { return e.energy.count > 0.0; });
    auto const time = known ? columns_of(run) : run_time{};
    if (!known || !(time.end > time.begin) || time.end - time.begin > longest_run) {
        return page_block::array();
    }
    auto blocks = page_block::array();
    auto const of_report = [&](char const* key) {
        auto const found = run.report.find(key);
        return found != run.report.end() && found->is_number() ? found->get<double>() : 0.0;
    };
    if (of_report("energy_J") > 0.0) {
        facts_block facts;
        facts.add("energy", fmt::format("{:.6g} J", of_report("energy_J")));
        facts.add("per step", fmt::format("{:.4g} J", of_report("energy_J_per_step")));
        facts.add("per token", fmt::format("{:.4g} J", of_report("energy_J_per_token")));
        blocks.push_back(facts.block());
    }
    for (auto& chart : charts_of(time, run)) {
        blocks.push_back(std::move(chart));
    }
    blocks.push_back(note_block("Ranks that wait are counted at power.blocking_w. Dashed red lines: the members changed."));
    return blocks;
}

}  // namespace rheo::inline v0
