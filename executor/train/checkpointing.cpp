// SPDX-License-Identifier: Apache-2.0
#include "executor/train/checkpointing.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/checkpoint_publish.hpp"
#include "executor/checkpoint/levels/local_folder.hpp"
#include "executor/checkpoint/part_files.hpp"
#include "executor/config/toml.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0 {

namespace {

std::filesystem::path local_folder_of(job const& about, rank_id self)
{
    auto const& pattern = about.config.checkpoint.local;
    return pattern.empty() ? std::filesystem::path{} : local_folder(pattern, self.value / about.config.plan.node_size, about.run);
}

}  // namespace

checkpointing::checkpointing(job const& about, dataset const& data, fault_injector const& inject, launch_clock clock, rank_id self, std::optional<step_id> from)
    : job_{&about},
      data_{&data},
      inject_{&inject},
      clock_{clock},
      self_{self},
      writer_{about.config.run.folder, [this](checkpoint_point point) { inject_->at(point, step_id{being_written_}); }},
      levels_{local_folder_of(about, self), about.config.plan.node_size, about.config.checkpoint.replicas, self,
              [this](checkpoint_point point) { inject_->at(point, step_id{being_written_}); }},
      published_{from},
      begun_at_{clock.now()}
{
}

bool checkpointing::wants_one() const
{
    auto const interval = job_->config.checkpoint.interval;
    return interval > seconds{} && clock_.now() - begun_at_ > interval;
}

void checkpointing::committed(step_id step, bool wanted, generation_id generation, std::span<rank_id const> members,
                              std::span<pipeline_instance const> pipelines, resident_state const& state, optimizer_shards shards)
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
    auto const holders = keepers_of(state.info(), pipelines, job_->grid(), shards);
    if (levels_.exist()) {
        begin_levels(step, generation, members, holders, state);
    } else {
        begin(step, generation, holders, state);
    }
}

/// Who writes what of which state.
void checkpointing::prepare(step_id step, generation_id generation, tensor_holders const& holders, resident_state const& state)
{
    writers_ = deal_writing(state.info(), holders);
    tensors_ = step.value > 0 ? tensors_for_manifest(state) : tensors_for_manifest(state.info());  // the first step chooses its own scales
    step_ = step;
    being_written_ = step.value;
    generation_ = generation;
    begun_at_ = clock_.now();
    size_ = bytes_of(tensors_);
}

void checkpointing::begin(step_id step, generation_id generation, tensor_holders const& holders, resident_state const& state)
{
    prepare(step, generation, holders, state);
    phase_ = phase::writing;
    if (writes()) {
        writer_.begin(own_part(step, generation, state));
    }
}

checkpoint_part checkpointing::own_part(step_id step, generation_id generation, resident_state const& state)
{
    auto part = take_part(state, writers_, self_, step, generation, snapshot_kind::beside);
    copies_ = part.copies;
    return part;
}

void checkpointing::before_change()
{
    if (copies_ != nullptr) {
        copies_->release();
        copies_.reset();
    }
}

void checkpointing::begin_levels(step_id step, generation_id generation, std::span<rank_id const> members, tensor_holders const& holders,
                                 resident_state const& state)
{
    prepare(step, generation, holders, state);
    phase_ = phase::local;
    is_published_ = ++begun_ % job_->config.checkpoint.publish_every == 0;
    auto about = format_state({{.version = RHEO_VERSION,
                                .step = step,
                                .generation = generation,
                                .tensors = tensors_,
                                .fingerprint = job_->fingerprint,
                                .config = to_toml(job_->config),
                                .data_digest = to_string(data_->digest()),
                                .files = {}},
                               {}});
    auto part = writes() ? std::optional{own_part(step, generation, state)} : std::nullopt;
    auto const own = levels_.begin(std::move(part), std::move(about), {step, generation, members}, parts());
    if (own != nullptr && is_published_) {
        auto const to = unfinished_folder(job_->config.run.folder, step, generation);
        writer_.begin({to, self_, step}, [own, to](part_progress const& on) { return copy_part(*own, to, on); });
    }
}

