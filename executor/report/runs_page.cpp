// SPDX-License-Identifier: Apache-2.0
#include "executor/report/runs_page.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "executor/config/toml.hpp"
#include "executor/report/run_page.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0 {

namespace fs = std::filesystem;

namespace {

struct compared_run {
    std::string name;  ///< its folder, without what the folders of all have in common
    std::string folder;
    run_folder run;
};

/// The folder that holds all of these, for short names.
fs::path common_parent(std::span<std::string const> folders)
{
    std::optional<fs::path> common;
    for (auto const& folder : folders) {
        auto const parent = fs::absolute(folder).lexically_normal().parent_path();
        if (!common) {
            common = parent;
            continue;
        }
        auto const [end, ignored] = std::mismatch(common->begin(), common->end(), parent.begin(), parent.end());
        fs::path shared;
        std::for_each(common->begin(), end, [&](fs::path const& part) { shared /= part; });
        common = shared;
    }
    return common.value_or(fs::path{});
}

std::string without_last_slash(std::string folder)
{
    while (folder.size() > 1 && folder.ends_with('/')) {
        folder.pop_back();
    }
    return folder;
}

// ---- figures of a run --------------------------------------------------------------------------------------

/// The figure in the middle; NaN where there is none.
double median(std::vector<double> values)
{
    std::erase_if(values, [](double v) { return !std::isfinite(v); });
    if (values.empty()) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::string text_of(double value, char const* format) { return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "not known"; }

double sum_of(run_folder const& run, char const* kind, char const* key)
{
    double sum = 0;
    for (auto const* record : run.of_kind(kind)) {
        auto const value = number_of(*record, key);
        sum += std::isfinite(value) ? value : 0.0;
    }
    return sum;
}

std::string digest_of(run_folder const& run)
{
    return run.report.is_object() && run.report.contains("digest") && run.report["digest"].is_string() ? run.report["digest"].get<std::string>() : "";
}

page_block figures_of(compared_run const& r, fs::path const& beside)
{
    auto const steps = r.run.of_kind("step");
    auto const& report = r.run.report;
    bool const done = report.is_object() && report.value("exit_code", 0) == 0;
    page_block name = r.name;
    std::error_code error;
    if (auto const page = fs::path(r.folder) / "report.html"; fs::exists(page, error)) {
        name = {{"text", r.name}, {"to", fs::absolute(page).lexically_normal().lexically_relative(beside).generic_string()}};
    }
    page_block ended{{"text", ending_of(r.run)}};
    if (!done) {
        ended["bad"] = true;
    }
    auto const recoveries = r.run.of_kind("recovery").size();
    auto const nan = std::numeric_limits<double>::quiet_NaN();
    auto const of_report = [&](char const* key) { return report.is_object() ? number_of(report, key) : nan; };
    auto const digest = digest_of(r.run);
    page_block short_digest = "not known";
    if (!digest.empty()) {
        short_digest = {{"text", digest.substr(0, 10)}, {"title", digest}};
    }
    auto row = page_block::array({std::move(name), std::move(ended)});
    row.push_back(fmt::format("{} of {}", steps.empty() ? 0 : steps.back()->value("step", std::int64_t{0}) + 1, r.run.config.train.steps));
    row.push_back(text_of(steps.empty() ? nan : number_of(*steps.back(), "loss"), "{:.4f}"));
    row.push_back(text_of(of_report("validation_loss"), "{:.4f}"));
    row.push_back(std::move(short_digest));
    row.push_back(text_of(median(curve_of(steps, "tokens_per_s", "").y), "{:.0f}"));
    row.push_back(fmt::format("{:.1f} s", sum_of(r.run, "step", "duration_s") + sum_of(r.run, "redo", "duration_s")));
    row.push_back(text_of(of_report("energy_J"), "{:.6g} J"));
    row.push_back(text_of(of_report("energy_J_per_token"), "{:.4g} J"));
    row.push_back(recoveries == 0 ? "0" : fmt::format("{}, {:.1f} ms", recoveries, in_milliseconds(time_in_recoveries(r.run))));
    row.push_back(std::to_string(r.run.ranks.size()));
    return row;
}

std::string text_about_digests(std::vector<compared_run> const& runs)
{
    std::map<std::string, int> count;
    for (auto const& r : runs) {
        if (auto const digest = digest_of(r.run); !digest.empty()) {
            ++count[digest];
        }
    }
    int known = 0;
    for (auto const& [digest, times] : count) {
        known += times;
    }
    return known < 2           ? ""
           : count.size() == 1 ? fmt::format("The {} known final states have the same digest: they are equal, bit by bit.", known)
                               : fmt::format("The {} known final states have {} different digests.", known, count.size());
}

page_block table_of(std::vector<compared_run> const& runs, fs::path const& beside)
{
    table_column const columns[] = {{"run"},
                                    {"ended"},
                                    {"steps", true},
                                    {"loss", true},
                                    {"validation loss", true},
                                    {"digest", false, true},
                                    {"tokens/s, median", true},
                                    {"time in steps", true},
                                    {"energy", true},
                                    {"energy per token", true},
                                    {"recoveries", true},
                                    {"ranks", true}};
    auto rows = page_block::array();
    for (auto const& r : runs) {
        rows.push_back(figures_of(r, beside));
    }
    auto blocks = page_block::array({table_block(columns, std::move(rows))});
    if (auto const text = text_about_digests(runs); !text.empty()) {
        blocks.push_back(note_block(text));
    }
    return blocks;
}

// ---- curves over each other --------------------------------------------------------------------------------

/// None when no run has a finite value.
void add_chart(std::vector<compared_run> const& runs, char const* kind, char const* value, std::string name, bool from_zero, page_block& blocks)
{
    curve_chart chart{.name = std::move(name), .from_zero = from_zero};
    bool any = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        auto c = curve_of(runs[i].run.of_kind(kind), value, runs[i].name);
        c.colour = static_cast<int>(i % 8);
        bool const finite = std::any_of(c.y.begin(), c.y.end(), [](double y) { return std::isfinite(y); });
        any = any || finite;
        if (finite) {
            chart.curves.push_back(std::move(c));
        }
    }
    if (any) {
        blocks.push_back(curves_block(chart));
    }
}

page_block curves_of(std::vector<compared_run> const& runs)
{
    auto blocks = page_block::array();
    add_chart(runs, "step", "loss", "Loss, nats per token", false, blocks);
    add_chart(runs, "step", "tokens_per_s", "Tokens per second", true, blocks);
    add_chart(runs, "step", "mfu", "Model flops utilization", true, blocks);
    add_chart(runs, "step", "energy_J", "Energy per step, J", true, blocks);
    return blocks;
}

// ---- what differs ------------------------------------------------------------------------------------------

page_block differences_of(std::vector<compared_run> const& runs)
{
    std::vector<std::vector<config_value>> values;
    std::transform(runs.begin(), runs.end(), std::back_inserter(values), [](compared_run const& r) { return values_of(r.run.config); });
    std::vector<table_column> columns{{"key"}};
    for (auto const& r : runs) {
        columns.push_back({r.name, false, true});
    }
    auto rows = page_block::array();
    std::size_t equal = 0;
    for (std::size_t k = 0; k < values.front().size(); ++k) {
        auto const& key = values.front()[k].key;
        if (key == "run.folder") {
            continue;
        }
        if (std::all_of(values.begin(), values.end(), [&](auto const& v) { return v[k].value == values.front()[k].value; })) {
            ++equal;
            continue;
        }
        auto row = page_block::array({key});
        for (auto const& v : values) {
            row.push_back({{"text", v[k].value}, {"differs", v[k].value != values.front()[k].value}});
        }
        rows.push_back(std::move(row));
    }
    if (rows.empty()) {
        return page_block::array({note_block(fmt::format("The configs are equal: {} keys, but for run.folder.", equal))});
    }
    return page_block::array(
        {table_block(columns, std::move(rows)), note_block(fmt::format("Bold: other than in the first run. The other {} keys are equal.", equal))});
}

}  // namespace

