// SPDX-License-Identifier: Apache-2.0
// exported_gpt tied|untied <folder>: a GPT with weights of which none is a zero or a one, as a checkpoint, exported; beside it some
// tokens and the logits that the stage computes for them, both as plain little-endian numbers, for a reference to compare with.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/checkpoint/huggingface.hpp"
#include "executor/config/toml.hpp"
#include "executor/host/stage.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"

namespace {

using namespace rheo;

template <class Number>
void write_numbers(std::filesystem::path const& path, std::vector<Number> const& numbers)
{
    std::ofstream{path, std::ios::binary}.write(reinterpret_cast<char const*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
}

int make(gpt_shape shape, std::filesystem::path const& folder)
{
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    auto const model = gpt_model(shape);
    auto const info = state_of(model);
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
    run_config config;
    config.model = shape;
    config.train.microbatch.tokens = shape.context;
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

    microbatch_shape const batch{.sequences = 2, .tokens = shape.context};
    host_stage whole_model{std::span{model.layers}, layer_id{0}, batch, 1, state, backend};
    activation a{whole_model.layout()};
    a.tokens.resize(static_cast<std::size_t>(rows(batch)));
    for (auto& token : a.tokens) {
        token = static_cast<std::int32_t>(draw() % static_cast<unsigned>(shape.vocabulary));
    }
    a.targets = a.tokens;
    loss_sum loss;
    whole_model.forward(a, {.seed = 1, .step = step_id{0}, .microbatch = microbatch_id{0}, .training = false}, loss);
    std::vector<float> logits;
    for (std::int64_t row = 0; row < rows(batch); ++row) {
        auto const those = whole_model.logits(a, row);
        logits.insert(logits.end(), those.begin(), those.end());
    }
    write_numbers(folder / "tokens.i32", a.tokens);
    write_numbers(folder / "logits.f32", logits);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc != 3) {
        std::cerr << "exported_gpt tied|untied <folder>\n";
        return 2;
    }
    try {
        return make({.vocabulary = 256, .context = 24, .width = 48, .heads = 3, .blocks = 3, .tied = std::string{argv[1]} == "tied"}, argv[2]);
    } catch (std::exception const& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
