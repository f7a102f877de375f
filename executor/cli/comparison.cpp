// SPDX-License-Identifier: Apache-2.0
#include "cli/comparison.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/schedule.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/partition/optimal.hpp"
#include "rheo/schedule/any_schedule.hpp"
#include "rheo/schedule/figures.hpp"
#include "rheo/schedule/lowering.hpp"
#include "rheo/schedule/relax.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "runtime/planning.hpp"

namespace rheo::cli {

namespace {

/// The machine of the comparison: planning's flops, and messages between processes of one machine.
constexpr modelled_machine machine{{50e9}, {5e9}, {{10e-6}, {5e9}}, {0.0}};

struct compared {
    std::string name;
    std::string why_not;  ///< empty when it can be made for this model
    seconds makespan{};
    seconds bubble{};
    seconds bound{};
    bytes memory{};       ///< of the fullest rank
    int buffers = 0;      ///< received messages at once
};

/// The figures of one schedule whose stages are the model's layers, cut as evenly as they can be.
compared figures_for(std::string const& name, program const& p, model_description const& model, microbatch_shape shape)
{
    compared result{name, {}, {}, {}, {}, {}, 0};
    auto const stages = stages_per_copy(p);
    auto const cuts = optimal_cuts(modelled_layer_times(model, shape), stages);
    if (cuts.empty()) {
        result.why_not = fmt::format("{} stages, but only {} layers", stages, model.layers.size());
        return result;
    }
    auto const slices = static_cast<double>(p.slices);
    auto one = modelled_costs(model, shape, cuts, machine);
    stage_costs costs;
    std::vector<bytes> activations;
    std::vector<bytes> memory(p.rows.size());
    for (std::size_t s = 0; s < p.placement.size(); ++s) {
        auto const chain = static_cast<std::size_t>(stages);
        auto const& c = one[s % chain];
        costs.push_back({c.forward / slices, c.backward / slices, c.input_gradient / slices, c.weight_gradient / slices, c.send_activation / slices,
                         c.send_gradient / slices});
        activations.emplace_back();
        for (auto l = cuts[s % chain]; l < cuts[s % chain + 1]; ++l) {
            activations.back() += bytes{activation_bytes(model.layers[at(l)], shape).count / p.slices};
            memory[static_cast<std::size_t>(p.placement[s])] +=
                bytes{parameter_count(model.layers[at(l)]) * (committed_bytes_per_parameter + working_bytes_per_parameter)};
        }
    }
    auto const peaks = peak_bytes_by_rank(p, activations);
    for (std::size_t r = 0; r < memory.size(); ++r) {
        result.memory = std::max(result.memory, memory[r] + peaks[r]);
    }
    auto const f = figures_of(p, costs);
    auto const buffers = receive_buffers_by_rank(lower(p));
    result.makespan = f.makespan;
    result.bubble = f.makespan_bubble;
    result.bound = f.lower_bound;
    result.buffers = *std::max_element(buffers.begin(), buffers.end());
    return result;
}

std::vector<compared> compare(model_description const& model, run_config const& config, comparison_options const& options)
{
    auto const shape = config.train.microbatch;
    if (options.schedule != "all" && !parse_schedule(options.schedule)) {
        schedule_command_options file;
        file.name = options.schedule;
        auto const chosen = choose(file);
        if (static_cast<int>(chosen.program.rows.size()) != options.ranks || chosen.microbatches != config.train.microbatches) {
            throw refusal{3, fmt::format("{}: a schedule of {} ranks and {} microbatches, but the plan has {} and {}", options.schedule,
                                         chosen.program.rows.size(), chosen.microbatches, options.ranks, config.train.microbatches)};
        }
        return {figures_for(chosen.name, chosen.program, model, shape)};
    }
    std::vector<compared> rows;
    for (auto const name : schedule_names) {
        if (options.schedule != "all" && options.schedule != name) {
            continue;
        }
        auto const family = *parse_schedule(name).schedule;
        schedule_shape const wanted{.ranks = options.ranks, .microbatches = config.train.microbatches};
        if (auto const fault = fault_of(family, wanted); fault != shape_fault::none) {
            rows.push_back({std::string{name}, sentence_of(fault), {}, {}, {}, {}, 0});
        } else {
            rows.push_back(figures_for(std::string{name}, make_program(family, wanted), model, shape));
        }
    }
    return rows;
}

double milliseconds(seconds time) { return time.count * 1e3; }
double mebibytes_of(bytes size) { return static_cast<double>(size.count) / (1024.0 * 1024.0); }

}  // namespace

int compare_schedules(model_description const& model, run_config const& config, comparison_options const& options)
{
    auto const rows = compare(model, config, options);
    std::optional<std::size_t> pick;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        bool const fits = rows[k].why_not.empty() && (options.memory_mib <= 0.0 || mebibytes_of(rows[k].memory) <= options.memory_mib);
        if (fits && (!pick || rows[k].makespan < rows[*pick].makespan
                     || (rows[k].makespan == rows[*pick].makespan && rows[k].memory < rows[*pick].memory))) {
            pick = k;
        }
    }
    if (options.json) {
        auto all = nlohmann::ordered_json::array();
        for (auto const& row : rows) {
            if (row.why_not.empty()) {
                all.push_back({{"schedule", row.name}, {"makespan_s", row.makespan.count}, {"bubble_s", row.bubble.count}, {"lower_bound_s", row.bound.count},
                               {"memory_bytes", row.memory.count}, {"received_messages", row.buffers}, {"runs", why_not_run(row.name).empty()}});
            } else {
                all.push_back({{"schedule", row.name}, {"cannot", row.why_not}});
            }
        }
        nlohmann::ordered_json const whole{{"schema", 1}, {"ranks", options.ranks}, {"microbatches", config.train.microbatches}, {"schedules", all},
                                           {"pick", pick ? nlohmann::ordered_json(rows[*pick].name) : nlohmann::ordered_json(nullptr)}};
        fmt::print("{}\n", whole.dump(2));
        return pick ? 0 : 3;
    }
    fmt::print("one pipeline of {} ranks, {} microbatches; times as modelled at {:g} GFLOP/s and {:g} GB/s\n", options.ranks, config.train.microbatches,
               machine.compute.count / 1e9, machine.link.bandwidth.count / 1e9);
    fmt::print("  {:<13}{:>12}{:>9}{:>12}{:>9}{:>14}\n", "schedule", "makespan", "bubble", "memory", "buffers", "lower bound");
    for (auto const& row : rows) {
        if (row.why_not.empty()) {
            fmt::print("  {:<13}{:>9.2f} ms{:>7.1f} %{:>8.1f} MiB{:>9}{:>11.2f} ms{}\n", row.name, milliseconds(row.makespan), 100 * (row.bubble / row.makespan),
                       mebibytes_of(row.memory), row.buffers, milliseconds(row.bound), row.makespan <= row.bound + seconds{1e-12} ? ", met" : "");
        } else {
            fmt::print("  {:<13}{}\n", row.name, row.why_not);
        }
    }
    if (!pick) {
        throw refusal{3, options.memory_mib > 0.0 ? fmt::format("no schedule keeps within {:g} MiB per rank", options.memory_mib) : "no schedule can be made"};
    }
    auto const cap = options.memory_mib > 0.0 ? fmt::format(" within {:g} MiB per rank", options.memory_mib) : std::string{};
    auto const runs = why_not_run(rows[*pick].name).empty() ? "" : "; ranks run gpipe and 1f1b so far";
    fmt::print("  shortest{}: {}{}\n", cap, rows[*pick].name, runs);
    return 0;
}

}  // namespace rheo::cli