bool is_run_folder(std::string const& folder)
{
    std::error_code error;
    return fs::exists(fs::path(folder) / "config.toml", error) && fs::exists(fs::path(folder) / "metrics.jsonl", error);
}

std::vector<std::string> runs_in(std::span<std::string const> folders)
{
    std::vector<std::string> found;
    auto const add = [&](std::string const& folder) {
        if (std::find(found.begin(), found.end(), folder) == found.end()) {
            found.push_back(folder);
        }
    };
    for (auto const& given : folders) {
        auto const folder = without_last_slash(given);
        std::set<std::string> inside;
        std::error_code error;
        for (fs::directory_iterator entry(folder, error); !is_run_folder(folder) && !error && entry != fs::directory_iterator(); entry.increment(error)) {
            if (is_run_folder(entry->path().string())) {
                inside.insert(entry->path().string());
            }
        }
        if (inside.empty()) {
            add(folder);
        }
        std::for_each(inside.begin(), inside.end(), add);
    }
    return found;
}

runs_page_result runs_page(std::span<std::string const> folders, std::string const& page)
{
    runs_page_result result;
    auto const common = common_parent(folders);
    std::vector<compared_run> runs;
    auto notes = page_block::array();
    for (auto const& folder : folders) {
        try {
            auto run = read_run_folder(folder, traces::leave);
            runs.push_back({fs::absolute(folder).lexically_normal().lexically_relative(common).generic_string(), folder, std::move(run)});
        } catch (std::runtime_error const& error) {  // whatever is wrong with one, the others can be compared
            result.errors.emplace_back(error.what());
            notes.push_back(error_block(fmt::format("Left out: {}.", error.what())));
        }
    }
    result.compared = runs.size();
    auto sections = page_block::array();
    if (!notes.empty()) {
        sections.push_back(section("", std::move(notes)));
    }
    if (!runs.empty()) {
        sections.push_back(section("Runs", table_of(runs, fs::absolute(page).lexically_normal().parent_path())));
        sections.push_back(section("Curves", curves_of(runs)));
        sections.push_back(section("Config", differences_of(runs)));
    }
    result.data = {
        {"title", fmt::format("{} runs in {}", folders.size(), common.string())},
        {"sections", std::move(sections)},
        {"footer", "rheo " RHEO_VERSION ". This page loads nothing from a network. rheo report RUN makes the page of one run, to which its name links then."}};
    return result;
}

}  // namespace rheo::inline v0
