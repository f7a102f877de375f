// SPDX-License-Identifier: Apache-2.0
#include "executor/records/records.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "executor/config/text_file.hpp"
#include "executor/config/toml.hpp"
#include "executor/plan/plan_json.hpp"
#include "executor/records/metrics_log.hpp"
#include "executor/records/progress.hpp"
#include "executor/records/record_files.hpp"
#include "executor/records/recorded_memory.hpp"
#include "executor/records/report.hpp"
#include "rheo/trace/json_lines.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace fs = std::filesystem;

namespace {

using json = nlohmann::ordered_json;

std::string trace_file(std::string const& folder, rank_id rank) { return fmt::format("{}/trace/rank-{}.jsonl", folder, rank.value); }

/// Under mpirun a rank's own output says nothing about where the launcher's goes.
bool people_watch()
{
    if (std::getenv("PMIX_RANK") == nullptr) {
        return ::isatty(STDOUT_FILENO) == 1;
    }
    std::error_code error;
    auto const target = fs::read_symlink(fmt::format("/proc/{}/fd/1", ::getppid()), error).string();
    return !error && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty"));
}

/// Of that terminal; 80 where it does not say.
std::size_t terminal_columns()
{
    bool const is_own = ::isatty(STDOUT_FILENO) == 1;
    auto const fd = is_own ? STDOUT_FILENO : ::open(fmt::format("/proc/{}/fd/1", ::getppid()).c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    winsize size{};
    bool const known = fd >= 0 && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    if (!is_own && fd >= 0) {
        ::close(fd);
    }
    return known ? size.ws_col : 80;
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
    bool rewrites = false;   // the progress line is one line of a terminal
    bool line_open = false;  // the cursor stands in it
    appended_file trace = {};
    std::string events = {};  // not yet in the trace file
    std::vector<recovery_record> recoveries = {};
    metrics_log metrics;
    std::chrono::steady_clock::time_point shown{};
    step_pace pace{};

    /// @param people what they read of it
    void write(json const& object, std::string const& people = {})
    {
        metrics.add(object, people);
        if (!people.empty()) {
            say(people);
        }
    }

    void become(bool reporter)
    {
        is_reporter = reporter;
        if (!reporter) {
            metrics.stop_writing();
            return;
        }
        for (auto const& message : metrics.begin_to_write()) {
            say(message);
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
        auto const line = progress_line(r, pace.left(r.of_steps - r.step.value - 1), rewrites ? terminal_columns() - 1 : any_width);
        if (rewrites) {
            fmt::print("\r{}\x1b[K", line);
            line_open = true;
        } else {
            fmt::print("{}\n", line);
        }
        std::fflush(stdout);
    }
};

records::records(std::string const& folder, rank_id rank, bool trace, bool quiet, std::int64_t log_every)
    : impl_{std::make_unique<impl>(
          impl{.folder = folder, .rank = rank, .quiet = quiet, .log_every = log_every, .metrics = metrics_log{folder + "/metrics.jsonl"}})}
{
    auto& self = *impl_;
    make_record_folder(self.folder + "/ranks");
    self.write_rank_file(json::object());
    if (trace) {
        make_record_folder(self.folder + "/trace");
        self.trace = appended_file{trace_file(self.folder, rank)};
    }
    self.rewrites = people_watch();
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
    impl_->metrics.start(to_json(record), record.step);
    impl_->become(reporter);
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
    impl_->write(to_json(record));
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

void records::alone(std::string_view message)
{
    if (impl_->is_reporter) {
        note(message);
    } else {
        fmt::print(stderr, "rheo: rank {}: {}\n", impl_->rank.value, message);
    }
}

void records::memory(memory_record const& record) { impl_->memory = record; }

void records::flush()
{
    impl_->flush_trace();
    if (impl_->is_reporter) {
        std::fflush(stdout);
    }
    rusage used{};
    if (::getrusage(RUSAGE_SELF, &used) == 0) {
        try {
            json sizes{{"peak_memory_bytes", std::int64_t{used.ru_maxrss} * 1024}};
            auto const measured = recorded_memory(impl_->memory.measured);
            for (std::size_t i = 0; auto const& part : recorded_memory(impl_->memory.planned)) {
                sizes[fmt::format("planned_{}_bytes", part.name)] = part.size.count;
                sizes[fmt::format("measured_{}_bytes", part.name)] = measured[i++].size.count;
            }
            impl_->write_rank_file(sizes);
        } catch (exit_error const&) {  // the one without this number stays
        }
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
