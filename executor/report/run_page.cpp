// SPDX-License-Identifier: Apache-2.0
#include "executor/report/run_page.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/toml.hpp"
#include "executor/plan/planning.hpp"
#include "executor/report/energy_section.hpp"
#include "executor/report/memory_section.hpp"
#include "executor/report/step_section.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0 {

namespace {

using nlohmann::json;

std::int64_t count_of(json const& object, char const* key) { return object.value(key, std::int64_t{0}); }

/// Of a record: null when it was not finite, not there when it is not known.
std::string loss_of(json const& record, char const* key)
{
    auto const found = record.find(key);
    return found == record.end() ? "not known" : found->is_number() ? fmt::format("{:.4f} nats per token", found->get<double>()) : "not finite";
}

seconds duration_of(json const& object, char const* key)
{
    auto const value = number_of(object, key);
    return {std::isfinite(value) ? value : 0.0};
}

// ---- how it ended, curves ----------------------------------------------------------------------------------

page_block summary(run_folder const& run)
{
    facts_block facts;
    auto const& r = run.report;
    auto const steps = run.of_kind("step");
    facts.add("ended", ending_of(run));
    facts.add("steps", fmt::format("{} of {}", steps.empty() ? 0 : count_of(*steps.back(), "step") + 1, run.config.train.steps));
    if (r.is_object()) {
        facts.add("loss", loss_of(r, "loss"));
        if (auto const digest = r.find("digest"); digest != r.end() && digest->is_string()) {
            facts.add("validation loss", loss_of(r, "validation_loss"));
            facts.add("digest of the state", digest->get<std::string>());
        }
    }
    auto const skipped = std::count_if(steps.begin(), steps.end(), [](json const* s) { return s->value("skipped", false); });
    if (skipped > 0) {
        facts.add("skipped", fmt::format("{} of {} recorded steps: a loss or gradient was not finite", skipped, steps.size()));
    }
    facts.add("ranks at launch", std::to_string(run.ranks.size()));
    facts.add("recoveries", std::to_string(run.of_kind("recovery").size()));
    if (auto const checkpoints = run.of_kind("checkpoint"); !checkpoints.empty()) {
        auto const& last = *checkpoints.back();
        facts.add("checkpoints", fmt::format("{}; the last one of step {}: {:.1f} MiB in {:.0f} ms", checkpoints.size(), count_of(last, "step"),
                                             in_mebibytes({count_of(last, "bytes")}), in_milliseconds(duration_of(last, "duration_s"))));
    }
    auto const& m = run.config.model;
    facts.add("model", fmt::format("{} blocks, width {}, {} heads, vocabulary {}", m.blocks, m.width, m.heads, m.vocabulary));
    return facts.block();
}

/// The cause of a recovery: ranks that were lost or left, or a change of the plan.
std::string cause_of(json const& recovery)
{
    auto const lost = recovery.value("lost", std::vector<int>{});
    auto const left = recovery.value("left", std::vector<int>{});
    std::string text = lost.empty() ? "" : fmt::format("lost: rank {}", fmt::join(lost, ", "));
    text += left.empty() ? "" : fmt::format("{}rank {} left", text.empty() ? "" : ", ", fmt::join(left, ", "));
    auto const change = recovery.value("change", std::string{});
    text += change.empty() ? "" : fmt::format("{}plan: {}", text.empty() ? "" : ", ", change);
    return text.empty() ? "ranks that waited got places" : text;
}

page_block curves(run_folder const& run)
{
    std::vector<curve_mark> marks;
    for (auto const* r : run.of_kind("recovery")) {
        marks.push_back({static_cast<double>(count_of(*r, "step") + 1), fmt::format("{}, in step {}", cause_of(*r), count_of(*r, "step") + 1)});
    }
    curve_chart loss{.name = "Loss, nats per token", .curves = {curve_of(run.of_kind("step"), "loss", "training")}, .marks = marks};
    if (auto const evaluations = run.of_kind("evaluation"); evaluations.size() > 1) {
        auto validation = curve_of(evaluations, "loss", "validation");
        std::transform(validation.x.begin(), validation.x.end(), validation.x.begin(), [](double step) { return step - 1; });  // these count committed steps
        loss.curves.push_back(std::move(validation));
    }
    curve_chart rate{
        .name = "Tokens per second", .curves = {curve_of(run.of_kind("step"), "tokens_per_s", "tokens per second")}, .marks = marks, .from_zero = true};
    rate.curves.front().colour = 2;
    page_block blocks{curves_block(loss), curves_block(rate)};
    if (auto const steps = run.of_kind("step"); !steps.empty() && steps.back()->contains("mfu")) {
        curve_chart share{
            .name = "Model flops utilization", .curves = {curve_of(steps, "mfu", "model flops / compute of the devices")}, .marks = marks, .from_zero = true};
        share.curves.front().colour = 3;
        blocks.push_back(curves_block(share));
    }
    if (!marks.empty()) {
        blocks.push_back(note_block("Dashed red lines: the members or the plan changed."));
    }
    return blocks;
}

// ---- recoveries --------------------------------------------------------------------------------------------

page_block recovery_table(std::vector<json const*> const& recoveries)
{
    table_column const columns[] = {{"cause"},       {"in step", true}, {"ranks after", true},       {"pipelines after", true},
                                    {"total", true}, {"copied", true},  {"contributions kept", true}};
    auto rows = page_block::array();
    for (auto const* r : recoveries) {
        rows.push_back({cause_of(*r), std::to_string(count_of(*r, "step") + 1), std::to_string(count_of(*r, "ranks")),
                        std::to_string(count_of(*r, "pipelines")), fmt::format("{:.1f} ms", in_milliseconds(duration_of(*r, "total_s"))),
                        fmt::format("{:.2f} MiB", in_mebibytes({count_of(*r, "copied_bytes")})),
                        r->value("lost", std::vector<int>{}).empty() ? std::string{"-"}
                                                                     : fmt::format("{} of {}", count_of(*r, "pairs_salvaged"), count_of(*r, "pairs_total"))});
    }
    return table_block(columns, std::move(rows));
}

/// One drawing per run of phases without a pause.
void add_time_lines(std::vector<trace_event> const& phases, page_block& blocks)
{
    constexpr seconds pause = milliseconds(50);
    for (std::size_t i = 0; i < phases.size();) {
        auto const first = i;
        lane_chart lanes{.begin = phases[i].start, .end = phases[i].end};
        for (; i < phases.size() && phases[i].start < lanes.end + pause; ++i) {
            lanes.end = std::max(lanes.end, phases[i].end);
            lanes.ranks.push_back(phases[i].rank);
        }
        std::sort(lanes.ranks.begin(), lanes.ranks.end());
        lanes.ranks.erase(std::unique(lanes.ranks.begin(), lanes.ranks.end()), lanes.ranks.end());
        auto const drawn = std::span{phases}.subspan(first, i - first);
        bool const begins_the_job = std::none_of(drawn.begin(), drawn.end(), [](auto const& e) { return e.activity == activity::shrink; });
        if (!begins_the_job && lanes.begin < lanes.end) {
            blocks.push_back(note_block(fmt::format("Recovery in step {}, phase by phase:", drawn.back().step.value + 1)));
            blocks.push_back(lanes_block(drawn, lanes));
        }
    }
}

page_block recoveries(run_folder const& run)
{
    auto const records = run.of_kind("recovery");
    if (records.empty()) {
        return page_block::array({note_block("No rank was lost.")});
    }
    auto blocks = page_block::array({recovery_table(records)});
    std::vector<trace_event> phases;
    std::copy_if(run.events.begin(), run.events.end(), std::back_inserter(phases), [](trace_event const& e) { return is_recovery(e.activity); });
    std::sort(phases.begin(), phases.end(), [](auto const& a, auto const& b) { return a.start < b.start; });
    add_time_lines(phases, blocks);
    return blocks;
}

// ---- notes --------------------------------------------------------------------------------------------------

void add_texts(run_folder const& run, page_block& blocks)
{
    blocks.push_back(folded_block("Config", page_block::array({text_block(to_toml(run.config))})));
    std::string notes;
    for (auto const* note : run.of_kind("note")) {
        notes += note->value("message", "") + '\n';
    }
    if (!notes.empty()) {
        blocks.push_back(folded_block("Notes of the run", page_block::array({text_block(notes)})));
    }
    if (auto const sample = run.report.is_object() ? run.report.value("sample", "") : ""; !sample.empty()) {
        blocks.push_back(folded_block("Text that the model generates", page_block::array({text_block(sample)})));
    }
}

}  // namespace

