#pragma once
// SPDX-License-Identifier: Apache-2.0

// The memory that the members of a communicator share: who they are, and for each two of them a channel each way that holds one chunk. It is a file without a
// name, opened through the process that made the unique id: it goes with the last who has mapped it, however they end.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/types.h>

#include "nccl_types.hpp"

namespace standin {

enum class kind : int { message, all_reduce, reduce_scatter, all_gather, broadcast };
char const* name_of(kind of);

/// What both sides of a channel must say alike.
struct description {
    kind what = kind::message;
    int type = 0;
    int reduction = 0;
    int root = 0;
    std::uint64_t bytes = 0;  ///< from one to the other

    friend bool operator==(description const&, description const&) = default;
};
std::string sentence_of(description const& d);

/// Empty while as many chunks are taken as were put.
struct alignas(64) channel {
    static constexpr std::size_t chunk = 64 << 10;

    std::atomic<std::uint64_t> put;
    std::atomic<std::uint64_t> taken;
    description of;
    alignas(64) std::byte data[chunk];
};

class room {
public:
    static constexpr int most_ranks = 64;

    static ncclUniqueId new_id();

    /// Joins the others. Without the process that made the id there is nobody to join: it waits for ever.
    room(ncclUniqueId const& id, int ranks, int rank);
    ~room();
    room(room const&) = delete;
    room& operator=(room const&) = delete;

    bool all_have_joined();
    bool one_is_gone() const;
    std::uint64_t id() const { return id_; }
    int ranks() const { return ranks_; }
    int rank() const { return rank_; }
    channel& between(int from, int to) const;

private:
    struct door {
        std::uint64_t id;
        std::atomic<int> ranks;
        std::atomic<int> joined;
        std::array<std::atomic<pid_t>, most_ranks> pids;
    };
    static constexpr std::size_t door_bytes = 4096;
    static_assert(sizeof(door) <= door_bytes && std::atomic<std::uint64_t>::is_always_lock_free);

    std::size_t bytes() const { return door_bytes + sizeof(channel) * static_cast<std::size_t>(ranks_ * ranks_); }

    std::uint64_t id_ = 0;
    int ranks_;
    int rank_;
    door* door_ = nullptr;
};

}  // namespace standin
