// SPDX-License-Identifier: Apache-2.0
// Whole layers of models, forward and backward, and what a model of them would be without its update.
#include <string>

#include "families.hpp"
#include "layer_on_device.hpp"
#include "results.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/llama.hpp"

namespace bench {

namespace {

struct model {
    std::string name;
    layer_description embedding, block, classifier;
    int blocks;
    sequences of;
};

model gpt(std::string name, gpt_shape const& s, sequences of) { return {std::move(name), embedding_layer(s), block_layer(s), classifier_layer(s), s.blocks, of}; }
model llama(std::string name, llama_shape const& s, sequences of) { return {std::move(name), llama_embedding_layer(s), llama_block_layer(s), llama_classifier_layer(s), s.blocks, of}; }

std::vector<model> models_for(options const& asked)
{
    if (asked.tiny()) {
        return {gpt("GPT-2 tiny", {.vocabulary = 64, .context = 16, .width = 32, .heads = 2, .blocks = 2, .dropout_per_mille = 100}, {2, 8}),
                llama("Llama tiny", {.vocabulary = 64, .context = 16, .width = 32, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 48}, {2, 8})};
    }
    return {gpt("GPT-2 124M", {.vocabulary = 50304, .context = 1024, .width = 768, .heads = 12, .blocks = 12}, {16, 1024}),
            gpt("GPT-2 1558M", {.vocabulary = 50304, .context = 1024, .width = 1600, .heads = 25, .blocks = 48}, {16, 1024}),
            llama("Llama 0.5B", {.vocabulary = 32000, .context = 2048, .width = 1280, .heads = 20, .kv_heads = 4, .blocks = 24, .mlp_width = 3456}, {8, 2048}),
            llama("Llama 1.5B", {.vocabulary = 32000, .context = 2048, .width = 2048, .heads = 16, .kv_heads = 8, .blocks = 28, .mlp_width = 5632}, {8, 2048}),
            llama("Llama 7B", {.vocabulary = 32000, .context = 4096, .width = 4096, .heads = 32, .kv_heads = 32, .blocks = 32, .mlp_width = 11008}, {4, 4096})};
}

/// Forward and backward of a layer, one after the other; returns the two together.
measurement both(results& to, layer_description const& description, model const& m)
{
    layer_on_device<bfloat16> layer{description, m.of};
    auto const shape = std::to_string(m.of.batch) + " x " + std::to_string(m.of.length);
    microbatch_shape const items{.sequences = static_cast<int>(m.of.batch), .tokens = static_cast<int>(m.of.length)};
    double forward_count = 0;
    double backward_count = 0;
    for (auto const& o : layer.description().ops) {
        forward_count += static_cast<double>(forward_flops(o, items).count);
        backward_count += static_cast<double>(backward_flops(o, items).count);
    }
    auto const name = [&](char const* pass) { return m.name + " " + std::string{description.name} + " " + pass; };
    auto const forward = to.add({.kernel = name("forward"), .type = "bf16", .shape = shape, .flops = forward_count, .tokens = m.of.rows()}, [&] { layer.forward(); });
    auto const backward = to.add({.kernel = name("backward"), .type = "bf16", .shape = shape, .flops = backward_count, .tokens = m.of.rows()}, [&] { layer.backward(); });
    return {.kernel = {}, .type = "bf16", .shape = shape, .flops = forward_count + backward_count, .tokens = m.of.rows(), .seconds = forward.seconds + backward.seconds, .joules = forward.joules + backward.joules};
}

}  // namespace

void models(results& to)
{
    for (auto const& m : models_for(to.asked())) {
        auto whole = both(to, m.block, m);
        whole.seconds *= m.blocks;
        whole.joules *= m.blocks;
        whole.flops *= m.blocks;
        for (auto const& layer : {m.embedding, m.classifier}) {
            auto const one = both(to, layer, m);
            whole.seconds += one.seconds;
            whole.joules += one.joules;
            whole.flops += one.flops;
        }
        whole.kernel = m.name + " without its update";
        to.conclude(whole);
    }
}

}  // namespace bench
