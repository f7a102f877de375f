// SPDX-License-Identifier: Apache-2.0
#include "executor/train/checkpointing.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "executor/config/toml.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/plan/keepers.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::int64_t state_bytes_per_element = 12;  // a parameter and its two moments

}  // namespace

tensor_holders keepers_of(collection const& state, std::span<pipeline_instance const> pipelines, int grid, optimizer_shards shards)
{
    auto holders = keepers_by_tensor(array_view{pipelines}, state, grid, shards);
    for (std::size_t t = 0; t < holders.size(); ++t) {
        if (!state.tensors[t].is_parameter) {
            holders[t].clear();
        }
    }
    return holders;
}

tensor_holders keepers_of(collection const& state, std::span<rank_holdings const> holdings)
{
    tensor_holders holders(state.tensors.size());
    for (auto const& rank : holdings) {
        for (std::size_t t = 0; t < holders.size(); ++t) {
            auto const& tensor = state.tensors[t];
            auto const holds = [&](layer_id l) { return std::binary_search(rank.layers.begin(), rank.layers.end(), l); };
            if (tensor.is_parameter && std::any_of(tensor.layers.begin(), tensor.layers.end(), holds)) {
                holders[t].push_back(rank.rank);
            }
        }
    }
    if (!state.tensors.empty() && are_of_keepers(state.tensors.back().committed)) {  // who keeps them holds the parameter, too
        holders.erase(holders.begin(), holders.begin() + std::ssize(holders) / 2);
    }
    return holders;
}

checkpointing::checkpointing(job const& about, dataset const& data, fault_injector const& inject, launch_clock clock, rank_id self, std::optional<step_id> from)
    : job_{&about},
      data_{&data},
      inject_{&inject},
      clock_{clock},
      self_{self},
      writer_{about.config.run.folder, [this](checkpoint_point point) { inject_->at(point, step_id{being_written_}); }},
      published_{from},
      begun_at_{clock.now()}
{
}

bool checkpointing::wants_one() const
{
    auto const interval = job_->config.checkpoint.interval;
    return interval > seconds{} && clock_.now() - begun_at_ > interval;
}

void checkpointing::committed(step_id step, bool wanted, generation_id generation, std::span<pipeline_instance const> pipelines, resident_state const& state,
                              optimizer_shards shards)
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
    begin(step, generation, keepers_of(state.info(), pipelines, job_->grid(), shards), state);
}

void checkpointing::begin(step_id step, generation_id generation, tensor_holders const& holders, resident_state const& state)
{
    writers_ = deal_writing(state.info(), holders);
    tensors_ = step.value > 0 ? tensors_for_manifest(state) : tensors_for_manifest(state.info());  // the first step chooses its own scales
    step_ = step;
    being_written_ = step.value;
    generation_ = generation;
    phase_ = phase::writing;
    begun_at_ = clock_.now();
    size_ = {};
    for (auto const& tensor : tensors_) {
        size_.count += tensor.is_parameter ? state_bytes_per_element * elements(tensor.shape) : 0;
    }
    if (std::find(writers_.begin(), writers_.end(), self_) != writers_.end()) {
        writer_.begin(take_part(state, writers_, self_, step, generation));
    }
}

std::uint32_t checkpointing::consents() const
{
    auto const state = writer_.state();
    if (phase_ == phase::publishing) {
        bool const mine = publishes();
        return (mine && state == writer_state::failed ? 0 : has_not_failed) | (mine && state == writer_state::publishing ? 0 : part_is_ready);
    }
    bool const writes = std::find(writers_.begin(), writers_.end(), self_) != writers_.end();
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
    writer_.publish({.step = step_,
                     .generation = generation_,
                     .parts = parts(),
                     .tensors = tensors_,
                     .fingerprint = job_->fingerprint,
                     .config = to_toml(job_->config),
                     .data_digest = to_string(data_->digest()),
                     .keep_last = job_->config.checkpoint.keep_last});
}

std::string checkpointing::no_checkpoint() const
{
    bool const mine = writer_.state() == writer_state::failed;
    return fmt::format("no checkpoint of step {}: {}", step_.value, mine ? writer_.message() : "another rank could not write");
}

