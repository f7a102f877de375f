#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the messages of a copy have in common at both ends: an announcement, pieces with a word before them, and an ending with the two small texts.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/config/checkpoint_point.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/os/job_thread.hpp"

namespace rheo::inline v0 {

inline constexpr std::size_t copied_piece_bytes = std::size_t{2} << 20;
inline constexpr std::size_t copied_pieces_under_way = 4;  ///< of a route, at each end

/// What begins each route: the sizes of the two files.
using copy_announcement = std::array<std::int64_t, 2>;

/// What ends it: the sizes of the two texts, and whether all pieces were right.
struct copy_ending {
    std::int64_t about = 0;
    std::int64_t manifest = 0;
    std::int64_t failed = 0;
};

/// A piece with a word before it: whether it has data.
struct copied_piece {
    enum class use : std::uint8_t { unused, at_files, filled, at_messages };

    std::vector<std::byte> buffer = std::vector<std::byte>(sizeof(std::int64_t) + copied_piece_bytes);
    std::atomic<use> now{use::unused};
    mpi::messenger::ticket message{};

    std::span<std::byte> data(std::size_t count) { return std::span{buffer}.subspan(sizeof(std::int64_t), count); }
    std::span<std::byte> whole(std::size_t count) { return std::span{buffer}.first(sizeof(std::int64_t) + count); }
    void set_failed(bool failed)
    {
        std::int64_t const word = failed ? 1 : 0;
        std::copy_n(reinterpret_cast<std::byte const*>(&word), sizeof word, buffer.begin());
    }
    bool failed() const
    {
        std::int64_t word = 0;
        std::copy_n(buffer.begin(), sizeof word, reinterpret_cast<std::byte*>(&word));
        return word != 0;
    }
};

/// The pieces of a route that are under way, in turn.
class copied_pieces {
public:
    copied_piece& operator[](std::int64_t piece) { return all_[static_cast<std::size_t>(piece) % all_.size()]; }

    /// @param part its bytes
    static std::int64_t count(std::int64_t part) { return (part + size - 1) / size; }
    static std::int64_t first_byte(std::int64_t piece) { return piece * size; }
    static std::size_t size_of(std::int64_t piece, std::int64_t part) { return static_cast<std::size_t>(std::min(size, part - piece * size)); }

private:
    static constexpr auto size = static_cast<std::int64_t>(copied_piece_bytes);

    std::array<copied_piece, copied_pieces_under_way> all_{};
};

/// What all copies of a rank share.
struct copying_rank {
    std::function<void(checkpoint_point)> at;  ///< called at every named moment, by `files`
    std::atomic<bool> given_up{false};
    job_thread files{};  ///< reads and writes them; the last member: its jobs use the others
};

}  // namespace rheo::inline v0
