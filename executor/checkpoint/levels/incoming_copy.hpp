#pragma once
// SPDX-License-Identifier: Apache-2.0

// A copy that arrives here: pieces are asked for as long as there is room, and written in their order.

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/levels/copy_messages.hpp"
#include "executor/checkpoint/levels/growing_part.hpp"
#include "executor/checkpoint/levels/replica_routes.hpp"

namespace rheo::inline v0 {

class incoming_copy {
public:
    /// @param folder gets the part  @param with outlives it
    incoming_copy(replica_route const& route, std::filesystem::path folder, copying_rank& with);

    /// None until its size is known.
    std::shared_ptr<growing_part> const& part() const { return part_; }
    rank_id origin() const { return route_.origin; }
    bool done() const { return step_ == step::ended && stored_; }
    /// Why it did not arrive; empty: all is well so far.
    std::string message() const;

    /// Moves on what can move. @throws mpi::peer_lost
    void progress(mpi::messenger& messages);

    /// @pre with.files is done  @returns it is here whole
    bool is_whole() const { return part_ != nullptr && part_->look().finished; }
    void remove();

private:
    enum class step : std::uint8_t { begin, announced, pieces, ending, texts, ended };

    void receive_pieces(mpi::messenger& messages);
    // in the files' thread
    void fail(std::string message);
    void unless_failed(std::function<void()> const& action);
    void open();
    void store(copied_piece& s, std::int64_t piece);
    void finish();
    std::string message_of_sender() const;

    replica_route route_;
    std::filesystem::path folder_;
    copying_rank* with_;
    step step_ = step::begin;
    mpi::messenger::ticket message_ticket_{};
    copy_announcement announced_{};
    copy_ending end_{};
    std::string text_{};
    std::shared_ptr<growing_part> part_{};
    copied_pieces pieces_{};
    std::int64_t asked_ = 0;    ///< pieces
    std::int64_t arrived_ = 0;  ///< of these
    std::array<std::optional<output_file>, 2> files_{};
    std::atomic<bool> failed_{false};
    std::atomic<bool> stored_{false};
    mutable std::mutex mutex_{};
    std::string message_{};
};

}  // namespace rheo::inline v0
