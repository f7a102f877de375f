// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/simulate/job_page.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "executor/cli/simulate/job_curves.hpp"
#include "executor/plan/amount_text.hpp"
#include "executor/report/blocks.hpp"
#include "rheo/version.hpp"

namespace rheo::cli {

namespace {

constexpr std::size_t most_changes_of_page = 200;

/// Events in lanes on an axis of a length.
page_block lanes_of(std::vector<trace_event> const& events, seconds length)
{
    lane_chart lanes{.begin = events.front().start, .group = "step"};
    for (auto const& e : events) {
        lanes.begin = std::min(lanes.begin, e.start);
        lanes.ranks.push_back(e.rank);
    }
    std::sort(lanes.ranks.begin(), lanes.ranks.end());
    lanes.ranks.erase(std::unique(lanes.ranks.begin(), lanes.ranks.end()), lanes.ranks.end());
    lanes.end = lanes.begin + length;
    return lanes_block(events, lanes);
}

seconds length_of(std::vector<trace_event> const& events)
{
    auto const by_start = [](trace_event const& a, trace_event const& b) { return a.start < b.start; };
    auto const by_end = [](trace_event const& a, trace_event const& b) { return a.end < b.end; };
    return std::max_element(events.begin(), events.end(), by_end)->end - std::min_element(events.begin(), events.end(), by_start)->start;
}

/// Both steps on axes of equal length.
page_block steps_beside(steps_around const& around)
{
    auto const longest = std::max(length_of(around.before), length_of(around.after));
    auto const drawn = [&](std::vector<trace_event> const& events, std::string_view which) {
        auto const note = fmt::format("Step {}, {}: the {} the first loss.", events.front().step.value, time_text(length_of(events).count), which);
        return page_block::array({note_block(note), lanes_of(events, longest)});
    };
    return beside_block(page_block::array({drawn(around.before, "last one before"), drawn(around.after, "first whole one after")}));
}

}  // namespace

void add_step(std::vector<step_run>& runs, whole_nanoseconds begin, played_plan const& account, std::size_t ranks)
{
    auto const energy = account.computing + account.waiting;
    if (!runs.empty() && runs.back().end == begin && runs.back().step == account.time && runs.back().ranks == ranks && runs.back().energy == energy &&
        runs.back().fullest == account.fullest) {
        runs.back().end = begin + account.time;
    } else {
        runs.push_back({begin, begin + account.time, account.time, energy, ranks, account.fullest});
    }
}

steps_around steps_around_loss(job_trace<> const& trace, whole_nanoseconds loss)
{
    std::vector<trace_event> drawn;
    std::copy_if(trace.events().begin(), trace.events().end(), std::back_inserter(drawn), is_drawn_in_lanes);
    // A step begins and ends with all ranks: its tries do not overlap. A whole one has an update.
    auto const attempt_of = [&](trace_event const& update) {
        std::vector<trace_event> events;
        std::copy_if(drawn.begin(), drawn.end(), std::back_inserter(events), [&](trace_event const& e) {
            return e.step == update.step && e.attempt == update.attempt && e.generation == update.generation && !is_recovery(e.activity) &&
                   e.activity != activity::evaluate;
        });
        return events;
    };
    steps_around around;
    trace_event const* before = nullptr;
    trace_event const* after = nullptr;
    auto const at = seconds{static_cast<double>(loss.count) * 1e-9};
    for (auto const& e : drawn) {
        if (e.activity == activity::update && e.end <= at && (before == nullptr || before->end < e.end)) {
            before = &e;
        }
        if (e.activity == activity::update && e.start > at && e.attempt == attempt_id{0} && (after == nullptr || e.end < after->end)) {
            after = &e;
        }
    }
    if (before != nullptr && after != nullptr) {
        around = {attempt_of(*before), attempt_of(*after)};
    }
    return around;
}

std::string job_page(job_report const& report, std::string_view config)
{
    auto curves = page_block::array();
    for (auto const& chart : curves_of(report)) {
        curves.push_back(curves_block(chart));
    }
    auto sections = page_block::array();
    sections.push_back(section("Accounts", page_block::array({note_block(headline_of(report)), text_block(accounts_text(report))})));
    sections.push_back(section("Over time", std::move(curves)));
    for (auto const& named : report.jobs) {
        if (!named.around.before.empty() && !named.around.after.empty()) {
            sections.push_back(
                section(fmt::format("A step before and after the first loss: {}", named.policy), page_block::array({steps_beside(named.around)})));
        }
    }
    for (auto const& named : report.jobs) {
        if (auto const text = changes_text(named.job, most_changes_of_page); !text.empty()) {
            sections.push_back(section(fmt::format("Changes of the members: {}", named.policy), page_block::array({text_block(text)})));
        }
    }
    return page_of(page_block{{"title", fmt::format("{}, simulated", config)},
                              {"sections", std::move(sections)},
                              {"footer", "rheo " RHEO_VERSION ". This page loads nothing from a network."}});
}

}  // namespace rheo::cli
