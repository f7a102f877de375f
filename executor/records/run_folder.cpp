// SPDX-License-Identifier: Apache-2.0
#include "executor/records/run_folder.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/config/toml.hpp"
#include "executor/plan/plan_file.hpp"
#include "executor/records/record_json.hpp"
#include "executor/records/record_line.hpp"
#include "executor/records/records.hpp"
#include "rheo/analyze/step/recorded_step.hpp"
#include "rheo/trace/json_lines.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace fs = std::filesystem;

namespace {

/// The end of each rank's trace that is read: enough for hundreds of steps.
constexpr std::streamoff most_bytes = std::streamoff{64} << 20;

std::string read_text(fs::path const& path)
{
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A file that was written as a whole: one record. @throws exit_error
nlohmann::json read_record(fs::path const& path)
{
    try {
        auto object = parse_strict(read_text(path), 8);
        expect_record(object);
        return object;
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", path.string(), error.what())};
    }
}

std::vector<nlohmann::json> read_metrics(fs::path const& path)
{
    std::vector<nlohmann::json> metrics;
    std::istringstream lines(read_text(path));
    int number = 1;
    for (std::string line; std::getline(lines, line); ++number) {
        try {
            if (auto object = record_of(line)) {
                metrics.push_back(std::move(*object));
            }
        } catch (json_error const& error) {
            throw exit_error{exit_code::bad_data, fmt::format("'{}', line {} {}", path.string(), number, error.what())};
        }
    }
    return metrics;
}

/// Finite, and within 30 years of the launch.
bool is_time(seconds time) { return std::abs(time.count) < 1e9; }

struct read_trace {
    std::vector<trace_event> events;
    std::string left_out;  ///< empty: nothing
};

read_trace read_trace_file(fs::path const& path)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    auto const size = static_cast<std::streamoff>(file.tellg());
    auto const from = std::max<std::streamoff>(0, size - most_bytes);
    file.seekg(from);
    if (from > 0) {
        std::string torn;
        std::getline(file, torn);
    }
    auto read = read_json_lines(file);
    std::erase_if(read.events, [](trace_event const& e) { return !is_time(e.start) || !is_time(e.end) || !std::isfinite(e.clock.count); });
    put_in_order(read.events);
    if (from > 0) {  // what is left of a step at the beginning is none
        auto const update = std::find_if(read.events.begin(), read.events.end(), [](trace_event const& e) { return e.activity == activity::update; });
        read.events.erase(read.events.begin(), update == read.events.end() ? update : update + 1);
    }
    auto error = read ? std::string{} : fmt::format("'{}'{}: {}", path.string(), from > 0 ? fmt::format(" behind its byte {}", from) : "", read.error);
    return {std::move(read.events), std::move(error)};
}

/// The traces of all ranks, read by all processors.
void read_traces(std::vector<fs::path> files, run_folder& run)
{
    std::sort(files.begin(), files.end());
    std::vector<read_trace> traces(files.size());
    std::atomic<std::size_t> next{0};
    std::atomic<bool> out_of_memory{false};
    auto const read_files = [&] {
        try {
            for (auto k = next++; k < files.size(); k = next++) {
                traces[k] = read_trace_file(files[k]);
            }
        } catch (std::bad_alloc const&) {
            out_of_memory = true;
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t k = 1; k < std::min<std::size_t>(files.size(), std::thread::hardware_concurrency()); ++k) {
            others.emplace_back(read_files);
        }
        read_files();
    }
    if (out_of_memory) {
        throw std::bad_alloc{};
    }
    std::stable_sort(traces.begin(), traces.end(), [](read_trace const& a, read_trace const& b) {
        return !a.events.empty() && !b.events.empty() ? a.events.front().rank < b.events.front().rank : b.events.empty() < a.events.empty();
    });
    std::size_t count = 0;
    for (auto const& trace : traces) {
        count += trace.events.size();
    }
    run.events.reserve(count);
    for (auto& trace : traces) {
        run.events.insert(run.events.end(), trace.events.begin(), trace.events.end());
        trace.events = {};
        if (!trace.left_out.empty()) {
            run.left_out.push_back(std::move(trace.left_out));
        }
    }
    put_in_order(run.events);
}

/// The files of a folder with this ending.
std::vector<fs::path> files_of(fs::path const& folder, std::string const& ending)
{
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
        if (entry->path().extension() == ending) {
            found.push_back(entry->path());
        }
    }
    return found;
}

}  // namespace

std::vector<nlohmann::json const*> run_folder::of_kind(std::string const& kind) const
{
    std::vector<nlohmann::json const*> found;
    for (auto const& object : metrics) {
        if (object.value("kind", "") == kind) {
            found.push_back(&object);
        }
    }
    return found;
}

run_folder read_run_folder(std::string const& folder, traces with)
{
    fs::path const path{folder};
    if (!fs::exists(path / "config.toml") || !fs::exists(path / "metrics.jsonl")) {
        throw exit_error{exit_code::environment, fmt::format("'{}' is not the folder of a run: it has no config.toml with metrics.jsonl", folder)};
    }
    run_folder run;
    // A report needs no schedule of one's own, which may be gone.
    run.config = read_config_file((path / "config.toml").string(), {}, find_schedule_or_name).config;
    run.metrics = read_metrics(path / "metrics.jsonl");
    if (fs::exists(path / "report.json")) {
        run.report = read_record(path / "report.json");
    }
    for (auto const& file : files_of(path / "ranks", ".json")) {
        run.ranks.push_back(read_record(file));
    }
    std::sort(run.ranks.begin(), run.ranks.end(), [](auto const& a, auto const& b) { return a.value("rank", 0) < b.value("rank", 0); });
    if (with == traces::read) {
        read_traces(files_of(path / "trace", ".jsonl"), run);
    }
    if (fs::exists(path / "plan.json")) {
        run.first = read_plan_file((path / "plan.json").string(), find_schedule_or_name);
    }
    return run;
}

plan plan_of_generation(std::string const& folder, generation_id generation)
{
    auto const path = plan_since(folder, generation);
    if (!fs::exists(path)) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}': there is no plan of generation {}; expected {}, which a run writes after each change of its members", folder,
                                     generation.value, path)};
    }
    return read_plan_file(path, find_schedule_or_name);
}

ended_run read_report(std::string const& path)
{
    try {
        return ended_run_of(read_record(path));
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", path, error.what())};
    }
}

std::optional<run_end> how_it_ended(std::string const& folder)
{
    auto const path = fs::path{folder} / "report.json";
    if (!fs::exists(path)) {
        return std::nullopt;
    }
    auto const report = read_record(path);
    try {
        return run_end{static_cast<int>(integer_member(report, "exit_code", {0, 255})), text_member(report, "message"), integer_member(report, "steps", {})};
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", path.string(), error.what())};
    }
}

}  // namespace rheo::inline v0
