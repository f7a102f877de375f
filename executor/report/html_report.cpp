// SPDX-License-Identifier: Apache-2.0
#include "executor/report/html_report.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/toml.hpp"
#include "executor/plan/plan_report.hpp"
#include "executor/plan/planning.hpp"
#include "executor/records/records.hpp"
#include "executor/records/run_folder.hpp"
#include "executor/report/energy_page.hpp"
#include "executor/report/html_parts.hpp"
#include "executor/report/step_page.hpp"
#include "rheo/trace/svg_curves.hpp"
#include "rheo/trace/svg_lanes.hpp"

namespace rheo::inline v0 {

namespace {

using nlohmann::json;

constexpr char style[] = R"(
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 1080px; margin: 0 auto; padding: 12px 20px 40px; }
h1 { font-size: 24px; margin: 12px 0 4px; overflow-wrap: anywhere; } h2 { font-size: 18px; margin: 28px 0 6px; }
p { margin: 6px 0; } .note { color: #666; font-size: 13px; }
.picture { overflow-x: auto; } .picture svg { display: block; width: 100%; min-width: 640px; height: auto; }
table { border-collapse: collapse; font-size: 14px; } td, th { padding: 3px 14px 3px 0; text-align: left; font-weight: normal; vertical-align: top; }
th { color: #666; } td.number { text-align: right; font-variant-numeric: tabular-nums; } .wide { overflow-x: auto; white-space: nowrap; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 20px; align-items: end; width: min(100vw - 40px, 1640px); margin-left: 50%; transform: translateX(-50%); }
.pair > div { min-width: 0; } .pair .picture svg { min-width: 0; }
@media (max-width: 1000px) { .pair { grid-template-columns: 1fr; } .pair .picture svg { min-width: 640px; } }
.bar { background: #4c78a8; height: 10px; display: inline-block; } .peak { background: #f58518; }
.key span { display: inline-block; width: 11px; height: 11px; margin: 0 4px 0 12px; vertical-align: -1px; }
pre { background: #f6f6f6; padding: 8px 10px; overflow-x: auto; font-size: 13px; line-height: 1.25; }
)";

std::string row(std::string const& name, std::string const& value) { return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", name, escaped(value)); }

std::string number_or(json const& object, char const* key, char const* format, std::string const& otherwise = "not known")
{
    auto const found = object.find(key);
    return found != object.end() && found->is_number() ? fmt::format(fmt::runtime(format), found->get<double>()) : otherwise;
}

/// Of a record: null when it was not finite, not there when it is not known.
std::string loss_of(json const& record, char const* key)
{
    return number_or(record, key, "{:.4f} nats per token", record.contains(key) && record[key].is_null() ? "not finite" : "not known");
}

std::int64_t count_of(json const& object, char const* key) { return object.value(key, std::int64_t{0}); }

seconds duration_of(json const& object, char const* key)
{
    auto const found = object.find(key);
    return {found != object.end() && found->is_number() ? found->get<double>() : 0.0};
}

// ---- how it ended, curves ----------------------------------------------------------------------------------

std::string summary(run_folder const& run)
{
    auto const& r = run.report;
    auto const steps = run.of_kind("step");
    std::string text = "<table>\n";
    if (r.is_object()) {
        text += row("ended", fmt::format("{} (exit code {})", r.value("message", ""), count_of(r, "exit_code")));
        text += row("loss", loss_of(r, "loss"));
        if (auto const digest = r.find("digest"); digest != r.end() && digest->is_string()) {
            text += row("validation loss", loss_of(r, "validation_loss"));
            text += row("digest of the state", digest->get<std::string>());
        }
    } else {
        text += row("ended", "not yet, or without a report");
    }
    text += row("steps", fmt::format("{} of {}", steps.empty() ? 0 : count_of(*steps.back(), "step") + 1, run.config.train.steps));
    auto const skipped = std::count_if(steps.begin(), steps.end(), [](json const* s) { return s->value("skipped", false); });
    if (skipped > 0) {
        text += row("skipped", fmt::format("{} of {} recorded steps: a loss or gradient was not finite", skipped, steps.size()));
    }
    text += row("ranks at launch", std::to_string(run.ranks.size()));
    text += row("recoveries", std::to_string(run.of_kind("recovery").size()));
    if (auto const checkpoints = run.of_kind("checkpoint"); !checkpoints.empty()) {
        auto const& last = *checkpoints.back();
        text += row("checkpoints", fmt::format("{}; the last one of step {}: {:.1f} MiB in {:.0f} ms", checkpoints.size(), count_of(last, "step"),
                                               in_mebibytes({count_of(last, "bytes")}), in_milliseconds(duration_of(last, "duration_s"))));
    }
    auto const& m = run.config.model;
    text += row("model", fmt::format("{} blocks, width {}, {} heads, vocabulary {}", m.blocks, m.width, m.heads, m.vocabulary));
    return text + "</table>\n";
}

svg_sample sample_of(json const& object, char const* value)
{
    return {object.value("step", 0.0), object.contains(value) && object[value].is_number() ? object[value].get<double>() : std::nan("")};
}

svg_curve curve_of(std::vector<json const*> const& objects, char const* value, std::string name, std::string_view colour)
{
    svg_curve curve{std::move(name), colour, {}};
    for (auto const* object : objects) {
        auto const sample = sample_of(*object, value);
        while (!curve.samples.empty() && curve.samples.back().x >= sample.x) {
            curve.samples.pop_back();  // the job went on from an earlier checkpoint: these steps were recomputed
        }
        curve.samples.push_back(sample);
    }
    return curve;
}

/// Who is not there any more after a change of the members, and how.
std::string gone(nlohmann::json const& recovery)
{
    auto const lost = recovery.value("lost", std::vector<int>{});
    auto const left = recovery.value("left", std::vector<int>{});
    std::string text = lost.empty() ? "" : fmt::format("rank {}", fmt::join(lost, ", "));
    text += left.empty() ? "" : fmt::format("{}rank {} left", text.empty() ? "" : ", ", fmt::join(left, ", "));
    return text.empty() ? "none" : text;
}

std::string curves(run_folder const& run)
{
    std::vector<svg_mark> marks;
    for (auto const* r : run.of_kind("recovery")) {
        marks.push_back({static_cast<double>(count_of(*r, "step")), fmt::format("lost {} in step {}", gone(*r), count_of(*r, "step") + 1)});
    }
    svg_curves loss{{curve_of(run.of_kind("step"), "loss", "loss, nats per token", "#4c78a8")}, marks};
    if (auto const evaluations = run.of_kind("evaluation"); evaluations.size() > 1) {
        loss.curves.push_back(curve_of(evaluations, "loss", "validation loss", "#f58518"));
    }
    svg_curves const rate{{curve_of(run.of_kind("step"), "tokens_per_s", "tokens per second", "#54a24b")}, marks, true};
    std::string text = "<h2>Loss</h2>\n" + picture(draw_curves(loss)) + "<h2>Tokens per second</h2>\n" + picture(draw_curves(rate));
    return text + (marks.empty() ? "" : "<p class=\"note\">Red lines: the members changed.</p>\n");
}

/// The model of the config, when the plan is for it: a program may have trained one of its own.
std::optional<model_description> model_of(run_folder const& run)
{
    auto const model = running_model(run.config);
    bool const fits = run.first && !run.first->pipelines.empty() && plan_error(*run.first, model, run.config, static_cast<int>(run.ranks.size())).empty();
    return fits ? std::optional{model} : std::nullopt;
}

// ---- recoveries --------------------------------------------------------------------------------------------

std::string recovery_table(std::vector<json const*> const& recoveries)
{
    std::string text =
        "<div class=\"wide\"><table>\n<tr><th>lost</th><th>in step</th><th>ranks, pipelines after</th><th>total</th><th>copied</th>"
        "<th>contributions kept</th></tr>\n";
    for (auto const* r : recoveries) {
        text += fmt::format(
            "<tr><td>{}</td><td class=\"number\">{}</td><td>{}, {}</td><td class=\"number\">{:.1f} ms</td>"
            "<td class=\"number\">{:.2f} MiB</td><td class=\"number\">{} of {}</td></tr>\n",
            gone(*r), count_of(*r, "step") + 1, count_of(*r, "ranks"), count_of(*r, "pipelines"), in_milliseconds(duration_of(*r, "total_s")),
            in_mebibytes({count_of(*r, "copied_bytes")}), count_of(*r, "pairs_salvaged"), count_of(*r, "pairs_total"));
    }
    return text + "</table></div>\n";
}

std::string recoveries(run_folder const& run)
{
    auto const records = run.of_kind("recovery");
    std::string text = "<h2>Recoveries</h2>\n";
    if (records.empty()) {
        return text + "<p>No rank was lost.</p>\n";
    }
    text += recovery_table(records);
    // One drawing per run of phases without a pause.
    std::vector<trace_event> phases;
    for (auto const& e : run.events) {
        if (is_recovery(e.what)) {
            phases.push_back(e);
        }
    }
    std::sort(phases.begin(), phases.end(), [](auto const& a, auto const& b) { return a.start < b.start; });
    constexpr seconds pause = milliseconds(50);
    for (std::size_t i = 0; i < phases.size();) {
        auto const first = i;
        svg_lanes lanes{{}, phases[i].start, phases[i].end, false};
        for (; i < phases.size() && phases[i].start < lanes.end + pause; ++i) {
            lanes.end = std::max(lanes.end, phases[i].end);
            lanes.ranks.push_back(phases[i].rank);
        }
        std::sort(lanes.ranks.begin(), lanes.ranks.end());
        lanes.ranks.erase(std::unique(lanes.ranks.begin(), lanes.ranks.end()), lanes.ranks.end());
        bool const begins_the_job = std::none_of(phases.begin() + static_cast<std::ptrdiff_t>(first), phases.begin() + static_cast<std::ptrdiff_t>(i),
                                                 [](auto const& e) { return e.what == activity::shrink; });
        if (!begins_the_job && lanes.begin < lanes.end) {
            text += picture(draw_lanes(std::span{phases}.subspan(first, i - first), lanes));
        }
    }
    using enum activity;
    constexpr activity shown[] = {detect, revoke, shrink, link, exchange, activity::plan, copy, merge, first_instruction};
    return text + key_of_colours(shown);
}

// ---- memory ------------------------------------------------------------------------------------------------

std::string memory(run_folder const& run)
{
    auto const model = model_of(run);
    std::vector<std::pair<bytes, bytes>> held;  // planned, measured
    bytes most{1};
    for (auto const& r : run.ranks) {
        bytes const planned = model ? memory_of(*run.first, *model, run.config, rank_id{r.value("rank", 0)}) : bytes{};
        bytes const measured{count_of(r, "peak_memory_bytes")};
        held.emplace_back(planned, measured);
        most = std::max({most, planned, measured});
    }
    std::string text =
        "<h2>Memory per rank</h2>\n<div class=\"wide\"><table>\n<tr><th>rank</th><th>host</th><th>planned</th><th>measured peak</th><th></th></tr>\n";
    auto const bar = [&](bytes size, char const* kind) {
        return fmt::format("<span class=\"bar {}\" style=\"width:{:.0f}px\"></span>", kind,
                           280.0 * static_cast<double>(size.count) / static_cast<double>(most.count));
    };
    auto const amount = [](bytes size) { return size.count > 0 ? fmt::format("{:.1f} MiB", in_mebibytes(size)) : std::string{"not known"}; };
    for (std::size_t i = 0; i < held.size(); ++i) {
        auto const [planned, measured] = held[i];
        text += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}<br>{}</td></tr>\n",
                            run.ranks[i].value("rank", 0), escaped(run.ranks[i].value("host", "")), amount(planned), amount(measured), bar(planned, ""),
                            bar(measured, "peak"));
    }
    return text +
           "</table></div>\n<p class=\"note\">Planned (blue): parameters, moments, accumulators, reduced gradients and the activations in flight, by the "
           "first plan. Measured (orange): the whole process with its libraries and the data; a rank that was killed has left no number.</p>\n";
}

}  // namespace

std::string html_report(std::string const& folder)
{
    auto const run = read_run_folder(folder);
    auto const name = escaped(std::filesystem::path(folder).lexically_normal().string());
    auto text = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>rheo: {}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
        name, style, name);
    text += summary(run) + curves(run) + step_section(run, model_of(run)) + recoveries(run) + energy_section(run) + memory(run);
    text += "<h2>Config</h2>\n<pre>" + escaped(to_toml(run.config)) + "</pre>\n";
    return text + "</body>\n</html>\n";
}

void write_html_report(std::string const& folder, std::string const& file) { write_whole(file, html_report(folder)); }

}  // namespace rheo::inline v0
