#pragma once
// SPDX-License-Identifier: Apache-2.0

// A copy that is made from here, of this rank's part or of one that arrives: pieces are read behind the end that grows, and sent in their order.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "executor/checkpoint/levels/copy_messages.hpp"
#include "executor/checkpoint/levels/growing_part.hpp"
#include "executor/checkpoint/levels/replica_routes.hpp"

namespace rheo::inline v0 {

class outgoing_copy {
public:
    /// @param part null: it arrives here, too, later  @param with outlives it
    outgoing_copy(replica_route const& route, std::shared_ptr<growing_part> part, copying_rank& with);

    rank_id origin() const { return route_.origin; }
    bool has_part() const { return part_ != nullptr; }
    void take(std::shared_ptr<growing_part> part) { part_ = std::move(part); }
    bool done() const { return step_ == step::ended; }

    /// Moves on what can move. @throws mpi::peer_lost
    void progress(mpi::messenger& messages);

private:
    enum class step : std::uint8_t { begin, announced, pieces, waiting, ending, texts, ended };

    void send_pieces(mpi::messenger& messages);
    void send_ending(mpi::messenger& messages);
    void fill(copied_piece& s, std::int64_t piece);  ///< in the files' thread

    replica_route route_;
    std::shared_ptr<growing_part> part_;
    copying_rank* with_;
    step step_ = step::begin;
    mpi::messenger::ticket message_ticket_{};
    copy_announcement announced_{};
    copy_ending end_{};
    std::string text_{};
    copied_pieces pieces_{};
    std::int64_t filling_ = 0;  ///< pieces that were given to the files' thread
    std::int64_t sent_ = 0;     ///< of these
    std::int64_t done_ = 0;     ///< of these
    std::atomic<bool> failed_{false};
};

}  // namespace rheo::inline v0