double number_of(json const& record, char const* key)
{
    auto const found = record.find(key);
    return found != record.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

curve curve_of(std::vector<json const*> const& records, char const* value, std::string name)
{
    curve result{.name = std::move(name)};
    for (auto const* record : records) {
        auto const step = static_cast<double>(count_of(*record, "step") + 1);
        while (!result.x.empty() && result.x.back() >= step) {
            result.x.pop_back();
            result.y.pop_back();
        }
        result.x.push_back(step);
        result.y.push_back(number_of(*record, value));
    }
    return result;
}

std::string ending_of(run_folder const& run)
{
    auto const& r = run.report;
    return r.is_object() ? fmt::format("{} (exit code {})", r.value("message", ""), count_of(r, "exit_code"))
                         : "no report: the run is not over, or it was killed";
}

seconds time_in_recoveries(run_folder const& run)
{
    seconds sum;
    for (auto const* r : run.of_kind("recovery")) {
        sum += duration_of(*r, "total_s");
    }
    return sum;
}

std::optional<model_description> model_of(run_folder const& run)
{
    auto const model = running_model(run.config);
    bool const fits = run.first && !run.first->pipelines.empty() && plan_error(*run.first, model, run.config, static_cast<int>(run.ranks.size())).empty();
    return fits ? std::optional{model} : std::nullopt;
}

page_block run_page(std::string const& folder)
{
    auto const run = read_run_folder(folder);
    auto const model = model_of(run);
    auto sections = page_block::array();
    sections.push_back(section("", page_block::array({summary(run)})));
    sections.push_back(section("Training", curves(run)));
    sections.push_back(section("A step as planned and as measured", step_section(run, model)));
    sections.push_back(section("Recoveries", recoveries(run)));
    if (auto blocks = energy_section(run); !blocks.empty()) {
        sections.push_back(section("Energy", std::move(blocks)));
    }
    sections.push_back(section("Memory per rank", memory_section(run, model)));
    auto texts = page_block::array();
    add_texts(run, texts);
    sections.push_back(section("Texts", std::move(texts)));
    return {{"title", std::filesystem::path(folder).lexically_normal().string()},
            {"sections", std::move(sections)},
            {"footer", "rheo " RHEO_VERSION ". This page loads nothing from a network."}};
}

}  // namespace rheo::inline v0
