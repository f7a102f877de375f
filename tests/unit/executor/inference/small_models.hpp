#pragma once
// SPDX-License-Identifier: Apache-2.0

// Small random models of each family as checkpoints, and their logits by the kernels of a training.

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/config/toml.hpp"
#include "executor/host/stage.hpp"
#include "executor/inference/loaded_model.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace small_models {

using namespace rheo;

inline constexpr int vocabulary = 61;
inline constexpr int context = 40;

inline run_config base(model_family family)
{
    run_config config;
    config.family = family;
    config.model = {.vocabulary = vocabulary, .context = context, .width = 48, .heads = 6, .blocks = 2, .tied = false};
    config.train.microbatch = {.sequences = 2, .tokens = 16};
    if (family != model_family::gpt2) {
        config.llama = {.kv_heads = 2, .mlp_width = 52, .rope_base = 1000};
    }
    return config;
}

struct named_config {
    std::string name;
    run_config config;
};

/// One of each family, with what it has of its own.
inline std::vector<named_config> families()
{
    std::vector<named_config> all;
    using enum model_family;
    all.push_back({"GPT-2", base(gpt2)});
    all.back().config.model.tied = true;
    all.push_back({"Llama 2", base(llama)});
    all.back().config.llama.kv_heads = 6;
    all.push_back({"Llama 3", base(llama)});
    all.back().config.llama.scaling = {rope_scaling_kind::llama3, 8000, 1000, 4000, 16};
    all.push_back({"Mistral", base(mistral)});
    all.back().config.llama.head_dim = 10;
    all.push_back({"Qwen2", base(qwen2)});
    all.push_back({"Qwen3", base(qwen3)});
    all.back().config.llama.head_dim = 12;
    all.back().config.model.tied = true;
    return all;
}

/// A checkpoint of a model with random weights. @returns its folder
inline std::filesystem::path write_checkpoint(temporary_folder const& folder, run_config const& config, unsigned seed = 11)
{
    auto const info = state_of(whole_model_of(config));
    host_backend backend{1};
    resident_state state{info, backend};
    std::mt19937 draw{seed};
    std::normal_distribution<float> normal{0, 0.2F};
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        if (info.tensors[at(t)].is_parameter) {
            for (auto& value : state.add(t).parameter.floats()) {
                value = normal(draw) + static_cast<float>(info.tensors[at(t)].initial.mean);
            }
        }
    }
    std::vector<std::vector<rank_id>> const holders(info.tensors.size(), {rank_id{0}});
    auto const run = folder.path / "run";
    std::filesystem::create_directories(run);
    checkpoint_writer writer{run};
    writer.begin(take_part(state, deal_writing(info, holders), rank_id{0}, step_id{1}, generation_id{1}));
    writer.wait();
    writer.publish({step_id{1}, generation_id{1}, {rank_id{0}}, tensors_for_manifest(state), {{"seed", "1"}}, to_toml(config), {}, 1});
    REQUIRE(writer.wait() == writer_state::published);
    return run;
}

inline std::vector<std::int32_t> random_tokens(std::int64_t count, unsigned seed, int below = vocabulary)
{
    std::mt19937 draw{seed};
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
    for (auto& token : tokens) {
        token = static_cast<std::int32_t>(draw() % static_cast<unsigned>(below));
    }
    return tokens;
}

/// Of one sequence, [tokens][vocabulary], as the forward of a training computes them.
inline std::vector<std::vector<float>> training_logits(loaded_model& model, std::vector<std::int32_t> const& tokens)
{
    host_stage layers{
        std::span{model.model().layers}, layer_id{0}, {.sequences = 1, .tokens = static_cast<int>(tokens.size())}, 1, model.state(), model.backend()};
    activation a{layers.layout()};
    a.tokens = tokens;
    a.targets = tokens;
    loss_sum loss;
    layers.forward(a, {.seed = 1, .step = step_id{0}, .microbatch = microbatch_id{0}, .training = false}, loss);
    std::vector<std::vector<float>> logits;
    for (std::int64_t row = 0; row < std::ssize(tokens); ++row) {
        logits.push_back(layers.logits(a, row));
    }
    return logits;
}

}  // namespace small_models
