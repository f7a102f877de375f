// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/sweep/grid_points.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/simulate/job_of_config.hpp"
#include "executor/config/config_setting.hpp"
#include "executor/config/toml.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/nearest_name.hpp"

namespace rheo::cli {

namespace {

constexpr std::string_view cluster_prefix = "cluster.";
constexpr std::string_view pipelines_key = "pipelines.count";
constexpr std::string_view stages_key = "pipelines.stages";
constexpr std::string_view nodes_key = "cluster.nodes";
constexpr std::string_view node_devices_key = "cluster.devices_per_node";
constexpr double most_value = 1e9;
constexpr int most_devices = 1 << 20;

bool is_count(std::string_view key) { return key == nodes_key || key == node_devices_key || key == pipelines_key || key == stages_key; }

/// The rate, latency or memory that a key of [cluster] names. A level by its name.
using amount_change = std::function<void(cluster_model&, double)>;

amount_change change_of(std::string_view key, std::vector<cluster_level> const& levels)
{
    auto const device = [](auto const& set) {
        return [set](cluster_model& c, double value) {
            set(c.device, value);
            for (auto& d : c.different) {
                set(d.device, value);
            }
        };
    };
    if (key == "cluster.compute_tflops") {
        return device([](cluster_device& d, double value) { d.description.compute = {value * 1e12}; });
    }
    if (key == "cluster.memory_rate_gb_per_s") {
        return device([](cluster_device& d, double value) { d.description.traffic = {value * 1e9}; });
    }
    if (key == "cluster.memory_gib") {
        return device([](cluster_device& d, double value) { d.description.memory = bytes{static_cast<std::int64_t>(value * 1073741824.0)}; });
    }
    for (std::size_t l = 0; l < levels.size(); ++l) {
        if (key == fmt::format("cluster.level.{}.rate_gb_per_s", levels[l].name)) {
            return [l](cluster_model& c, double value) {
                c.levels[l].network.link.bandwidth = {value * 1e9};
                c.levels[l].lines.clear();  // of messages that were measured at another rate
            };
        }
        if (key == fmt::format("cluster.level.{}.latency_us", levels[l].name)) {
            return [l](cluster_model& c, double value) {
                c.levels[l].network.link.latency = microseconds(value);
                c.levels[l].lines.clear();
            };
        }
    }
    return {};
}

std::vector<std::string> cluster_keys(std::vector<cluster_level> const& levels)
{
    std::vector<std::string> keys{std::string{nodes_key}, std::string{node_devices_key}, "cluster.compute_tflops", "cluster.memory_rate_gb_per_s",
                                  "cluster.memory_gib"};
    for (auto const& level : levels) {
        keys.push_back(fmt::format("cluster.level.{}.rate_gb_per_s", level.name));
        keys.push_back(fmt::format("cluster.level.{}.latency_us", level.name));
    }
    return keys;
}

double number_of(grid_axis const& axis, std::string const& value, bool or_zero)
{
    double number = 0.0;
    if (!read_number(value, number) || !((number >= 1e-9 && number <= most_value) || (or_zero && number == 0.0))) {
        refuse_setting(axis.place,
                       fmt::format("{} must hold numbers {} and at most {:g}, not {}", axis.key, or_zero ? "of at least 0" : "above 0", most_value, value));
    }
    return number;
}

int count_of(grid_axis const& axis, std::string const& value)
{
    int count = 0;
    if (!read_number(value, count) || count < 1 || count > most_devices) {
        refuse_setting(axis.place, fmt::format("{} must hold whole numbers from 1 to {}, not {}", axis.key, most_devices, value));
    }
    return count;
}

/// The shape of a point, as far as the grid has it.
struct point_shape {
    std::optional<int> nodes{};
    std::optional<int> devices_per_node{};
    std::optional<int> pipelines{};
    std::optional<int> stages{};

