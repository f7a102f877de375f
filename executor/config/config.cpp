// SPDX-License-Identifier: Apache-2.0
#include "executor/config/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/config_fields.hpp"
#include "executor/config/data_sources.hpp"
#include "executor/config/files/schedule_file.hpp"
#include "executor/config/inject.hpp"
#include "executor/config/learning_rate.hpp"
#include "executor/config/plan_change.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "rheo/tensor/exact_row_sum.hpp"

namespace rheo::inline v0 {

namespace {

std::string expected(field_limits const& limits)
{
    constexpr auto open = std::numeric_limits<double>::max();
    if (limits.most == open) {
        return fmt::format("{} {}", limits.above_least ? "above" : "at least", limits.least);
    }
    return fmt::format("{} {} and {} {}", limits.above_least ? "above" : "at least", limits.least, limits.below_most ? "below" : "at most", limits.most);
}

bool within(double value, field_limits const& limits)
{
    return std::isfinite(value) && (limits.above_least ? value > limits.least : value >= limits.least) &&
           (limits.below_most ? value < limits.most : value <= limits.most);
}

struct limit_check {
    bool model;  ///< the keys of [model], or all others
    std::optional<invalid_key> fault = {};

    template <class T>
    void operator()(std::string_view key, T const& value, field_limits const& limits, std::string_view)
    {
        if (fault || key.starts_with("model.") != model) {
            return;
        }
        if constexpr (std::is_same_v<T, tensor_degrees>) {
            (*this)(key, value.values, limits, {});
        } else if constexpr (std::is_same_v<T, std::vector<int>>) {
            for (auto const element : value) {
                judge(key, element, limits, "each element of ");
            }
        } else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
            judge(key, value, limits, "");
        }
    }

    void operator()(std::string_view key, in_parts<int const> value, field_limits const& limits, std::string_view)
    {
        if (!fault && key.starts_with("model.") == model) {
            judge(key, value.count / value.parts, limits, "");
        }
    }

    template <class Quantity>
    void operator()(std::string_view key, in_unit<Quantity const> value, field_limits const& limits, std::string_view)
    {
        if (!fault && key.starts_with("model.") == model) {
            judge(key, static_cast<double>(value.quantity.count) / value.unit, limits, "");
        }
    }

