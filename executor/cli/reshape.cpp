// SPDX-License-Identifier: Apache-2.0
// `rheo reshape`: asks a running job to change its plan, and waits for the answer.

#include "executor/cli/commands.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "executor/config/plan_change.hpp"
#include "executor/config/toml.hpp"
#include "executor/records/reshape_request.hpp"
#include "executor/records/run_lock.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

using clock = std::chrono::steady_clock;

/// Rejects unknown keys and wrong types here. Whether the settings fit its ranks and its present plan, only the job knows.
std::vector<std::string> settings_for(std::vector<std::string> const& given)
{
    auto settings = plan_settings_of(given);
    if (!settings) {
        throw exit_error{exit_code::usage, settings.error()};
    }
    static_cast<void>(assign_settings({}, *settings));
    return *std::move(settings);
}

[[noreturn]] void no_job(std::string const& folder)
{
    throw exit_error{exit_code::environment,
                     fmt::format("'{}': no job runs there; rheo reshape changes a running one, and --set of rheo train begins with another plan", folder)};
}

}  // namespace

int reshape(reshape_options const& options)
{
    auto const path = std::filesystem::path{options.folder} / "config.toml";
    if (!std::filesystem::exists(path)) {
        throw exit_error{exit_code::usage, fmt::format("'{}' is no run folder: it has no config.toml", options.folder)};
    }
    auto const settings = settings_for(options.settings);
    auto const runs = [&] { return run_lock::is_held(options.folder).value_or(true); };
    if (!runs()) {
        no_job(options.folder);
    }
    auto const id = fmt::format("{}-{}", ::getpid(), std::chrono::system_clock::now().time_since_epoch().count());
    write_reshape_request(options.folder, settings, id);
    auto const end = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{options.timeout_s});
    do {
        bool const running = runs();  // asked first: a job answers before it ends
        if (auto const answer = find_reshape_answer(options.folder, id)) {
            fmt::print("{}{}\n", answer->made ? std::string{} : fmt::format("the plan stays as it is after step {}: ", answer->step), answer->message);
            return number_of(answer->made ? exit_code::done : exit_code::impossible_plan);
        }
        if (!running) {
            remove_reshape_request(options.folder);
            no_job(options.folder);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    } while (clock::now() < end);
    fmt::print("{} waits in '{}' for the end of a step\n", text_of(settings), options.folder);
    return number_of(options.timeout_s == 0 ? exit_code::done : exit_code::not_ended);
}

}  // namespace rheo::cli
