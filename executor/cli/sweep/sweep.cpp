// SPDX-License-Identifier: Apache-2.0
// `rheo sweep`: which cluster, and which plan on it, suits a model. A row for each point of a grid, in its order, whatever number of threads looks at them.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/amount_checks.hpp"
#include "executor/cli/command_line.hpp"
#include "executor/cli/simulate/job_of_config.hpp"
#include "executor/cli/simulate/network_options.hpp"
#include "executor/cli/sweep/grid_points.hpp"
#include "executor/cli/sweep/sweep_report.hpp"
#include "executor/cli/sweep/sweep_table.hpp"
#include "executor/config/cluster/cluster_file.hpp"
#include "executor/config/text_file.hpp"
#include "executor/config/toml.hpp"
#include "executor/os/background_thread.hpp"
#include "rheo/job/sweep_step.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// Points that all threads look at together before their rows are written.
constexpr std::int64_t block_of_thread = 32;

/// Of all that rows follow from.
std::string digest_of(std::vector<std::string> const& texts)
{
    sequence_digest digest{"sweep"};
    for (auto const& text : texts) {
        digest.mix(static_cast<std::int64_t>(text.size()));
        for (char const c : text) {
            digest.mix(c);
        }
    }
    return to_string(digest.value()).substr(0, 12);
}

swept_step step_at(grid_points const& points, std::int64_t point, sweep_rules rules, std::string const& network)
{
    auto const job = points.job_at(point);
    if (!job) {
        return {.why_not = job.error()};
    }
    return on_network(network, [&](auto model) { return sweep_step<decltype(model)>(*job, rules); });
}

/// The lines of consecutive points.
std::string lines_of(grid_points const& points, std::int64_t first, std::int64_t count, sweep_options const& options, std::string const& sweep)
{
    sweep_rules const rules{.binds = !options.no_binds, .goodput = options.goodput || varies(points.grid(), "plan.mtbf_h")};
    std::vector<std::string> lines(static_cast<std::size_t>(count));
    std::atomic<std::int64_t> next = 0;
    std::vector<std::exception_ptr> failed(static_cast<std::size_t>(count));
    auto const work = [&] {
        for (auto i = next++; i < count; i = next++) {
            auto const at = static_cast<std::size_t>(i);
            try {
                lines[at] = csv_line(points.grid(), sweep, first + i, step_at(points, first + i, rules, options.on.network));
            } catch (...) {
                failed[at] = std::current_exception();
            }
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < options.threads; ++t) {
        others.push_back(background_thread(work));
    }
    work();
    for (auto& thread : others) {
        thread.join();
    }
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (failed[i]) {
            std::rethrow_exception(failed[i]);
        }
        text += lines[i];
    }
    return text;
}

/// What an earlier sweep has left in the file, without a line that it did not end.
std::string begun_csv(std::string const& path, sweep_grid const& grid, std::string const& sweep)
{
    std::error_code ignored;
    if (path.empty() || !std::filesystem::exists(path, ignored)) {
        return csv_header(grid);
    }
    auto text = read_text_file(path);
    text.resize(rows_from_csv(text, path, grid, sweep).whole);
    return text;
}

/// Appends to a file, where there is one.
class growing_file {
public:
    growing_file(std::string path, std::string const& begin) : path_{std::move(path)}
    {
        if (!path_.empty()) {
            write_whole(path_, begin);
            file_.open(path_, std::ios::app | std::ios::binary);
        }
    }

    void append(std::string const& text)
    {
        if (!path_.empty() && !(file_ << text << std::flush)) {
            throw exit_error{exit_code::environment, fmt::format("{}: rows cannot be written; is the disk full?", path_)};
        }
    }

private:
    std::string path_;
    std::ofstream file_;
};

}  // namespace

int sweep(sweep_options const& given)
{
    auto options = given;
    options.threads = options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    auto const read = read_config_file(options.config, options.settings);
    auto config = read.config;
    auto const named = options.cluster.empty() ? config.plan.cluster : options.cluster;
    config.plan.cluster.clear();  // points have their own
    auto cluster = named.empty() ? std::optional<cluster_model>{} : read_cluster_file(named);
    check_network(options.on, cluster ? &*cluster : nullptr);
    auto const text = read_text_file(options.grid);
    auto const profile = config.power.clock_profile.empty() ? "" : read_text_file(config.power.clock_profile);
    auto const digest = digest_of({to_toml(config), profile, cluster ? to_toml(*cluster) : "", text, options.on.network, options.on.reduction,
                                   options.no_binds ? "" : "binds", options.goodput ? "goodput" : ""});
    grid_points const points{parse_grid(text, options.grid), std::move(config), std::move(cluster), reduction_of(options.on)};
    auto const& grid = points.grid();
    auto csv = begun_csv(options.csv, grid, digest);
    growing_file file{options.csv, csv};
    auto const all = points_of(grid);
    auto const block = block_of_thread * options.threads;
    for (auto first = static_cast<std::int64_t>(rows_from_csv(csv, options.csv, grid, digest).rows.size()); first < all; first += block) {
        auto const lines = lines_of(points, first, std::min(block, all - first), options, digest);
        file.append(lines);
        csv += lines;
    }
    auto const rows = rows_from_csv(csv, options.csv, grid, digest).rows;
    sweep_report const report{fmt::format("{} on {}", options.config, named.empty() ? "processes of one machine" : named), &grid, &rows};
    if (!options.svg.empty()) {
        write_whole(options.svg, picture_of(report));
    }
    fmt::print("{}", to_text(report));
    return 0;
}

void command_line::add_sweep()
{
    auto& command = *app.add_subcommand("sweep", "Compare clusters and plans for a model: a step, its energy and what binds it for each point of a grid.");
    command.callback([this] { chosen = [this] { return sweep(sweep_); }; });
    auto& options = sweep_;
    command.add_option("config", options.config, "Config of the run, in TOML.")->required()->type_name("FILE");
    command.add_option("--set", options.settings, "Set a config key, for example train.microbatches=16. Repeatable.")
        ->expected(1)
        ->take_all()
        ->type_name("KEY=VALUE");
    command.add_option("--cluster", options.cluster, "Described cluster, in TOML. Default: plan.cluster, else processes of one machine.")->type_name("FILE");
    command
        .add_option(
            "--grid", options.grid,
            "What varies, in TOML: lists of values for keys of the config; in [pipelines] count and stages; in [cluster] nodes, devices_per_node, compute_tflops, memory_rate_gb_per_s, "
            "memory_gib, level.NAME.rate_gb_per_s, level.NAME.latency_us.")
        ->required()
        ->type_name("FILE");
    command.add_option("--csv", options.csv, "Write a row for each point, in the order of the grid; rows of an interrupted sweep are kept.")->type_name("FILE");
    command.add_option("--svg", options.svg, "Write a picture: tokens per second over tokens per joule, and what binds.")->type_name("FILE");
    command.add_flag("--goodput", options.goodput, "Simulate the loss of a rank at each point. It is done where plan.mtbf_h varies.");
    command.add_flag("--no-binds", options.no_binds, "Do not look for what binds: a plan and a step for each point.");
    command.add_option("--threads", options.threads, "Threads. Default: one for each processor.")->check(CLI::Range(1, 1024));
    add_network_options(command, options.on);
}

}  // namespace rheo::cli
