// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/commands.hpp"
#include "executor/cli/layer_profile_file.hpp"
#include "executor/cli/schedule.hpp"
#include "executor/plan/text_table.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/partition/optimal.hpp"
#include "rheo/partition/split_memory.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/plan/layer_memory.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/schedule/check/figures.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/relax.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "rheo/topology/cluster.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// The machine of the comparison where no profile says more: planning's flops, and messages between processes of one machine.
constexpr cluster_description machine{1, {{50e9}, {1e18}, {}}, {{10e-6}, {5e9}}, {{10e-6}, {5e9}}};

/// Times and sizes of the layers: the user's own, or those of the model's operations.
std::vector<layer_profile> layers_for(model_description const& model, run_config const& config, comparison_options const& options)
{
    if (options.profile.empty()) {
        auto layers = profile_of(model, config.train.microbatch, machine, policy_of(config));
        set_memory(layers, model, terms_of_ranks(config.train.microbatch, policy_of(config), config.plan.failures + 1));
        return layers;
    }
    return read_layer_profile(options.profile, model.layers.size(), policy_of(config));
}

struct compared {
    std::string name;
    std::string error;  ///< empty when it can be made for this model
    seconds makespan{};
    seconds bubble{};
    seconds bound{};
    bytes memory{};   ///< of the fullest rank
    int buffers = 0;  ///< received messages at once
};

/// What a stage of the layers [begin, end) takes for one of `slices` parts of a microbatch. The backward's parts share its time.
stage_cost cost_of_stage(std::vector<layer_profile> const& layers, layer_id begin, layer_id end, int slices)
{
    stage_cost cost{};
    for (auto l = begin; l < end; ++l) {
        cost.forward += layers[at(l)].forward / slices;
        cost.backward += layers[at(l)].backward / slices;
    }
    cost.input_gradient = cost.backward / 2.0;
    cost.weight_gradient = cost.backward / 2.0;
    auto const message = [&](std::size_t last) { return transfer_time(machine.between_nodes, {layers[last].boundary.count / slices}); };
    cost.send_activation = at(end) < layers.size() ? message(at(end) - 1) : seconds{};
    cost.send_gradient = begin > layer_id{0} ? message(at(begin) - 1) : seconds{};
    return cost;
}

/// The figures of one schedule whose stages are these layers, cut as evenly as they can be.
compared figures_for(std::string const& name, program const& p, std::vector<layer_profile> const& layers)
{
    compared result{name, {}, {}, {}, {}, {}, 0};
    auto const stages = stages_per_copy(p);
    auto const cuts = optimal_cuts(times_of(layers), stages);
    if (cuts.empty()) {
        result.error = fmt::format("{} stages, but only {} layers", stages, layers.size());
        return result;
    }
    stage_costs costs;
    for (std::size_t s = 0; s < p.placement.size(); ++s) {
        auto const stage = s % static_cast<std::size_t>(stages);
        costs.push_back(cost_of_stage(layers, cuts[stage], cuts[stage + 1], p.slices));
    }
    std::vector<int> const devices(static_cast<std::size_t>(stages), 1);
    result.memory = fullest_device(make_stage_prices(layers, machine.between_nodes), p, cuts, devices);
    auto const f = figures_of(p, costs);
    auto const buffers = receive_buffers_by_rank(lower(p));
    result.makespan = f.makespan;
    result.bubble = f.makespan_bubble;
    result.bound = f.lower_bound;
    result.buffers = *std::max_element(buffers.begin(), buffers.end());
    return result;
}

std::vector<compared> compare(std::vector<layer_profile> const& layers, run_config const& config, comparison_options const& options)
{
    if (options.schedule != "all" && !parse_schedule(options.schedule)) {
        schedule_command_options file;
        file.name = options.schedule;
        auto const chosen = choose(file);
        if (static_cast<int>(chosen.program.rows.size()) != options.ranks || chosen.microbatches != config.train.microbatches) {
            throw exit_error{exit_code::impossible_plan,
                             fmt::format("{}: a schedule of {} ranks and {} microbatches, but the plan has {} and {}", options.schedule,
                                         chosen.program.rows.size(), chosen.microbatches, options.ranks, config.train.microbatches)};
        }
        return {figures_for(chosen.name, chosen.program, layers)};
    }
    std::vector<compared> rows;
    for (auto const name : schedule_names()) {
        if (options.schedule != "all" && options.schedule != name) {
            continue;
        }
        auto const family = *parse_schedule(name);
        auto const slices = config.train.microbatch.slices;  // 1: a family that cuts sequences has its own choice
        schedule_shape const shape{.ranks = options.ranks, .microbatches = config.train.microbatches};
        auto const wanted = slices > 1 ? on_slices(family, shape, slices) : shape;
        if (auto const fault = error_of(family, wanted); fault != shape_error::none) {
            rows.push_back({std::string{name}, message_of(fault), {}, {}, {}, {}, 0});
        } else {
            rows.push_back(
                figures_for(std::string{name}, slices > 1 ? with_slices(make_program(family, wanted), slices) : make_program(family, wanted), layers));
        }
    }
    return rows;
}