    template <class T>
    void judge(std::string_view key, T value, field_limits const& limits, std::string_view which)
    {
        if (!fault && !within(static_cast<double>(value), limits)) {
            fault = {std::string{key}, fmt::format("{}{} must be {}, not {}", which, key, expected(limits), value)};
        }
    }
};

std::optional<invalid_key> check_limits(run_config const& config, bool model)
{
    limit_check visitor{model};
    for_each_field(config, visitor);
    return visitor.fault;
}

std::optional<invalid_key> check_power(run_config const& config)
{
    auto const& power = config.power;
    if (power.device == power_source::emulated && power.clock_profile.empty()) {
        return invalid_key{"power.clock_profile", "power.clock_profile must name a file where power.device = \"emulated\": it is what is emulated"};
    }
    if (power.device == power_source::none && !power.sweep.empty()) {
        return invalid_key{"power.device", "power.device = \"none\" has no clock that power.sweep could try; nvml, cpu, auto or emulated has one"};
    }
    if (power.device == power_source::none && !power.clock_profile.empty()) {
        return invalid_key{"power.device", "power.device = \"none\" has no clock that could follow power.clock_profile; nvml, cpu, auto or emulated has one"};
    }
    if (power.slow.recovered > power.slow.threshold) {
        return invalid_key{"power.straggler_recovered",
                           fmt::format("power.straggler_recovered = {} must be at most power.straggler_threshold = {}: who is slow is not well",
                                       power.slow.recovered, power.slow.threshold)};
    }
    if (!power.clock_profile.empty() && config.plan.recompute != recompute_policy::never) {
        return invalid_key{"plan.recompute", "plan.recompute has no profile: clocks are planned for programs that keep their activations"};
    }
    return std::nullopt;
}

std::optional<invalid_key> check_device(run_config const& config)
{
    // A tied tensor has two uses, one that shards share as many as there are shards.
    if (int const most = most_row_contributions / std::max(2, config.train.shards);
        config.train.sums == sum_integers::int32 && config.train.microbatches > most / config.train.microbatch.slices) {
        return invalid_key{"train.sums", fmt::format("train.sums = \"int32\" takes at most {} microbatches or slices of them per step", most)};
    }
    if (config.train.dtype == stored_numbers::brain_float16 && config.run.device == compute_device::cpu) {
        return invalid_key{"train.dtype", "train.dtype = \"bf16\" is computed by a device: run.device = \"cuda\""};
    }
    if (config.train.state == stored_numbers::brain_float16 && config.train.dtype != stored_numbers::brain_float16) {
        return invalid_key{"train.state",
                           "train.state = \"bf16\" needs train.dtype = \"bf16\": the model computes with the parameters that the optimizer keeps"};
    }
    if (config.run.transport == transport_choice::nccl && config.run.device == compute_device::cpu) {
        return invalid_key{"run.transport", "run.transport = \"nccl\" moves what lies on GPUs: run.device = \"cuda\""};
    }
    auto const attention = config.run.attention;
    bool const in_bf16 = attention == attention_kernel::warpgroup || attention == attention_kernel::cudnn;
    if (in_bf16 && config.train.dtype != stored_numbers::brain_float16) {
        return invalid_key{"run.attention", fmt::format("run.attention = \"{}\" is computed in bf16: train.dtype = \"bf16\"", name_of(attention))};
    }
    if (attention == attention_kernel::cudnn && config.model.dropout_per_mille != 0) {
        return invalid_key{
            "run.attention",
            "run.attention = \"cudnn\" has random numbers of its own, which are not those of a microbatch wherever it is computed: model.dropout = 0"};
    }
    if (attention == attention_kernel::cudnn && config.train.microbatch.slices > 1) {
        return invalid_key{"run.attention", "run.attention = \"cudnn\" takes whole sequences: train.slices = 1"};
    }
    return std::nullopt;
}

std::optional<invalid_key> check_checkpoint(run_config const& config)
{
    auto const& c = config.checkpoint;
    if (c.local.empty() && (c.replicas > 0 || c.publish_every > 1)) {
        auto const* const key = c.replicas > 0 ? "checkpoint.replicas" : "checkpoint.publish_every";
        return invalid_key{key, fmt::format("{} = {} needs checkpoint.local, a folder of each node's own that gets checkpoints first", key,
                                            c.replicas > 0 ? c.replicas : c.publish_every)};
    }
    if (!c.local.empty() && c.local.front() != '/') {
        return invalid_key{"checkpoint.local",
                           fmt::format("checkpoint.local = \"{}\" must be an absolute path: ranks may have other working folders", c.local)};
    }
    return std::nullopt;
}

}  // namespace

