// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpointing.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "rheo/partition/cuts.hpp"
#include "runtime/toml.hpp"

namespace rheo::inline v0 {

checkpointing::checkpointing(job const& about, rank_id me, std::optional<step_id> from)
    : job_{&about}, me_{me}, writer_{about.config.run.folder}, published_{from}, begun_at_{about.clock.now()}
{
}

bool checkpointing::wants_one() const
{
    auto const minutes = job_->config.checkpoint.every_minutes;
    return minutes > 0 && job_->clock.now().count - begun_at_.count > 60 * minutes;
}

void checkpointing::committed(step_id step, bool wanted, generation_id generation, std::span<pipeline_instance const> pipelines,
                              resident_state const& state)
{
    auto const every = job_->config.checkpoint.every_steps;
    bool const due = wanted || (every > 0 && step.value % every == 0);
    if (!due || step.value >= job_->config.train.steps) {
        return;  // the last state is saved when the job closes
    }
    if (phase_ != phase::idle) {
        news_.push_back(fmt::format("no checkpoint of step {}: that of step {} is still being written", step.value, step_.value));
        return;
    }
    begin(step, generation, pipelines, state);
}

void checkpointing::begin(step_id step, generation_id generation, std::span<pipeline_instance const> pipelines, resident_state const& state)
{
    std::vector<std::vector<rank_id>> holders(state.info().tensors.size());
    for (std::size_t t = 0; t < holders.size(); ++t) {
        auto const& tensor = state.info().tensors[t];
        for (auto const& pipeline : pipelines) {
            for (int s = 0; s < stage_count(pipeline.cuts); ++s) {
                auto const span = layers_of(pipeline.cuts, stage_id{s});
                if (tensor.is_parameter && std::any_of(tensor.layers.begin(), tensor.layers.end(), [&](layer_id l) { return contains(span, l); })) {
                    holders[t].push_back(pipeline.stages[static_cast<std::size_t>(s)].front());
                }
            }
        }
    }
    writers_ = deal_writing(state.info(), holders);
    tensors_ = tensors_for_manifest(state.info(), state.scales);
    step_ = step;
    generation_ = generation;
    phase_ = phase::writing;
    begun_at_ = job_->clock.now();
    if (std::find(writers_.begin(), writers_.end(), me_) != writers_.end()) {
        writer_.begin(take_part(state, writers_, me_, step, generation));
    }
}

std::uint32_t checkpointing::consents() const
{
    auto const state = writer_.state();
    if (phase_ == phase::publishing) {
        return has_not_failed | (publishes() && state == writer_state::publishing ? 0 : part_is_ready);
    }
    bool const writes = std::find(writers_.begin(), writers_.end(), me_) != writers_.end();
    if (phase_ == phase::idle || !writes) {
        return has_not_failed | part_is_ready;
    }
    return (state == writer_state::failed ? 0 : has_not_failed) | (state == writer_state::ready ? part_is_ready : 0);
}

std::vector<rank_id> checkpointing::parts() const
{
    std::vector<rank_id> ranks;
    for (auto const writer : writers_) {
        if (writer.value >= 0 && std::find(ranks.begin(), ranks.end(), writer) == ranks.end()) {
            ranks.push_back(writer);
        }
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

void checkpointing::publish()
{
    writer_.publish({.step = step_, .generation = generation_, .parts = parts(), .tensors = tensors_, .fingerprint = job_->fingerprint,
                     .config = to_toml(job_->config), .data_digest = to_string(job_->data->digest()),
                     .keep_last = job_->config.checkpoint.keep_last});
}

void checkpointing::agreed(std::uint32_t consents)
{
    if (phase_ == phase::idle) {
        return;
    }
    if ((consents & has_not_failed) == 0) {
        if (writer_.state() == writer_state::failed) {
            news_.push_back(fmt::format("no checkpoint of step {}: {}", step_.value, writer_.sentence()));
        }
        writer_.abandon();
        phase_ = phase::idle;
        return;
    }
    if ((consents & part_is_ready) == 0) {
        return;
    }
    if (phase_ == phase::publishing) {
        phase_ = phase::idle;
        return;
    }
    phase_ = phase::publishing;
    published_ = step_;
    if (publishes()) {
        publish();
        announced_ = false;
    } else if (writer_.state() == writer_state::ready) {
        writer_.hand_over();
    }
}

void checkpointing::generation_ended()
{
    if (phase_ == phase::writing) {
        phase_ = phase::idle;
        writer_.abandon();
    }
}

bool checkpointing::write_now(step_id step, generation_id generation, std::span<pipeline_instance const> pipelines, resident_state const& state)
{
    if (has(step) && phase_ != phase::writing) {
        return writer_.wait() != writer_state::failed;
    }
    if (phase_ == phase::writing && step_ != step) {
        writer_.abandon();
        phase_ = phase::idle;
    }
    if (phase_ != phase::writing) {
        writer_.wait();
        begin(step, generation, pipelines, state);
    }
    writer_.wait();
    return (consents() & part_is_ready) != 0;
}

void checkpointing::publish_now(bool all_ready)
{
    if (phase_ == phase::writing) {
        agreed(all_ready ? part_is_ready | has_not_failed : 0);
    }
    writer_.wait();
}

std::vector<std::string> checkpointing::news()
{
    if (!announced_ && writer_.state() == writer_state::published) {
        announced_ = true;
        auto const written = writer_.written();
        news_.push_back(fmt::format("checkpoint of step {}: {:.1f} MiB from this rank in {:.0f} ms", step_.value, in_mebibytes(written.written),
                                    in_milliseconds(written.duration)));
    } else if (!announced_ && writer_.state() == writer_state::failed) {
        announced_ = true;
        news_.push_back(fmt::format("no checkpoint of step {}: {}", step_.value, writer_.sentence()));
    }
    return std::exchange(news_, {});
}

}  // namespace rheo::inline v0
