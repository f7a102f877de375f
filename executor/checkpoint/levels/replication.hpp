#pragma once
// SPDX-License-Identifier: Apache-2.0

// Copies of the parts of a checkpoint on other nodes. A part travels in pieces, while its origin still writes it: a piece is read from the
// page cache, sent, written to the other node's local folder, and sent on from there. A few pieces of each route are under way at once; a receiver asks for
// the next one when one is written, so a slow disk slows the sender and nothing else. Messages make progress when the trainer calls progress(), which
// never waits; files are read and written by a thread.
//
// Every route ends with the same messages whatever fails: who cannot read sends pieces that say so, who cannot write discards them. So no message is left over.
//
// HyperLoop (SIGCOMM'18) forwards by one-sided writes without the processor of the replica. Here a copy needs its node's disk, and an MPI that survives
// losses gives one-sided windows no way to end after one: so pieces are messages.

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/checkpoint/levels/growing_part.hpp"
#include "executor/checkpoint/levels/incoming_copy.hpp"
#include "executor/checkpoint/levels/outgoing_copy.hpp"
#include "executor/checkpoint/levels/replica_routes.hpp"
#include "executor/config/checkpoint_point.hpp"
#include "executor/mpi/messenger.hpp"

namespace rheo::inline v0 {

class replication {
public:
    /// @param at called at every named moment, in the thread that writes
    replication(rank_id self, std::function<void(checkpoint_point)> at);
    ~replication();  ///< @pre nothing is under way, or the messenger is gone
    replication(replication const&) = delete;
    replication& operator=(replication const&) = delete;

    /// Starts the routes of a checkpoint that touch this rank. @param folder gets the parts of others  @param own this rank's part; null: it writes none
    /// @pre done()
    void begin(std::span<replica_route const> routes, std::filesystem::path const& folder, std::shared_ptr<growing_part> own);

    /// Moves on what can move. @throws mpi::peer_lost
    void progress(mpi::messenger& messages);

    /// All messages and files of this rank are at their end.
    bool done() const;
    /// Why a part did not arrive; empty: all is well so far.
    std::string message() const;

    /// The rest travels without data, so that routes end soon. What has arrived is removed.
    void give_up();
    /// The generation has ended, and with it all messages; what is not complete is removed. @pre the messenger is gone
    void forget();

private:
    rank_id self_;
    std::vector<std::unique_ptr<incoming_copy>> incoming_{};
    std::vector<std::unique_ptr<outgoing_copy>> outgoing_{};
    copying_rank rank_;  ///< the last member: its thread uses the others
};

}  // namespace rheo::inline v0
