// SPDX-License-Identifier: Apache-2.0
// What costs time and can be changed: each with its numbers, the place and what to change, and silent below a twentieth of the time.

#include "executor/cli/analyze/run/analyzed_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "executor/cli/size_text.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/analyze/distribution.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/partition/optimal.hpp"

namespace rheo::cli {

namespace {

using nlohmann::json;
using found = std::vector<finding>;

constexpr double worth_it = 0.05;

double part_of(seconds part, seconds all) { return all > seconds{} ? part / all : 0.0; }

seconds duration_of(json const& record, char const* key) { return {record.value(key, 0.0)}; }

// ---- ranks and stages ------------------------------------------------------------------------------------------

void add_slow_ranks(found& all, analyzed_run const& job)
{
    for (auto const& pace : slow_ranks(job.paces)) {
        auto const& ranks = job.analysis.ranks;
        auto const rank = std::find_if(ranks.begin(), ranks.end(), [&](rank_steps const& r) { return r.record.rank == pace.rank; });
        auto const lost = work_of(rank->times) * (1.0 - 1.0 / slowness(pace));
        all.push_back({"slow rank", part_of(lost, job.analysis.span),
                       fmt::format("rank {} computes {:.2f} times as long as the others for its layers", pace.rank.value, slowness(pace)),
                       fmt::format("{} a microbatch where {} are expected", time_text(pace.time), time_text(pace.expected)),
                       "look at its device, its clock and what else runs on its host, or drain it"});
    }
}

/// What the pipelines of the first plan take for a step, with the largest stage of each.
void add_uneven_stages(found& all, analyzed_run const& job)
{
    auto const kinds = layer_kinds(running_model(job.run.config));
    if (!job.run.first || job.layer_times.empty()) {
        return;
    }
    std::vector<seconds> layers;
    for (auto const kind : kinds) {
        layers.push_back(job.layer_times[static_cast<std::size_t>(kind)]);
    }
    auto const largest_of = [&](array_view<layer_id const> cuts) {
        seconds largest{};
        for (int s = 0; s < stage_count(cuts); ++s) {
            auto const span = layers_of(cuts, stage_id{s});
            seconds sum{};
            for (auto l = span.begin; l < span.end; ++l) {
                sum += layers[at(l)];
            }
            largest = std::max(largest, sum);
        }
        return largest;
    };
    seconds now{};
    seconds could{};
    std::vector<int> layers_of_stages;
    for (std::size_t p = 0; p < job.run.first->pipelines.size(); ++p) {
        auto const& cuts = job.run.first->pipelines[p].cuts;
        if (cuts.empty() || at(cuts.back()) != layers.size()) {
            return;
        }
        auto const even = optimal_cuts(array_view<seconds const>{layers}, stage_count(cuts));
        auto const rounds = static_cast<double>(job.run.first->work[p].size()) + stage_count(cuts) - 1;
        now = std::max(now, largest_of(cuts) * rounds);
        could = std::max(could, largest_of(even) * rounds);
        for (int s = 0; s < stage_count(even); ++s) {
            layers_of_stages.push_back(size(layers_of(even, stage_id{s})));
        }
    }
    all.push_back({"uneven stages", part_of(now - could, now) * part_of(job.analysis.breakdown.schedule, job.analysis.span),
                   fmt::format("the longest stages make steps {:.0f} % longer than even ones would", 100.0 * part_of(now - could, could)), "",
                   fmt::format("plan.layers = [{}]", fmt::join(layers_of_stages, ", "))});
}

/// Ranks that compute at the highest clock although nobody waits for them.
void add_needless_clocks(found& all, analyzed_run const& job)
{
    std::map<rank_id, std::pair<seconds, seconds>> work;  // all, and at the highest clock
    megahertz highest{};
    for (auto const& e : job.run.events) {
        highest = std::max(highest, e.clock);
    }
    if (highest == megahertz{}) {
        return;
    }
    for (auto const& e : job.run.events) {
        if (is_instruction(e.activity) && is_work(class_of(e.activity))) {
            auto& [sum, fast] = work[e.rank];
            sum += e.end - e.start;
            fast += e.clock == highest ? e.end - e.start : seconds{};
        }
    }
    for (auto const& rank : job.analysis.ranks) {
        auto const& [sum, fast] = work[rank.record.rank];
        auto const spare = part_of(rank.slack, job.analysis.span);
        if (spare > worth_it && part_of(fast, sum) > 0.9) {
            all.push_back({"clock too high", spare * part_of(work_of(rank.times), job.analysis.span),
                           fmt::format("rank {} computes at the highest clock, {:.0f} MHz, and nobody waits for it", rank.record.rank.value, highest.count),
                           fmt::format("all it does could end {} later in each step",
                                       time_text(rank.slack / static_cast<double>(job.analysis.times.count - job.analysis.stalled))),
                           "give power.clock_profile, by which the planner lowers its clock at no loss of time"});
        }
    }
}

// ---- waits -----------------------------------------------------------------------------------------------------

std::string percent_of_steps(seconds time, run_analysis const& analysis) { return fmt::format("{:.1f} % of the steps", 100.0 * part_of(time, analysis.span)); }

struct slow_link {
    link_waits link;
    seconds each;   ///< of its messages was exposed
    seconds usual;  ///< of the median link
};

/// The link whose messages are exposed for longest, if that is more than three times as long as on the median link.
std::optional<slow_link> find_slow_link(std::vector<link_waits> const& links)
{
    std::vector<seconds> times;
    for (auto const& link : links) {
        times.push_back(link.exposed / static_cast<double>(link.messages));
    }
    if (times.size() < 3) {
        return std::nullopt;
    }
    auto const most = std::max_element(times.begin(), times.end());
    slow_link const slow{links[static_cast<std::size_t>(most - times.begin())], *most, lower_median(times)};
    return slow.each > slow.usual * 3.0 ? std::optional{slow} : std::nullopt;
}

void add_waits(found& all, analyzed_run const& job)
{
    auto const& analysis = job.analysis;
    auto const& breakdown = analysis.breakdown;
    all.push_back({"exposed reductions", part_of(breakdown.reductions, analysis.span),
                   fmt::format("{} wait for sums of gradients that all ranks have posted", percent_of_steps(breakdown.reductions, analysis)), "",
                   "more microbatches in a step, or fewer pipelines"});
    if (auto const slow = find_slow_link(analysis.links); slow && part_of(slow->link.exposed, analysis.span) > worth_it) {
        all.push_back({"slow link", part_of(breakdown.messages, analysis.span),
                       fmt::format("a message from rank {} to rank {} is waited for {} after it was sent", slow->link.from.value, slow->link.to.value,
                                   time_text(slow->each)),
                       fmt::format("on the median link {}", time_text(slow->usual)), "look at the way between these two, or put their stages on one node"});
    } else if (auto const small = small_messages_of(analysis.sizes); small && part_of(breakdown.messages, analysis.span) * small->share >= worth_it) {
        all.push_back(
            {"many small messages", part_of(breakdown.messages, analysis.span) * small->share,
             fmt::format("pipeline {} has {:.0f} messages of {} a step, which take {} each", small->pipeline.value,
                         static_cast<double>(small->messages) / static_cast<double>(analysis.times.count - analysis.stalled), size_text(small->size),
                         time_text(small->each)),
             fmt::format("their bytes need {} at the best rate seen; {} in all were waited for", time_text(small->by_rate), time_text(small->exposed)),
             "fewer slices or microbatches, or a larger microbatch"});
    } else {
        all.push_back({"exposed messages", part_of(breakdown.messages, analysis.span),
                       fmt::format("{} wait for messages that have been sent", percent_of_steps(breakdown.messages, analysis)), "",
                       "larger microbatches, or stages that follow each other on one node"});
    }
    all.push_back({"slow vote", part_of(breakdown.vote, analysis.span),
                   fmt::format("{} are totals and votes when all ranks are through", percent_of_steps(breakdown.vote, analysis)), "",
                   "more microbatches in a step"});
    auto const most = std::max_element(analysis.ranks.begin(), analysis.ranks.end(),
                                       [](rank_steps const& a, rank_steps const& b) { return a.times[step_class::host] < b.times[step_class::host]; });
    all.push_back({"host between operations", part_of(breakdown.host, analysis.span),
                   fmt::format("{} go by between operations", percent_of_steps(breakdown.host, analysis)),
                   fmt::format("most on rank {}: {} in all", most->record.rank.value, time_text(most->times[step_class::host])),
                   "a core of its own for each rank, and none that others use"});
    all.push_back({"uneven operations", part_of(breakdown.uneven, analysis.span),
                   fmt::format("{} go by because equal operations take different times", percent_of_steps(breakdown.uneven, analysis)), "",
                   "cores and devices that no two ranks share"});
}

// ---- steps, recoveries, checkpoints ----------------------------------------------------------------------------

void add_slow_steps(found& all, analyzed_run const& job)
{
    auto const& a = job.analysis;
    if (!a.slowest || a.stalled == 0) {
        return;
    }
    auto const usual = in_seconds(a.times.median);
    auto const because = a.slowest->because ? fmt::format(" because rank {} spent {} more on {}", a.slowest->because->rank.value,
                                                          time_text(a.slowest->because->by), name_of(a.slowest->because->in))
                                            : std::string{};
    all.push_back({"slow step", part_of(a.stalled_for - usual * static_cast<double>(a.stalled), a.span + a.stalled_for),
                   fmt::format("step {} took {}{}", a.slowest->step.value, time_text(a.slowest->time), because),
                   fmt::format("{} {} more than three times the median of {}", a.stalled, a.stalled == 1 ? "step took" : "steps took", time_text(usual)),
                   "look at what else that host did then"});
}

/// Those of the first step look for the scales.
void add_redone_steps(found& all, run_folder const& run)
{
    auto const redos = run.of_kind("redo");
    auto const redone = std::count_if(redos.begin(), redos.end(), [](json const* redo) { return redo->value("step", 0) > 0; });
    auto const steps = static_cast<std::ptrdiff_t>(run.of_kind("step").size());
    all.push_back({"steps redone", steps == 0 ? 0.0 : static_cast<double>(redone) / static_cast<double>(redone + steps),
                   fmt::format("{} steps were computed again with other scales, {} were committed", redone, steps), "",
                   "a lower learning rate or longer warm-up: gradients outgrow their scales"});
}

/// Steps that run while a checkpoint is written, against the others.
void add_checkpoints(found& all, run_folder const& run)
{
    std::map<std::int64_t, seconds> durations;
    std::vector<seconds> usual;
    for (auto const* step : run.of_kind("step")) {
        durations[step->value("step", std::int64_t{-1})] = duration_of(*step, "duration_s");
        usual.push_back(duration_of(*step, "duration_s"));
    }
    if (usual.size() < 3) {
        return;
    }
    auto const middle = lower_median(usual);
    seconds sum{};
    for (auto const time : usual) {
        sum += time;
    }
    seconds longer{};
    std::int64_t steps = 0;
    for (auto const* checkpoint : run.of_kind("checkpoint")) {
        auto left = duration_of(*checkpoint, "duration_s");
        for (auto step = durations.find(checkpoint->value("step", std::int64_t{-1})); step != durations.end() && left > seconds{}; ++step) {
            longer += std::max(step->second - middle, seconds{});
            left -= step->second;
            ++steps;
        }
    }
    all.push_back({"checkpoint in the way", part_of(longer, sum),
                   fmt::format("the {} steps beside which checkpoints were written took {} longer", steps, time_text(longer)), "",
                   "a larger checkpoint.every_steps, or a faster file system"});
}

/// Phases of recoveries that took far longer than they usually do.
void add_recoveries(found& all, analyzed_run const& job)
{
    auto const recoveries = job.run.of_kind("recovery");
    if (recoveries.size() < 3) {
        return;
    }
    for (std::string_view const phase : {"detect", "revoke", "decide", "shrink", "link", "exchange", "plan", "copy", "merge"}) {
        auto const key = fmt::format("{}_s", phase);
        std::vector<seconds> times;
        for (auto const* recovery : recoveries) {
            times.push_back(duration_of(*recovery, key.c_str()));
        }
        auto const most = std::max_element(times.begin(), times.end());
        auto const usual = lower_median(times);
        if (*most > usual * 5.0 && *most > seconds{0.1}) {
            all.push_back({"slow recovery", std::max(worth_it, part_of(*most, job.analysis.span)),
                           fmt::format("the recovery in step {} spent {} on {}", recoveries[static_cast<std::size_t>(most - times.begin())]->value("step", 0),
                                       time_text(*most), phase),
                           fmt::format("{} in the median", time_text(usual)), "look at what the lost rank's node and its neighbours did then"});
        }
    }
}

/// Recomputation although all activations have room.
void add_needless_recomputation(found& all, analyzed_run const& job)
{
    auto const available = job.run.config.plan.memory;
    seconds recomputing{};
    seconds total{};
    for (auto const& rank : job.analysis.ranks) {
        recomputing += rank.times[step_class::recompute];
        total += sum_of(rank.times);
    }
    if (!job.run.first || available == bytes{} || recomputing == seconds{}) {
        return;
    }
    auto without = *job.run.first;
    without.recompute = {};
    auto const model = running_model(job.run.config);
    bytes most{};
    for (auto const rank : ranks_of(without)) {
        most = std::max(most, needed_bytes(memory_parts_of(without, model, job.run.config, rank)));
    }
    if (most <= available) {
        all.push_back({"needless recomputation", part_of(recomputing, total),
                       fmt::format("{:.1f} % of the ranks' time is recomputation that memory does not require", 100.0 * part_of(recomputing, total)),
                       fmt::format("{:.0f} MiB hold all activations, {:.0f} MiB are there", in_mebibytes(most), in_mebibytes(available)),
                       "plan.recompute = \"auto\""});
    }
}

}  // namespace

std::vector<finding> findings_of(analyzed_run const& job)
{
    found all;
    add_slow_ranks(all, job);
    add_uneven_stages(all, job);
    add_waits(all, job);
    add_slow_steps(all, job);
    add_redone_steps(all, job.run);
    add_checkpoints(all, job.run);
    add_recoveries(all, job);
    add_needless_recomputation(all, job);
    add_needless_clocks(all, job);
    std::erase_if(all, [](finding const& f) { return f.share < worth_it; });
    std::stable_sort(all.begin(), all.end(), [](finding const& a, finding const& b) { return a.share > b.share; });
    return all;
}

}  // namespace rheo::cli