void checkpointing::agreed(std::uint32_t consents)
{
    if (phase_ == phase::idle) {
        return;
    }
    if ((consents & has_not_failed) == 0) {
        (writer_.state() == writer_state::failed ? own_news_ : news_).push_back(no_checkpoint());
        writer_.abandon();
        phase_ = phase::idle;
        return;
    }
    if ((consents & part_is_ready) == 0) {
        return;
    }
    if (phase_ == phase::publishing) {
        there();
        return;
    }
    phase_ = phase::publishing;
    if (publishes()) {
        publish();
    } else if (writer_.state() == writer_state::ready) {
        writer_.hand_over();
    }
}

/// All ranks know that the checkpoint has its name.
void checkpointing::there()
{
    phase_ = phase::idle;
    published_ = step_;
    written_ = checkpoint_record{.step = step_, .size = size_, .duration = {clock_.now().count - begun_at_.count}};
}

void checkpointing::generation_ended(std::span<rank_id const> members)
{
    bool const publisher_lost = phase_ == phase::publishing && std::find(members.begin(), members.end(), parts().front()) == members.end();
    if (publisher_lost) {
        news_.push_back(fmt::format("the checkpoint of step {} may not be there: rank {} was lost while it published it", step_.value, parts().front().value));
    }
    if (phase_ == phase::writing || publisher_lost) {
        phase_ = phase::idle;
        writer_.abandon();
    }
}

void checkpointing::depart(std::span<rank_id const> members)
{
    generation_ended(members);
    writer_.wait();
}

bool checkpointing::save_now(step_id step, generation_id generation, tensor_holders const& holders, resident_state const& state, reduction const& largest)
{
    // A loss in an earlier call may have left the ranks at different places of it: all look for the newest one that any of them knows of.
    auto const mine = is_offered() ? std::optional{step_} : published_;
    if (auto const newest = largest(mine ? mine->value : -1); newest >= 0) {
        look_for(step_id{newest}, largest);
    }
    bool there = false;
    for (int tries = 0; tries < 2 && !there; ++tries) {
        bool const all_ready = largest(offer(step, generation, holders, state) ? 0 : 1) == 0;
        if (phase_ == phase::offered) {
            agreed(all_ready ? part_is_ready | has_not_failed : 0);
        }
        there = look_for(step, largest);
    }
    return there;
}

/// Writes this rank's part. @returns whether it is on disk
bool checkpointing::offer(step_id step, generation_id generation, tensor_holders const& holders, resident_state const& state)
{
    if (published_ == step && phase_ != phase::writing) {
        return true;
    }
    if (phase_ == phase::writing && step_ != step) {
        writer_.abandon();
        phase_ = phase::idle;
    }
    if (phase_ != phase::writing) {
        begin(step, generation, holders, state);
    }
    writer_.wait();
    phase_ = phase::offered;
    return (consents() & part_is_ready) != 0;
}

/// When the publisher, if there is one, is done, every rank looks. @returns whether all see it
bool checkpointing::look_for(step_id step, reduction const& largest)
{
    if (is_offered()) {
        writer_.wait();
    }
    largest(0);
    bool const there = largest(std::filesystem::exists(checkpoint_folder(job_->config.run.folder, step)) ? 0 : 1) == 0;
    settled(step, there);
    return there;
}

void checkpointing::settled(step_id step, bool is_there)
{
    if (is_offered()) {
        auto const part = writer_.state();
        if (is_there && part == writer_state::ready) {
            writer_.hand_over();
        } else if (!is_there && part == writer_state::failed) {
            own_news_.push_back(no_checkpoint());
        }
        if (is_there) {
            there();
        } else {
            writer_.abandon();
            phase_ = phase::idle;
        }
    }
    published_ = is_there ? std::optional{step} : std::nullopt;
}

void checkpointing::report(records& record)
{
    if (written_) {
        record.checkpoint(*std::exchange(written_, {}));
    }
    for (auto const& message : std::exchange(news_, {})) {
        record.note(message);
    }
    for (auto const& message : std::exchange(own_news_, {})) {
        record.alone(message);
    }
}

}  // namespace rheo::inline v0