    std::optional<int>& operator[](std::string_view key)
    {
        return key == nodes_key ? nodes : key == node_devices_key ? devices_per_node : key == pipelines_key ? pipelines : stages;
    }
};

/// Nodes are counted at the outermost level. Returns why the cluster cannot have them.
std::string set_nodes(cluster_model& cluster, point_shape const& shape)
{
    auto& levels = cluster.levels;
    if (shape.devices_per_node) {
        levels.front().network.members = *shape.devices_per_node;
    }
    if (!shape.nodes) {
        return {};
    }
    if (levels.size() == 1) {
        return *shape.nodes == 1 ? ""
                                 : fmt::format("the cluster has one level, so it is one node, not {}; expected a [[level]] that joins nodes", *shape.nodes);
    }
    int inner = 1;
    for (std::size_t l = 1; l + 1 < levels.size(); ++l) {
        inner *= levels[l].network.members;
    }
    if (*shape.nodes % inner != 0) {
        return fmt::format("{} nodes are no whole groups of {} nodes, the members of the levels below {}", *shape.nodes, inner, in_quotes(levels.back().name));
    }
    levels.back().network.members = *shape.nodes / inner;
    return {};
}

/// Ranks that share each stage, where all stages have as many.
std::optional<std::int64_t> degree_of(run_config const& config)
{
    auto const& degrees = config.plan.tensor.values;
    bool const is_one_number = !config.plan.tensor.is_automatic() && degrees.size() == 1;
    return is_one_number ? std::optional{std::int64_t{degrees.front()}} : std::nullopt;
}

/// So many devices as the pipelines of a point need. @pre there is a degree
std::int64_t devices_for(run_config const& config, point_shape const& shape)
{
    return *degree_of(config) * shape.pipelines.value_or(1) * shape.stages.value_or(1) + config.plan.spares;
}

/// Equal pipelines; what the grid does not say follows from the number of ranks. Returns why there are none.
std::string set_pipelines(run_config& config, point_shape const& shape, int devices)
{
    if (!shape.pipelines && !shape.stages) {
        return {};
    }
    auto const degree = degree_of(config);
    if (!degree) {
        return "plan.tensor is not one degree; expected one beside [pipelines]";
    }
    auto const free = std::int64_t{devices} - config.plan.spares;
    auto const group = devices_for(config, shape) - config.plan.spares;
    if (group > free) {
        return fmt::format("{} pipelines of {} stages of {} ranks take {} ranks; the cluster has {} beside {} spares", shape.pipelines.value_or(1),
                           shape.stages.value_or(1), *degree, group, free, config.plan.spares);
    }
    if (!(shape.stages && shape.pipelines) && free % group != 0) {
        return fmt::format("{} ranks are no equal pipelines: {}", free,
                           shape.stages ? fmt::format("{} stages of {} make {}", *shape.stages, *degree, group)
                                        : fmt::format("{} pipelines of ranks that share stages by {}", *shape.pipelines, *degree));
    }
    auto const stages = shape.stages ? *shape.stages : free / group;
    auto const pipelines = shape.pipelines ? *shape.pipelines : free / group;
    config.plan.pipelines.assign(static_cast<std::size_t>(pipelines), static_cast<int>(stages * *degree));
    return {};
}

}  // namespace

grid_points::grid_points(sweep_grid grid, run_config config, std::optional<cluster_model> cluster, step_reduction reduction)
    : grid_{std::move(grid)}, config_{std::move(config)}, cluster_{std::move(cluster)}, reduction_{reduction}
{
    check_axes();
}

void grid_points::check_axes() const
{
    auto const levels = cluster_ ? cluster_->levels : one_machine(1).levels;
    for (auto const& axis : grid_.axes) {
        if (axis.key == "plan.cluster") {
            refuse_setting(axis.place, "plan.cluster cannot vary; expected values of its keys in [cluster], or a sweep for each file");
        }
        if (is_count(axis.key)) {
            for (auto const& value : axis.values) {
                count_of(axis, value);
            }
        } else if (axis.key.starts_with(cluster_prefix)) {
            if (!change_of(axis.key, levels)) {
                auto const keys = cluster_keys(levels);
                std::vector<std::string_view> const known{keys.begin(), keys.end()};
                refuse_setting(axis.place, fmt::format("unknown key {}; the nearest known one is {}", in_quotes(axis.key),
                                                       nearest_name(std::string_view{axis.key}.substr(0, 60), known)));
            }
            for (auto const& value : axis.values) {
                number_of(axis, value, axis.key.ends_with("latency_us"));
            }
        } else {
            for (auto const& value : axis.values) {
                std::string const setting = fmt::format("{}={}", axis.key, value);
                try {
                    assign_settings(config_, {&setting, 1});
                } catch (exit_error const& error) {
                    refuse_setting(axis.place, error.what());
                }
            }
        }
    }
}

result<job_description> grid_points::job_at(std::int64_t point) const
{
    std::vector<std::string> settings;
    point_shape shape;
    auto cluster = cluster_;
    auto const at = values_at(grid_, point);
    std::vector<std::pair<amount_change, double>> changes;
    auto const levels = cluster_ ? cluster_->levels : one_machine(1).levels;
    for (std::size_t k = 0; k < at.size(); ++k) {
        auto const& axis = grid_.axes[k];
        auto const& value = axis.values[at[k]];
        if (is_count(axis.key)) {
            shape[axis.key] = count_of(axis, value);
        } else if (auto change = change_of(axis.key, levels)) {
            changes.emplace_back(std::move(change), number_of(axis, value, true));
        } else {
            settings.push_back(fmt::format("{}={}", axis.key, value));
        }
    }
    run_config config;
    try {
        config = settings.empty() ? config_ : with_settings(config_, settings);
    } catch (exit_error const& error) {
        return failure{error.what()};
    }
    if (!cluster) {
        auto const devices = std::max<std::int64_t>({1, named_ranks(config), degree_of(config) ? devices_for(config, shape) : 1});
        if (devices > most_devices) {
            return failure{fmt::format("the pipelines take {} ranks; a machine has at most {}", devices, most_devices)};
        }
        cluster = one_machine(static_cast<int>(devices));
    }
    if (auto why = set_nodes(*cluster, shape); !why.empty()) {
        return failure{std::move(why)};
    }
    for (auto const& [change, value] : changes) {
        change(*cluster, value);
    }
    if (auto fault = cluster_fault(*cluster); !fault.empty()) {
        return failure{std::move(fault)};
    }
    if (auto why = set_pipelines(config, shape, devices_of(*cluster)); !why.empty()) {
        return failure{std::move(why)};
    }
    auto const named = named_ranks(config);
    auto const ranks = named > 0 ? named : devices_of(*cluster);
    if (auto const fault = check_ranks(config, ranks)) {
        return failure{fault->message};
    }
    auto job = job_of_config(config, *std::move(cluster), ranks);
    if (!job) {
        return job;
    }
    auto clocks = clocks_of(config, *job);
    if (!clocks) {
        return failure{clocks.error()};
    }
    job->clocks = *std::move(clocks);
    job->reduction = reduction_;
    return job;
}

}  // namespace rheo::cli