std::uint32_t checkpointing::consents() const
{
    auto const bits = [](bool ready, bool failed) { return (failed ? 0 : has_not_failed) | (ready ? part_is_ready : 0); };
    auto const state = writer_.state();
    switch (phase_) {
    case phase::idle: return bits(true, false);
    case phase::local: return bits(levels_.is_local(), !levels_.message().empty());
    case phase::spreading: {
        bool const goes_on = is_published_ && writes();
        return bits(levels_.is_copied() && (!goes_on || state == writer_state::ready),
                    !levels_.message().empty() || (goes_on && state == writer_state::failed));
    }
    case phase::ending: return bits(levels_.is_copied(), false);
    case phase::publishing: return bits(!publishes() || state != writer_state::publishing, publishes() && state == writer_state::failed);
    case phase::writing:
    case phase::offered: break;
    }
    return bits(!writes() || state == writer_state::ready, writes() && state == writer_state::failed);
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

/// Why this rank could not do its part; empty: it could.
std::string checkpointing::own_failure() const
{
    auto message = levels_.message();
    return message.empty() && writer_.state() == writer_state::failed ? writer_.message() : message;
}

std::string checkpointing::no_checkpoint() const
{
    auto const mine = own_failure();
    bool const is_safe = levels_.exist() && (phase_ == phase::spreading || phase_ == phase::publishing);
    auto const* const at_level = is_safe ? "the checkpoint of step {} is safe on node-local storage only: {}" : "no checkpoint of step {}: {}";
    return fmt::format(fmt::runtime(at_level), step_.value, mine.empty() ? "another rank could not write" : mine);
}

/// A checkpoint that is not published stays at the level that it has.
void checkpointing::give_up()
{
    writer_.abandon();
    levels_.give_up();
}

/// All ranks know that the checkpoint is safe there: older ones are not needed at this level.
void checkpointing::reached(safety_level level)
{
    bool const last = level == safety_level::replicated || levels_.copies() == 0;
    reached_.push_back({.step = step_,
                        .level = level,
                        .size = size_,
                        .duration = {clock_.now().count - begun_at_.count},
                        .copies = level == safety_level::replicated ? levels_.copies() : 0});
    if (level == safety_level::local) {
        levels_.keep_local();
    }
    if (last) {
        levels_.drop_before(step_);
    }
}

void checkpointing::agreed(std::uint32_t consents)
{
    if (phase_ == phase::idle) {
        return;
    }
    if ((consents & has_not_failed) == 0) {
        (own_failure().empty() ? news_ : own_news_).push_back(no_checkpoint());
        give_up();
        phase_ = levels_.copies() > 0 && (phase_ == phase::local || phase_ == phase::spreading) ? phase::ending : phase::idle;
        return;
    }
    if ((consents & part_is_ready) == 0) {
        return;
    }
    switch (phase_) {
    case phase::publishing: there(); return;
    case phase::ending: phase_ = phase::idle; return;
    case phase::local:
        reached(safety_level::local);
        phase_ = levels_.copies() > 0 || is_published_ ? phase::spreading : phase::idle;
        return;
    case phase::spreading:
        if (levels_.copies() > 0) {
            reached(safety_level::replicated);
        }
        if (!is_published_) {
            phase_ = phase::idle;
            return;
        }
        break;
    default: break;
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
    bool const is_under_way = phase_ != phase::idle && !is_offered();
    if (is_under_way || publisher_lost) {
        writer_.abandon();
        levels_.give_up();
        if (copies_ != nullptr) {
            copies_->give_up();
        }
        levels_.forget();
        phase_ = phase::idle;
    }
    before_change();
}

void checkpointing::end_copies(mpi::messenger& messages)
{
    if (phase_ != phase::local && phase_ != phase::spreading && phase_ != phase::ending) {
        return;
    }
    give_up();
    messages.wait_until([&] {
        levels_.progress(messages);
        return levels_.is_copied();
    });
    phase_ = phase::idle;
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
    if (is_there && levels_.exist()) {
        levels_.drop_before(step_id{step.value + 1});
    }
}

void checkpointing::report(records& record)
{
    for (auto const& level : std::exchange(reached_, {})) {
        record.safe(level);
    }
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
