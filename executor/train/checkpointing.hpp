#pragma once
// SPDX-License-Identifier: Apache-2.0

// When checkpoints are written, and how the ranks agree that one is there. A checkpoint is begun between two
// steps, by all ranks at the same one; each copies the tensors that it has to write, and a thread of its own
// writes them. Every later vote carries two consents: "my part is on disk" and "my writing has not
// failed". When all have the first one rank publishes; when one lacks the second all give it up. The
// next one is begun only after a vote in which the publisher, too, had nothing left to do.
// With a node-local folder a checkpoint is safe there first (level 1), then on other nodes (2), then it is published (3). All stages begin at once, each behind the
// one before it (checkpoint/levels); the ranks agree on one level after the other, by the same two bits.
// The last one, when the job closes, has no votes: there the ranks reduce, and a loss may end a reduction on some of them only.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/checkpoint/levels/checkpoint_levels.hpp"
#include "executor/config/inject.hpp"
#include "executor/data/data.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/os/launch_clock.hpp"
#include "executor/records/records.hpp"
#include "executor/state/resident_state.hpp"
#include "executor/train/job.hpp"
#include "executor/train/tensor_holders.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/plan/optimizer_shards.hpp"
#include "rheo/topology/holdings.hpp"

namespace rheo::inline v0 {

class checkpointing {
public:
    static constexpr std::uint32_t part_is_ready = 2;  ///< bits of a vote
    static constexpr std::uint32_t has_not_failed = 4;

    /// @param from the step that a resumed job starts from, whose checkpoint is there already
    checkpointing(job const& about, dataset const& data, fault_injector const& inject, launch_clock clock, rank_id self, std::optional<step_id> from);

    /// True when so much time has passed that this rank wants a checkpoint; any rank's request counts for all.
    bool wants_one() const;

    /// A step was committed; `wanted` is the reduced request. Begins a checkpoint when one is due and none is being written.
    void committed(step_id step, bool wanted, generation_id generation, std::span<rank_id const> members, std::span<pipeline_instance const> pipelines,
                   resident_state const& state, optimizer_shards shards = {});

    /// Before the state changes: what is still copied beside the training is copied, here too.
    void before_change();

    /// Copies for other nodes move on. @throws mpi::peer_lost
    void progress(mpi::messenger& messages) { levels_.progress(messages); }

    std::uint32_t consents() const;

    /// What all ranks consented to in a settled vote.
    void agreed(std::uint32_t consents);

    /// Members were lost: a checkpoint that is being written is given up. What lost ranks left of it goes with the next
    /// publication; no other rank may remove it, because an earlier one may still be on its way to its name.
    void generation_ended(std::span<rank_id const> members);

    /// The one whose publication has begun and is not known to have ended: the same on all ranks until the job closes.
    std::optional<step_id> in_publication() const { return phase_ == phase::publishing ? std::optional{step_} : std::nullopt; }

    /// Before the job closes, on every member: copies for other nodes end, and what is not published stays at the level that it has. @throws mpi::peer_lost
    void end_copies(mpi::messenger& messages);

    /// Before this rank leaves, alone and in order: gives up what it writes as the others do, and finishes what it publishes.
    void depart(std::span<rank_id const> members);

    /// The largest of the values of all members, on each of them. @throws peer_lost
    using reduction = std::function<std::int64_t(std::int64_t)>;

    /// Before the job ends, on every member: writes and publishes the state, unless it is there already. After a loss all members that are left
    /// call it again: the number of its reductions follows from what was reduced, never from what one rank knows.
    /// @returns whether it is there  @throws what `largest` does
    bool save_now(step_id step, generation_id generation, tensor_holders const& holders, resident_state const& state, reduction const& largest);

    /// Records what has happened since: checkpoints that are there now, or why one is not.
    void report(records& record);

private:
    /// Offered, only when the job closes: this rank's part is done, and others may have heard that all are. The publisher may be at work.
    /// With a node-local folder: local, until all parts are there; spreading, until the copies are, and the parts in the run folder; ending, until
    /// messages of copies that were given up are at their end.
    enum class phase : std::uint8_t { idle, local, spreading, ending, writing, offered, publishing };

    void begin(step_id step, generation_id generation, tensor_holders const& holders, resident_state const& state);
    checkpoint_part own_part(step_id step, generation_id generation, resident_state const& state);
    void begin_levels(step_id step, generation_id generation, std::span<rank_id const> members, tensor_holders const& holders, resident_state const& state);
    void prepare(step_id step, generation_id generation, tensor_holders const& holders, resident_state const& state);
    bool writes() const { return std::find(writers_.begin(), writers_.end(), self_) != writers_.end(); }
    std::vector<rank_id> parts() const;  ///< who writes, ascending; the first one publishes
    bool publishes() const { return parts().front() == self_; }
    void publish();
    void there();
    void reached(safety_level level);
    void give_up();
    bool is_offered() const { return phase_ == phase::offered || phase_ == phase::publishing; }
    bool offer(step_id step, generation_id generation, tensor_holders const& holders, resident_state const& state);
    bool look_for(step_id step, reduction const& largest);
    void settled(step_id step, bool is_there);
    std::string own_failure() const;
    std::string no_checkpoint() const;

    job const* job_;
    dataset const* data_;
    fault_injector const* inject_;
    launch_clock clock_;
    rank_id self_;
    std::atomic<std::int64_t> being_written_{-1};  ///< the step, for the writing thread
    std::shared_ptr<state_snapshot> copies_{};     ///< of this rank's part, until they are made
    checkpoint_writer writer_;
    checkpoint_levels levels_;
    bool is_published_ = false;  ///< the one in progress goes on to the run folder
    std::int64_t begun_ = 0;     ///< checkpoints with levels
    phase phase_ = phase::idle;  ///< the same on all ranks until the job closes
    step_id step_{-1};           ///< of the one in progress
    generation_id generation_{};
    std::vector<rank_id> writers_;
    std::vector<checkpoint_tensor> tensors_;
    std::optional<step_id> published_;  ///< the newest one, as far as this rank knows
    seconds begun_at_{};
    bytes size_{};  ///< of all tensors in it
    std::optional<checkpoint_record> written_{};
    std::vector<level_record> reached_{};
    std::vector<std::string> news_{};  ///< that all ranks know
    std::vector<std::string> own_news_{};
};

}  // namespace rheo::inline v0
