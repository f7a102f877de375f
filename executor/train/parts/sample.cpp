// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/sample.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "executor/device/staging_buffer.hpp"
#include "executor/inference/sampler.hpp"
#include "executor/stage/stage.hpp"
#include "executor/train/parts/member_exchange.hpp"
#include "executor/train/parts/stage_neighbours.hpp"
#include "executor/transport/mpi_transport.hpp"

namespace rheo::inline v0 {

namespace {

/// How each token of the sample is drawn: the same text for the same state.
constexpr sampling drawing{.temperature = 0.7};

/// Gathers the logits of a row on the first rank of the group; the others return their own. Each rank sends how many it has, then the logits.
std::vector<float> gathered_logits(std::vector<float> mine, std::vector<rank_id> const& group, mpi::messenger& messages)
{
    auto const first = group.front();
    auto count = std::ssize(mine);
    if (messages.members().self != first) {
        messages.wait(messages.send(first, mpi::channel::control, 0, std::span<std::int64_t const>{&count, 1}));
        messages.wait(messages.send(first, mpi::channel::control, 0, std::span<float const>{mine}));
        return mine;
    }
    for (std::size_t m = 1; m < group.size(); ++m) {
        std::int64_t theirs = 0;
        messages.wait(messages.receive(group[m], mpi::channel::control, 0, std::span{&theirs, 1}));
        auto const before = mine.size();
        mine.resize(before + static_cast<std::size_t>(theirs));
        messages.wait(messages.receive(group[m], mpi::channel::control, 0, std::span{mine}.subspan(before)));
    }
    return mine;
}

}  // namespace

std::string sampled_text(job const& about, pipeline_instance const& pipeline, int tokens, resident_state& resident, mpi::messenger& messages)
{
    auto const self = messages.members().self;
    auto& backend = resident.backend();
    microbatch_shape const shape{1, about.shape().tokens};
    auto const stages = stage_count(pipeline.cuts);
    auto const ranks_at = [&](int s) -> std::vector<rank_id> const& { return pipeline.stages[static_cast<std::size_t>(s)]; };
    auto const member_of = [&](int s) { return static_cast<int>(std::find(ranks_at(s).begin(), ranks_at(s).end(), self) - ranks_at(s).begin()); };
    auto const is_mine = [&](int s) { return member_of(s) < std::ssize(ranks_at(s)); };
    struct at_work {
        std::unique_ptr<stage> layers;
        std::unique_ptr<activation> kept;
    };
    std::vector<at_work> mine(static_cast<std::size_t>(stages));
    for (int s = 0; s < stages; ++s) {
        if (auto const span = layers_of(pipeline, stage_id{s}); is_mine(s)) {
            auto& here = mine[static_cast<std::size_t>(s)];
            here.layers = backend.make_stage(std::span{about.model.layers}.subspan(at(span.begin), static_cast<std::size_t>(size(span))), span.begin, shape, 1,
                                             resident, {}, group_of(pipeline, stage_id{s}, about.grid(), member_of(s)));
            here.kept = std::make_unique<activation>(here.layers->layout());
        }
    }
    auto const& writers = ranks_at(stages - 1);
    std::vector<rank_id> listeners = ranks_at(0);  // the first and the last stage keep the text; the first of the writers draws each token and sends it
    listeners.insert(listeners.end(), writers.begin(), writers.end());
    std::sort(listeners.begin(), listeners.end());
    listeners.erase(std::unique(listeners.begin(), listeners.end()), listeners.end());
    std::erase(listeners, writers.front());
    array<std::byte> arrived{backend.messages()};
    mpi_transport by_mpi{messages, backend.has_one_memory()};
    std::string text{"#include"};  // whole on the first stage, which reads it, and on the last, which writes it
    for (int i = 0; i < tokens; ++i) {
        auto const window = std::min<std::size_t>(text.size(), static_cast<std::size_t>(shape.tokens));
        std::int64_t next = 0;
        for (int s = 0; s < stages; ++s) {
            auto& [layers, kept] = mine[static_cast<std::size_t>(s)];
            if (layers == nullptr) {
                continue;
            }
            auto const rows_beside = [&](int other) { return neighbours_in(pipeline, stage_id{other}, layers->own_rows(), layers->rows(), about.grid()); };
            if (s == 0) {
                std::fill(kept->tokens.begin(), kept->tokens.end(), 0);
                for (std::size_t k = 0; k < window; ++k) {
                    kept->tokens[k] = static_cast<unsigned char>(text[text.size() - window + k]);
                }
            } else if (!is_mine(s - 1)) {
                arrived.resize(layers->input_bytes());
                for (auto const& [rank, rows] : rows_beside(s - 1)) {
                    messages.wait(messages.receive(rank, mpi::channel::activation, s, rows_in(std::span<std::byte>{arrived}, rows, layers->rows())));
                }
                backend.copy(layers->input(*kept), arrived.data(), arrived.size());
            } else {
                auto const& before = mine[static_cast<std::size_t>(s - 1)];
                backend.copy(layers->input(*kept), before.layers->output(*before.kept), layers->input_bytes());
            }
            std::fill(kept->targets.begin(), kept->targets.end(), 0);
            loss_sum unused;
            member_exchange between_members{ranks_at(s), messages, by_mpi, by_mpi};
            layers->forward(*kept, {.seed = 0, .step = {}, .microbatch = {}, .training = false, .exchange = &between_members}, unused);
            backend.wait();
            if (s + 1 == stages) {
                auto const logits = gathered_logits(layers->logits(*kept, static_cast<std::int64_t>(window) - 1), writers, messages);
                next = self == writers.front() ? sampled_token(logits, drawing, sampling_word(about.config.train.seed, 0, i)) : 0;
            } else if (!is_mine(s + 1)) {
                std::deque<array<std::byte>> copies;
                auto const sent = on_host(backend, copies, static_cast<std::byte const*>(layers->output(*kept)), layers->output_bytes());
                for (auto const& [rank, rows] : rows_beside(s + 1)) {
                    messages.wait(messages.send(rank, mpi::channel::activation, s + 1, rows_in(sent, rows, layers->rows())));
                }
            }
        }
        if (self == writers.front()) {
            for (auto const rank : listeners) {
                messages.wait(messages.send(rank, mpi::channel::control, 0, std::span<std::int64_t const>{&next, 1}));
            }
        } else if (std::binary_search(listeners.begin(), listeners.end(), self)) {
            messages.wait(messages.receive(writers.front(), mpi::channel::control, 0, std::span{&next, 1}));
        }
        text += static_cast<char>(next);
    }
    return self == writers.front() ? text : std::string{};
}

}  // namespace rheo::inline v0
