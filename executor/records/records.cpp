// SPDX-License-Identifier: Apache-2.0
#include "executor/records/records.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "executor/config/text_file.hpp"
#include "executor/config/toml.hpp"
#include "executor/os/resident_memory.hpp"
#include "executor/os/terminal.hpp"
#include "executor/plan/plan_json.hpp"
#include "executor/records/metrics_log.hpp"
#include "executor/records/monitor/prometheus_file.hpp"
#include "executor/records/monitor/tensorboard_log.hpp"
#include "executor/records/progress.hpp"
#include "executor/records/record_files.hpp"
#include "executor/records/record_json.hpp"
#include "executor/records/record_text.hpp"
#include "executor/records/recorded_memory.hpp"
#include "rheo/trace/json_lines.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace fs = std::filesystem;

namespace {

using json = nlohmann::ordered_json;

std::string trace_file(std::string const& folder, rank_id rank) { return fmt::format("{}/trace/rank-{}.jsonl", folder, rank.value); }

run_config config_of(std::string const& folder, bool trace)
{
    run_config config;
    config.run.folder = folder;
    config.run.trace = trace;
    return config;
}

}  // namespace

void begin_run_folder(std::string const& folder, run_config const& config, bool resumes)
{
    make_record_folder(folder);
    for (auto const* name : {"report.json", "trace.json", "ranks", "trace"}) {
        if (resumes && std::string_view{name} == "trace") {
            continue;  // what a resumed run did before it stopped belongs to it
        }
        std::error_code error;
        fs::remove_all(fs::path(folder) / name, error);
        if (error) {
            throw exit_error{exit_code::environment, fmt::format("run folder: '{}/{}' of an earlier run cannot be removed: {}", folder, name, error.message())};
        }
    }
    make_record_folder(folder + "/trace");
    make_record_folder(folder + "/ranks");
    write_whole(folder + "/config.toml", to_toml(config));
}

std::string plan_since(std::string const& folder, generation_id since) { return fmt::format("{}/plan-{}.json", folder, since.value); }

struct records::impl {
    std::string folder;
    rank_id rank;
    bool quiet;
    std::int64_t log_every;  // steps; 0: by time
    bool is_reporter = false;
    memory_record memory{};
    bool memory_is_new = false;  // and not in this rank's file
    bool rewrites = false;       // the progress line is one line of a terminal
    bool line_open = false;      // the cursor stands in it
    appended_file trace = {};
    std::string events = {};  // not yet in the trace file
    std::vector<recovery_record> recoveries = {};
    metrics_log metrics;
    std::optional<tensorboard_log> curves;  // none: not wanted
    prometheus_file gauges;
    std::int64_t steps = 0;  // committed
    std::chrono::steady_clock::time_point shown{};
    step_pace pace{};

    /// The time, and the one count of steps that all records have.
    void stamp(json& object)
    {
        auto const now = std::chrono::duration<double>{std::chrono::system_clock::now().time_since_epoch()}.count();
        object["unix_time_s"] = std::round(now * 1e3) / 1e3;
        if (auto const step = object.find("step"); step != object.end()) {
            steps = step->get<std::int64_t>() + (object["kind"] == "step" ? 1 : 0);
        }
        object.emplace("steps", steps);  // how a launch ended says it already
    }

    /// @param people what they read of it
    void write(json object, std::string const& people = {})
    {
        stamp(object);
        metrics.add(object, people);
        if (curves && is_reporter) {
            curves->add(object);
        }
        show_gauges(object);
        if (!people.empty()) {
            say(people);
        }
    }

    /// @param starts the records go back to a state
    void become(bool reporter, bool starts = false)
    {
        bool const begins = starts || !is_reporter;
        is_reporter = reporter;
        if (!reporter) {
            metrics.stop_writing();
            if (curves) {
                curves->stop();
            }
            return;
        }
        for (auto const& message : metrics.begin_to_write()) {
            say(message);
        }
        if (curves && begins) {
            say_error(curves->begin());
        }
    }

    void show_gauges(json const& object) { say_error(gauges.add(object, is_reporter)); }
    void say_error(std::string const& error)
    {
        if (!error.empty()) {
            say(error);
        }
    }

    void write_rank_file(json const& more) const
    {
        char host[256] = "";
        ::gethostname(host, sizeof host - 1);
        json object{{"rank", rank.value}, {"pid", ::getpid()}, {"host", host}};
        object.update(more);
        write_whole(fmt::format("{}/ranks/{}.json", folder, rank.value), object.dump(-1, ' ', false, json::error_handler_t::replace) + '\n');
    }

    /// With the parts of its memory. @param peak of the whole process; none: not known yet
    void write_memory(std::optional<bytes> peak)
    {
        auto sizes = json::object();
        if (peak) {
            sizes["peak_memory_bytes"] = peak->count;
        }
        auto const measured = recorded_memory(memory.measured);
        for (std::size_t i = 0; auto const& part : recorded_memory(memory.planned)) {
            sizes[fmt::format("planned_{}_bytes", part.name)] = part.size.count;
            sizes[fmt::format("measured_{}_bytes", part.name)] = measured[i++].size.count;
        }
        try {
            write_rank_file(sizes);
        } catch (exit_error const&) {  // the one without these numbers stays
        }
    }

    void flush_trace()
    {
        if (trace) {
            trace.append(events);
        }
        events.clear();
    }

    void close_line()
    {
        if (std::exchange(line_open, false)) {
            fmt::print("\n");
        }
    }

    void say(std::string_view line)
    {
        if (is_reporter && !quiet) {
            close_line();
            fmt::print("{}\n", line);
            std::fflush(stdout);
        }
    }