double milliseconds(seconds time) { return time.count * 1e3; }
double mebibytes_of(bytes size) { return static_cast<double>(size.count) / (1024.0 * 1024.0); }

void print_json(std::vector<compared> const& rows, std::optional<std::size_t> pick, run_config const& config, comparison_options const& options)
{
    auto all = nlohmann::ordered_json::array();
    for (auto const& row : rows) {
        if (row.error.empty()) {
            all.push_back({{"schedule", row.name},
                           {"makespan_s", row.makespan.count},
                           {"bubble_s", row.bubble.count},
                           {"lower_bound_s", row.bound.count},
                           {"memory_bytes", row.memory.count},
                           {"received_messages", row.buffers},
                           {"runs", true}});  // every family does
        } else {
            all.push_back({{"schedule", row.name}, {"error", row.error}});
        }
    }
    nlohmann::ordered_json const whole{{"schema", 1},
                                       {"ranks", options.ranks},
                                       {"microbatches", config.train.microbatches},
                                       {"schedules", all},
                                       {"pick", pick ? nlohmann::ordered_json(rows[*pick].name) : nlohmann::ordered_json(nullptr)}};
    fmt::print("{}\n", whole.dump(2));
}

}  // namespace

int compare_schedules(model_description const& model, run_config const& config, comparison_options const& options)
{
    auto const rows = compare(layers_for(model, config, options), config, options);
    auto const is_over = [&](compared const& row) { return options.memory_mib > 0.0 && mebibytes_of(row.memory) > options.memory_mib; };
    std::optional<std::size_t> pick;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        bool const fits = rows[k].error.empty() && !is_over(rows[k]);
        if (fits && (!pick || rows[k].makespan < rows[*pick].makespan || (rows[k].makespan == rows[*pick].makespan && rows[k].memory < rows[*pick].memory))) {
            pick = k;
        }
    }
    if (options.json) {
        print_json(rows, pick, config, options);
        return pick ? 0 : 3;
    }
    fmt::print("one pipeline of {} ranks, {} microbatches; times {}\n", options.ranks, config.train.microbatches,
               options.profile.empty()
                   ? fmt::format("as modelled at {:g} GFLOP/s and {:g} GB/s", machine.device.compute.count / 1e9, machine.between_nodes.bandwidth.count / 1e9)
                   : fmt::format("of {}, messages at {:g} GB/s", options.profile, machine.between_nodes.bandwidth.count / 1e9));
    std::vector<text_row> lines;
    for (auto const& row : rows) {
        if (!row.error.empty()) {
            lines.push_back({{row.name}, row.error});
            continue;
        }
        bool const met = row.makespan <= row.bound + seconds{1e-12};
        lines.push_back(
            {{row.name, fmt::format("{:.2f} ms", milliseconds(row.makespan)), fmt::format("{:.1f} %", 100 * (row.bubble / row.makespan)),
              fmt::format("{:.1f} MiB", mebibytes_of(row.memory)), fmt::format("{}", row.buffers), fmt::format("{:.2f} ms", milliseconds(row.bound))},
             fmt::format("{}{}{}", met ? "met" : "", met && is_over(row) ? ", " : "", is_over(row) ? "over the cap" : "")});
    }
    fmt::print("{}", to_text({{"schedule"}, {"makespan", true}, {"bubble", true}, {"memory", true}, {"buffers", true}, {"lower bound", true}}, lines));
    if (!pick) {
        std::optional<double> least;
        for (auto const& row : rows) {
            least = row.error.empty() ? std::min(least.value_or(mebibytes_of(row.memory)), mebibytes_of(row.memory)) : least;
        }
        throw exit_error{exit_code::impossible_plan, least ? fmt::format("no schedule keeps within {:g} MiB per rank; the least that one needs is {:.2f}",
                                                                         options.memory_mib, std::ceil(*least * 100) / 100)
                                                           : "no schedule can be made"};
    }
    auto const cap = options.memory_mib > 0.0 ? fmt::format(" within {:g} MiB per rank", options.memory_mib) : std::string{};
    fmt::print("  shortest{}: {}\n", cap, rows[*pick].name);
    return 0;
}

}  // namespace rheo::cli
