// SPDX-License-Identifier: Apache-2.0
// exported_model make <kind> <folder>: a model with weights of which none is a zero or a one, as a checkpoint, exported; beside it some tokens and the
// logits that the stage computes for them, both as plain little-endian numbers, for a reference to compare with.
// exported_model logits <checkpoint> <folder>: the logits of a checkpoint for the folder's tokens.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/checkpoint/huggingface/export.hpp"
#include "executor/config/toml.hpp"
#include "executor/host/stage.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"

namespace {

using namespace rheo;
namespace fs = std::filesystem;

/// What kinds differ in.
struct kind_of_model {
    model_family family = model_family::llama;
    bool tied = false;
    int kv_heads = 3;
    int head_dim = 0;
    rope_scaling scaling{};
    int norm_epsilon_e9 = 10'000;
};

run_config config_of_kind(std::string const& name)
{
    using enum model_family;
    std::map<std::string, kind_of_model> const kinds{
        {"gpt2", {.family = gpt2, .tied = true}},
        {"gpt2-untied", {.family = gpt2}},
        {"llama2", {}},
        {"llama-tied", {.tied = true, .kv_heads = 1}},
        {"llama-linear", {.tied = true, .scaling = {.kind = rope_scaling_kind::linear, .factor_per_mille = 2500}}},
        {"llama3", {.tied = true, .scaling = {rope_scaling_kind::llama3, 8000, 1000, 4000, 64}}},
        {"mistral", {.family = mistral, .kv_heads = 1}},
        {"mistral-nemo", {.family = mistral, .kv_heads = 1, .head_dim = 22}},
        {"qwen2", {.family = qwen2, .kv_heads = 1, .norm_epsilon_e9 = 1000}},
        {"qwen3", {.family = qwen3, .tied = true, .kv_heads = 1, .head_dim = 24, .norm_epsilon_e9 = 1000}},
    };
    auto const& kind = kinds.at(name);
    run_config config;
    config.family = kind.family;
    config.model = {.vocabulary = 256, .context = 24, .width = 48, .heads = 3, .blocks = 3, .tied = kind.tied, .norm_epsilon_e9 = kind.norm_epsilon_e9};
    if (kind.family != gpt2) {
        config.llama = {.kv_heads = kind.kv_heads, .head_dim = kind.head_dim, .mlp_width = 80, .rope_base = 1000, .scaling = kind.scaling};
    }
    config.train.microbatch.tokens = config.model.context;
    return config;
}

template <class Number>
void write_numbers(fs::path const& path, std::vector<Number> const& numbers)
{
    std::ofstream{path, std::ios::binary}.write(reinterpret_cast<char const*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
}

std::vector<std::int32_t> read_tokens(fs::path const& path)
{
    std::vector<std::int32_t> tokens(fs::file_size(path) / sizeof(std::int32_t));
    std::ifstream{path, std::ios::binary}.read(reinterpret_cast<char*>(tokens.data()), static_cast<std::streamsize>(tokens.size() * sizeof(std::int32_t)));
    return tokens;
}

/// Of sequences of the model's whole context, [tokens, vocabulary].
std::vector<float> logits_of(run_config const& config, resident_state& state, host_backend& backend, std::vector<std::int32_t> const& tokens)
{
    auto const model = whole_model_of(config);
    microbatch_shape const batch{.sequences = static_cast<int>(std::ssize(tokens)) / config.model.context, .tokens = config.model.context};
    host_stage whole_model{std::span{model.layers}, layer_id{0}, batch, 1, state, backend};
    activation a{whole_model.layout()};
    a.tokens = tokens;
    a.targets = tokens;
    loss_sum loss;
    whole_model.forward(a, {.seed = 1, .step = step_id{0}, .microbatch = microbatch_id{0}, .training = false}, loss);
    std::vector<float> logits;
    for (std::int64_t row = 0; row < rows(batch); ++row) {
        auto const those = whole_model.logits(a, row);
        logits.insert(logits.end(), those.begin(), those.end());
    }
    return logits;
}

int make(std::string const& kind, fs::path const& folder)
{
    fs::remove_all(folder);
    fs::create_directories(folder);
    auto const config = config_of_kind(kind);
    auto const info = state_of(whole_model_of(config));
    host_backend backend{1};
    resident_state state{info, backend};
    std::mt19937 draw{11};
    std::normal_distribution<float> normal{0, 0.1F};
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        if (info.tensors[at(t)].is_parameter) {
            for (auto& value : state.add(t).parameter.floats()) {
                value = normal(draw) + static_cast<float>(info.tensors[at(t)].initial.mean);
            }
        }
    }
    std::vector<std::vector<rank_id>> const holders(info.tensors.size(), {rank_id{0}});
    checkpoint_writer writer{folder};
    writer.begin(take_part(state, deal_writing(info, holders), rank_id{0}, step_id{1}, generation_id{1}));
    writer.wait();
    writer.publish({step_id{1}, generation_id{1}, {rank_id{0}}, tensors_for_manifest(state), {}, to_toml(config), {}, 1});
    if (writer.wait() != writer_state::published) {
        std::cerr << writer.message() << '\n';
        return 1;
    }
    export_huggingface(checkpoint{folder / "step-1"}, folder / "exported");
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(2 * config.model.context));
    for (auto& token : tokens) {
        token = static_cast<std::int32_t>(draw() % static_cast<unsigned>(config.model.vocabulary));
    }
    write_numbers(folder / "tokens.i32", tokens);
    write_numbers(folder / "logits.f32", logits_of(config, state, backend, tokens));
    return 0;
}

int write_logits(fs::path const& from, fs::path const& folder)
{
    checkpoint const weights{from};
    auto const config = read_config(weights.manifest().config, "manifest", {}, find_schedule_or_name).config;
    auto const info = state_of(whole_model_of(config));
    host_backend backend{1};
    resident_state state{info, backend};
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        if (info.tensors[at(t)].is_parameter) {
            auto const values = weights.read(info.tensors[at(t)].name, tensor_role::parameter);
            std::copy(values.begin(), values.end(), state.add(t).parameter.floats().begin());
        }
    }
    write_numbers(folder / "logits.f32", logits_of(config, state, backend, read_tokens(folder / "tokens.i32")));
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    std::string const mode = argc == 4 ? argv[1] : "";
    if (mode != "make" && mode != "logits") {
        std::cerr << "exported_model make <kind> <folder>\nexported_model logits <checkpoint> <folder>\n";
        return 2;
    }
    try {
        return mode == "make" ? make(argv[2], argv[3]) : write_logits(argv[2], argv[3]);
    } catch (std::exception const& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
