#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a rank does for a checkpoint before it is published: its part to the node's own disk (level 1), copies to other nodes and theirs here (level 2). Both begin
// at once and end one after the other. When the ranks agree on a level is the trainer's (executor/train/checkpointing.hpp).

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/checkpoint/levels/replication.hpp"
#include "executor/config/checkpoint_point.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/os/job_thread.hpp"

namespace rheo::inline v0 {

/// When it was begun, and by whom.
struct begun_checkpoint {
    step_id step;
    generation_id generation;
    std::span<rank_id const> members;  ///< ascending
};

class checkpoint_levels {
public:
    /// @param local this node's folder of the run; empty: there are no levels  @param node_size ranks of a node  @param copies of each part, on other nodes
    /// @param at called at every named moment, in the thread that writes
    checkpoint_levels(std::filesystem::path local, int node_size, int copies, rank_id self, std::function<void(checkpoint_point)> const& at);

    /// Whether there are any.
    bool exist() const { return !local_.empty(); }

    /// @param part this rank's; none: it writes none  @param about see part_texts  @param origins who writes one  @returns the part, for later stages; null: none
    /// @pre nothing is under way
    std::shared_ptr<growing_part> begin(std::optional<checkpoint_part> part, std::string about, begun_checkpoint const& which,
                                        std::span<rank_id const> origins);

    /// Moves copies on. @throws mpi::peer_lost
    void progress(mpi::messenger& messages) { copying_.progress(messages); }

    /// This rank's part is on disk, or it has none.
    bool is_local() const { return !writes_ || writer_.state() == writer_state::ready; }
    /// Its copies are on other nodes, and others' here.
    bool is_copied() const { return copying_.done(); }
    /// Copies of each part of this checkpoint.
    int copies() const { return copies_; }
    /// Why this rank could not do what a level asks of it; empty: it could.
    std::string message() const { return writes_ && writer_.state() == writer_state::failed ? writer_.message() : copying_.message(); }

    /// All ranks know that the checkpoint is safe at the first level: the part stays, whatever comes.
    void keep_local();
    /// What is older is not needed any more.
    void drop_before(step_id step);

    /// Ends what is under way, soon: copies when is_copied().
    void give_up();
    /// Of a generation that has ended. @pre its messenger is gone
    void forget();

private:
    std::filesystem::path local_;
    int node_size_;
    int most_copies_;
    rank_id self_;
    checkpoint_writer writer_;
    replication copying_;
    job_thread old_files_;  ///< removes them
    bool writes_ = false;
    int copies_ = 0;
};

}  // namespace rheo::inline v0