std::optional<invalid_key> check(run_config const& config)
{
    if (auto fault = check_limits(config, false)) {
        return fault;
    }
    auto const& plan = config.plan;
    auto const& microbatch = config.train.microbatch;
    if (microbatch.tokens % microbatch.slices != 0) {
        return invalid_key{"train.slices", fmt::format("train.slices = {} must divide train.microbatch.tokens = {}", microbatch.slices, microbatch.tokens)};
    }
    if (microbatch.slices == 1 && plan.schedule != automatic_schedule() && cuts_sequences(plan.schedule)) {
        return invalid_key{"plan.schedule",
                           fmt::format("plan.schedule = \"{}\" cuts sequences: train.slices must say into how many slices, 2 or more", name_of(plan.schedule))};
    }
    if ((plan.recompute == recompute_policy::automatic || plan.recompute == recompute_policy::selective) && plan.memory == bytes{}) {
        return invalid_key{"plan.recompute", fmt::format("plan.recompute = \"{}\" keeps ranks within plan.memory_mib, which must be set",
                                                         plan.recompute == recompute_policy::automatic ? "auto" : "selective")};
    }
    if (microbatch.slices > 1 && plan.recompute != recompute_policy::never && plan.recompute != recompute_policy::selective) {
        return invalid_key{"plan.recompute", fmt::format("plan.recompute with train.slices = {} is not possible: later slices attend to what would be evicted",
                                                         microbatch.slices)};
    }
    for (auto const ranks : plan.pipelines) {
        if (ranks < plan.min_ranks) {
            return invalid_key{"plan.pipelines",
                               fmt::format("plan.pipelines = {} has a pipeline of fewer than plan.min_ranks = {} ranks", plan.pipelines, plan.min_ranks)};
        }
    }
    if (auto const& degrees = plan.tensor.values; degrees.size() > 1 && std::find(degrees.begin(), degrees.end(), 0) != degrees.end()) {
        return invalid_key{"plan.tensor",
                           fmt::format("plan.tensor = {} must name at least one rank for each position; 0, the planner's choice, stands alone", degrees)};
    }
    if (!plan.layers.empty() && plan.pipelines.empty()) {
        return invalid_key{"plan.layers", fmt::format("plan.layers = {} cuts pipelines that plan.pipelines must name", plan.layers)};
    }
    if (!plan.shares.empty()) {
        if (plan.shares.size() != plan.pipelines.size()) {
            return invalid_key{"plan.shares",
                               fmt::format("plan.shares = {} must name as many shares as plan.pipelines = {} names pipelines", plan.shares, plan.pipelines)};
        }
        if (auto const sum = std::accumulate(plan.shares.begin(), plan.shares.end(), std::int64_t{0}); sum != config.train.microbatches) {
            return invalid_key{"plan.shares",
                               fmt::format("plan.shares = {} must add up to train.microbatches = {}, not to {}", plan.shares, config.train.microbatches, sum)};
        }
    }
    if (auto fault = check_device(config)) {
        return fault;
    }
    if (auto fault = check_power(config)) {
        return fault;
    }
    if (auto fault = check_checkpoint(config)) {
        return fault;
    }
    if (auto error = error_of_data(config.data); !error.empty()) {
        return invalid_key{error.substr(0, error.find(' ')), std::move(error)};
    }
    if (auto error = error_of_schedule(config.optimizer); !error.empty()) {
        return invalid_key{error.substr(0, error.find_first_of(" :")), std::move(error)};
    }
    if (auto error = error_of_changes(config); !error.empty()) {
        return invalid_key{"plan.changes", std::move(error)};
    }
    for (auto const& injection : config.run.inject) {
        auto const fault = parse_fault(injection);
        if (!fault) {
            return invalid_key{"run.inject", fault.error()};
        }
        if (fault->kind == fault_kind::slow && config.power.device != power_source::emulated) {
            return invalid_key{"run.inject", fmt::format("the fault '{}' needs power.device = \"emulated\": no other device can be made slow", injection)};
        }
    }
    return std::nullopt;
}

namespace {

/// Keys of one family that the other has no use for, and what a Llama asks of its shape.
std::optional<invalid_key> check_family(run_config const& config)
{
    auto const& model = config.model;
    auto const& llama = config.llama;
    if (config.family == model_family::gpt2) {
        llama_config const none;
        for (auto const& [key, given] : {std::pair{"model.kv_heads", llama.kv_heads != none.kv_heads},
                                         {"model.head_dim", llama.head_dim != none.head_dim},
                                         {"model.mlp_width", llama.mlp_width != none.mlp_width},
                                         {"model.rope_base", llama.rope_base != none.rope_base},
                                         {"model.rope_scaling", llama.scaling != none.scaling}}) {
            if (given) {
                return invalid_key{key, fmt::format("{} is a llama's: it needs model.family = \"llama\", or another but gpt2", key)};
            }
        }
        return std::nullopt;
    }
    if (llama.head_dim % 2 != 0) {
        return invalid_key{"model.head_dim", fmt::format("model.head_dim = {} must be even: a llama turns pairs of a head's columns", llama.head_dim)};
    }
    if (llama.head_dim == 0 && model.width / model.heads % 2 != 0) {
        return invalid_key{"model.width", fmt::format("model.width = {} must be an even multiple of model.heads = {}: a llama turns pairs of a head's columns",
                                                      model.width, model.heads)};
    }
    if (llama.kv_heads != 0 && model.heads % llama.kv_heads != 0) {
        return invalid_key{"model.kv_heads", fmt::format("model.kv_heads = {} must divide model.heads = {}", llama.kv_heads, model.heads)};
    }
    if (model.dropout_per_mille != 0) {
        return invalid_key{"model.dropout", "model.dropout must be 0: a llama has none"};
    }
    if (auto const wrong = error_of(llama.scaling); !wrong.empty()) {
        return invalid_key{"model.rope_scaling",
                           fmt::format("model.rope_scaling = \"{}\" {}: see model.rope_factor and the keys behind it", name_of(llama.scaling.kind), wrong)};
    }
    return std::nullopt;
}

}  // namespace