    void progress(step_record const& r)
    {
        auto const now = std::chrono::steady_clock::now();
        auto const last = r.step.value + 1 == r.of_steps;
        auto const pause = rewrites ? std::chrono::milliseconds{100} : std::chrono::seconds{5};
        pace.add(r.duration);
        bool const is_due = log_every > 0 && !rewrites ? (r.step.value + 1) % log_every == 0 : now - shown >= pause;
        if (!is_reporter || quiet || (!last && !is_due)) {
            return;
        }
        shown = now;
        auto const line = progress_line(r, pace.left(r.of_steps - r.step.value - 1), rewrites ? size_of_terminal().columns - 1 : any_width);
        if (rewrites) {
            fmt::print("\r{}\x1b[K", line);
            line_open = true;
        } else {
            fmt::print("{}\n", line);
        }
        std::fflush(stdout);
    }
};

records::records(std::string const& folder, rank_id rank, bool trace, bool quiet) : records{config_of(folder, trace), rank, quiet} {}

records::records(run_config const& config, rank_id rank, bool quiet)
    : impl_{std::make_unique<impl>(impl{.folder = config.run.folder,
                                        .rank = rank,
                                        .quiet = quiet,
                                        .log_every = config.run.log_every,
                                        .metrics = metrics_log{config.run.folder + "/metrics.jsonl"},
                                        .curves = config.run.tensorboard ? std::optional{tensorboard_log{config.run.folder}} : std::nullopt,
                                        .gauges = prometheus_file{config.run.prometheus, config.run.folder, config.train.steps}})}
{
    auto& self = *impl_;
    make_record_folder(self.folder + "/ranks");
    self.write_rank_file(json::object());
    if (config.run.trace) {
        make_record_folder(self.folder + "/trace");
        self.trace = appended_file{trace_file(self.folder, rank)};
    }
    self.rewrites = shows_in_terminal();
}

records::~records()
{
    if (impl_) {
        impl_->flush_trace();
        impl_->close_line();
    }
}
records::records(records&&) noexcept = default;
records& records::operator=(records&&) noexcept = default;

void records::start(start_record const& record, bool reporter)
{
    auto object = to_json(record);
    impl_->stamp(object);
    impl_->metrics.start(object, record.step);
    impl_->become(reporter, true);
    impl_->show_gauges(object);
}

void records::set_reporter(bool reporter) { impl_->become(reporter); }

void records::event(trace_event const& event)
{
    if (impl_->trace) {
        impl_->events += json_line{event}.text();
    }
}

void records::step(step_record const& record)
{
    impl_->flush_trace();
    if (std::exchange(impl_->memory_is_new, false)) {
        impl_->write_memory({});
    }
    auto object = to_json(record);
    object["memory_bytes"] = resident_memory().count;
    bytes held;
    for (auto const& part : recorded_memory(impl_->memory.measured)) {
        held += part.size;
    }
    if (held > bytes{}) {  // a rank with a place has state
        object["state_and_activation_bytes"] = held.count;
    }
    impl_->write(std::move(object));
    if (!record.redone) {
        impl_->progress(record);
    }
}

void records::evaluation(evaluation_record const& record)
{
    impl_->write(to_json(record), fmt::format("after step {}: validation loss {}", record.step.value, loss_text(record.loss)));
}

void records::recovery(recovery_record const& record)
{
    impl_->flush_trace();
    impl_->recoveries.push_back(record);
    impl_->write(to_json(record), recovery_line(record));
}

void records::in_force(plan const& p, generation_id since)
{
    if (impl_->is_reporter) {
        std::ofstream{plan_since(impl_->folder, since)} << format_members(to_json(p));  // best effort: a failed write does not end the job
    }
}

void records::note(std::string_view message) { impl_->write({{"kind", "note"}, {"message", message}}, std::string{message}); }

void records::checkpoint(checkpoint_record const& record) { impl_->write(to_json(record), checkpoint_line(record)); }
void records::safe(level_record const& record) { impl_->write(to_json(record), level_line(record)); }

void records::alone(std::string_view message)
{
    if (impl_->is_reporter) {
        note(message);
    } else {
        fmt::print(stderr, "rheo: rank {}: {}\n", impl_->rank.value, message);
    }
}

void records::memory(memory_record const& record)
{
    impl_->memory_is_new = impl_->memory_is_new || !(record.planned == impl_->memory.planned);
    impl_->memory = record;
}

void records::flush()
{
    impl_->flush_trace();
    if (impl_->is_reporter) {
        std::fflush(stdout);
    }
    rusage used{};
    if (::getrusage(RUSAGE_SELF, &used) == 0) {
        impl_->write_memory(bytes{std::int64_t{used.ru_maxrss} * 1024});
    }
}

void records::finish(final_record const& record)
{
    auto& self = *impl_;
    self.flush_trace();
    if (!self.is_reporter) {
        return;
    }
    auto end = to_json(record, {});
    end.erase("recoveries");
    self.write(end);
    auto const report = to_json(record, self.recoveries);
    auto const text = report.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
    std::string missing;
    try {
        write_whole(self.folder + "/report.json", text);
    } catch (exit_error const& error) {
        missing = error.what();
    }
    self.close_line();
    if (!self.quiet) {
        fmt::print("{}", final_table(record, self.recoveries));
        std::fflush(stdout);
    }
    if (!missing.empty() && !self.quiet) {
        fmt::print(stderr, "rheo: {}\n", missing);
    }
}

}  // namespace rheo::inline v0
