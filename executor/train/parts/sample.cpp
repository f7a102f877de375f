// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/sample.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <vector>

#include "executor/device/staging_buffer.hpp"
#include "executor/stage/stage.hpp"
#include "rheo/tensor/random.hpp"

namespace rheo::inline v0 {

namespace {

/// The token that follows a row of the logits: at temperature 0.7, drawn by the counter-based generator, the same text for the same state.
std::int64_t drawn_token(stage const& layers, activation const& kept, std::int64_t row, int number, std::uint64_t seed)
{
    auto const logits = layers.logits(kept, row);
    auto const top = *std::max_element(logits.begin(), logits.end());
    std::vector<double> weights;
    double total = 0;
    for (auto const logit : logits) {
        weights.push_back(std::exp((logit - top) / 0.7));
        total += weights.back();
    }
    auto const stream = stream_of({.seed = seed, .step = step_id{-2}});
    double left = total * random_word(stream, static_cast<std::uint64_t>(number)) * 0x1p-32;
    std::int64_t next = 0;
    while (next + 1 < std::ssize(logits) && left >= weights[static_cast<std::size_t>(next)]) {
        left -= weights[static_cast<std::size_t>(next++)];
    }
    return next;
}

}  // namespace

std::string sampled_text(job const& about, pipeline_instance const& pipeline, int tokens, resident_state& resident, mpi::messenger& messages)
{
    auto const self = messages.members().self;
    auto& backend = resident.backend();
    microbatch_shape const shape{1, about.shape().tokens};
    auto const stages = stage_count(pipeline.cuts);
    struct at_work {
        std::unique_ptr<stage> layers;
        std::unique_ptr<activation> kept;
    };
    std::vector<at_work> mine(static_cast<std::size_t>(stages));
    for (int s = 0; s < stages; ++s) {
        if (auto const span = layers_of(pipeline, stage_id{s}); rank_of(pipeline, stage_id{s}) == self) {
            auto& here = mine[static_cast<std::size_t>(s)];
            here.layers =
                backend.make_stage(std::span{about.model.layers}.subspan(at(span.begin), static_cast<std::size_t>(size(span))), span.begin, shape, 1, resident);
            here.kept = std::make_unique<activation>(here.layers->layout());
        }
    }
    auto const first = rank_of(pipeline, stage_id{0});
    auto const last = rank_of(pipeline, stage_id{stages - 1});
    array<std::byte> arrived{backend.messages()};
    std::string text{"#include"};  // whole on the first stage, which reads it, and on the last, which writes it
    for (int i = 0; i < tokens; ++i) {
        auto const window = std::min<std::size_t>(text.size(), static_cast<std::size_t>(shape.tokens));
        std::int64_t next = 0;
        for (int s = 0; s < stages; ++s) {
            auto& [layers, kept] = mine[static_cast<std::size_t>(s)];
            if (layers == nullptr) {
                continue;
            }
            auto const beside = [&](int other) { return rank_of(pipeline, stage_id{other}); };
            if (s == 0) {
                std::fill(kept->tokens.begin(), kept->tokens.end(), 0);
                for (std::size_t k = 0; k < window; ++k) {
                    kept->tokens[k] = static_cast<unsigned char>(text[text.size() - window + k]);
                }
            } else if (beside(s - 1) != self) {
                arrived.resize(layers->input_bytes());
                messages.wait(messages.receive(beside(s - 1), mpi::channel::activation, s, std::span<std::byte>{arrived}));
                backend.copy(layers->input(*kept), arrived.data(), arrived.size());
            } else {
                auto const& before = mine[static_cast<std::size_t>(s - 1)];
                backend.copy(layers->input(*kept), before.layers->output(*before.kept), layers->input_bytes());
            }
            std::fill(kept->targets.begin(), kept->targets.end(), 0);
            loss_sum unused;
            layers->forward(*kept, {.seed = 0, .step = {}, .microbatch = {}, .training = false}, unused);
            backend.wait();
            if (s + 1 == stages) {
                next = drawn_token(*layers, *kept, static_cast<std::int64_t>(window) - 1, i, about.config.train.seed);
            } else if (beside(s + 1) != self) {
                std::deque<array<std::byte>> copies;
                auto const sent = on_host(backend, copies, static_cast<std::byte const*>(layers->output(*kept)), layers->output_bytes());
                messages.wait(messages.send(beside(s + 1), mpi::channel::activation, s + 1, sent));
            }
        }
        if (self == last && self != first) {
            messages.wait(messages.send(first, mpi::channel::control, 0, std::span<std::int64_t const>{&next, 1}));
        } else if (self == first && self != last) {
            messages.wait(messages.receive(last, mpi::channel::control, 0, std::span{&next, 1}));
        }
        text += static_cast<char>(next);
    }
    return self == last ? text : std::string{};
}

}  // namespace rheo::inline v0
