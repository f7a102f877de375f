// SPDX-License-Identifier: Apache-2.0
// Whole layers of models as ranks run them, forward and backward, and what a model of them would be without its update.
#include <string>
#include <utility>

#include "executor/cuda/backend.hpp"
#include "families.hpp"
#include "kernels/attention/attention_cudnn.hpp"
#include "layer_at_work.hpp"
#include "results.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/llama.hpp"

namespace bench {

namespace {

using namespace rheo;

/// With one block in place of all, which are alike.
struct model {
    std::string name;
    model_description layers;
    int blocks;
    microbatch_shape shape;
};

model gpt(std::string name, gpt_shape s, microbatch_shape shape)
{
    auto const blocks = std::exchange(s.blocks, 1);
    return {std::move(name), fused(gpt_model(s)), blocks, shape};
}
model llama(std::string name, llama_shape s, microbatch_shape shape)
{
    auto const blocks = std::exchange(s.blocks, 1);
    return {std::move(name), fused(llama_model(s)), blocks, shape};
}

std::vector<model> models_for(options const& asked)
{
    if (asked.tiny()) {
        return {gpt("GPT-2 tiny", {.vocabulary = 64, .context = 16, .width = 32, .heads = 2, .blocks = 2}, {2, 8}),
                llama("Llama tiny", {.vocabulary = 64, .context = 16, .width = 32, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 48}, {2, 8})};
    }
    return {gpt("GPT-2 124M", {.vocabulary = 50304, .context = 1024, .width = 768, .heads = 12, .blocks = 12}, {16, 1024}),
            gpt("GPT-2 1558M", {.vocabulary = 50304, .context = 1024, .width = 1600, .heads = 25, .blocks = 48}, {16, 1024}),
            llama("Llama 0.5B", {.vocabulary = 32000, .context = 2048, .width = 1280, .heads = 20, .kv_heads = 4, .blocks = 24, .mlp_width = 3456}, {8, 2048}),
            llama("Llama 1.5B", {.vocabulary = 32000, .context = 2048, .width = 2048, .heads = 16, .kv_heads = 8, .blocks = 28, .mlp_width = 5632}, {8, 2048}),
            llama("Llama 7B", {.vocabulary = 32000, .context = 4096, .width = 4096, .heads = 32, .kv_heads = 32, .blocks = 32, .mlp_width = 11008}, {4, 4096})};
}

/// Forward and backward of a layer, one after the other; returns the two together.
measurement both(results& to, compute_backend& backend, model const& m, std::size_t which)
{
    auto const& layer = m.layers.layers[which];
    layer_at_work at_work{backend, m.layers, layer_id{static_cast<int>(which)}, m.shape};
    double forward_count = 0;
    double backward_count = 0;
    for (auto const& o : layer.ops) {
        forward_count += static_cast<double>(forward_flops(o, m.shape).count);
        backward_count += static_cast<double>(backward_flops(o, m.shape).count);
    }
    auto const row = [&](char const* pass, double flops) {
        return measurement{.kernel = m.name + " " + std::string{layer.name} + pass,
                           .type = "bf16",
                           .shape = std::to_string(m.shape.sequences) + " x " + std::to_string(m.shape.tokens),
                           .flops = flops,
                           .tokens = rows(m.shape)};
    };
    auto const wait = [&] { at_work.wait(); };
    auto const forward = to.add(row(" forward", forward_count), [&] { at_work.forward(); }, wait);
    auto const backward = to.add(row(" backward", backward_count), [&] { at_work.backward(); }, wait);
    auto together = row("", forward_count + backward_count);
    together.seconds = forward.seconds + backward.seconds;
    together.joules = forward.joules + backward.joules;
    return together;
}

void models_by(results& to, cuda::device_ways const& ways, char const* name)
{
    auto const backend = cuda::make_backend(bf16, 0, ways);
    for (auto m : models_for(to.asked())) {
        m.name += name;
        measurement whole{};
        for (std::size_t layer = 0; layer < m.layers.layers.size(); ++layer) {
            auto const one = both(to, *backend, m, layer);
            auto const times = layer == 1 ? m.blocks : 1;
            whole = {.kernel = m.name + " without its update",
                     .type = one.type,
                     .shape = one.shape,
                     .flops = whole.flops + times * one.flops,
                     .tokens = one.tokens,
                     .seconds = whole.seconds + times * one.seconds,
                     .joules = whole.joules + times * one.joules};
        }
        to.conclude(whole);
    }
}

}  // namespace

void models(results& to)
{
    using cuda::attention_by;
    models_by(to, {}, "");
    if (cuda::has(cuda::tensor_cores::of_warpgroups)) {
        models_by(to, {.attention = attention_by::warpgroups}, ", warpgroups");
    }
    if (cuda::has_cudnn()) {
        models_by(to, {.attention = attention_by::cudnn}, ", cuDNN");
        models_by(to, {.attention = attention_by::cudnn, .deterministic = false}, ", cuDNN in any order");
    }
}

}  // namespace bench