std::optional<invalid_key> check_model(run_config const& config)
{
    if (auto fault = check_limits(config, true)) {
        return fault;
    }
    auto const& model = config.model;
    if (config.llama.head_dim == 0 && model.width % model.heads != 0) {
        return invalid_key{"model.width", fmt::format("model.width = {} must be a multiple of model.heads = {}", model.width, model.heads)};
    }
    if (config.train.microbatch.tokens > model.context) {
        return invalid_key{"train.microbatch.tokens",
                           fmt::format("train.microbatch.tokens = {} must be at most model.context = {}", config.train.microbatch.tokens, model.context)};
    }
    if (auto fault = check_family(config)) {
        return fault;
    }
    if (auto const fault = grid_error(whole_model_of(config), config.train.shards); !fault.empty()) {
        return invalid_key{"train.shards", fmt::format("train.shards = {} does not fit the model: {}", config.train.shards, fault)};
    }
    return std::nullopt;
}

model_description model_of(run_config const& config) { return on_grid(whole_model_of(config), config.train.shards); }

model_description whole_model_of(run_config const& config)
{
    auto const& s = config.model;
    return config.family == model_family::gpt2 ? gpt_model(s) : llama_model(llama_shape_of(config));
}

llama_shape llama_shape_of(run_config const& config)
{
    auto const& s = config.model;
    auto const& llama = config.llama;
    return {.vocabulary = s.vocabulary,
            .context = s.context,
            .width = s.width,
            .heads = s.heads,
            .kv_heads = llama.kv_heads == 0 ? s.heads : llama.kv_heads,
            .blocks = s.blocks,
            .mlp_width = llama.mlp_width == 0 ? (8 * s.width / 3 + 15) / 16 * 16 : llama.mlp_width,
            .rope_base = llama.rope_base,
            .tied = s.tied,
            .head_dim = llama.head_dim,
            .scaling = llama.scaling,
            .norm_epsilon_e9 = s.norm_epsilon_e9,
            .qkv_bias = config.family == model_family::qwen2,
            .qk_norm = config.family == model_family::qwen3};
}

model_description running_model(run_config const& config) { return config.run.fuse ? fused(model_of(config)) : model_of(config); }

std::optional<invalid_key> check_ranks(run_config const& config, int ranks)
{
    auto const& pipelines = config.plan.pipelines;
    auto const spares = config.plan.spares;
    auto const sum = std::accumulate(pipelines.begin(), pipelines.end(), std::int64_t{spares});
    if (!pipelines.empty() && sum != ranks) {
        return invalid_key{"plan.pipelines",
                           fmt::format("plan.pipelines = {}{} asks for {} ranks, but {} {} started", pipelines,
                                       spares > 0 ? fmt::format(" with plan.spares = {}", spares) : "", sum, ranks, ranks == 1 ? "is" : "are")};
    }
    if (spares >= ranks) {
        return invalid_key{"plan.spares",
                           fmt::format("plan.spares = {} leaves none of the {} ranks that {} started a place", spares, ranks, ranks == 1 ? "is" : "are")};
    }
    auto const size = config.plan.node_size;
    if (auto const nodes = (ranks + size - 1) / size; config.checkpoint.replicas > 0 && config.checkpoint.replicas >= nodes) {
        return invalid_key{"checkpoint.replicas",
                           fmt::format("checkpoint.replicas = {} needs {} nodes, but {} rank{} with plan.node_size = {} {} on {}", config.checkpoint.replicas,
                                       config.checkpoint.replicas + 1, ranks, ranks == 1 ? "" : "s", size, ranks == 1 ? "is" : "are", nodes)};
    }
    return std::nullopt;
}

}  // namespace rheo::inline v0
