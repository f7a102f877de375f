#pragma once
// SPDX-License-Identifier: Apache-2.0

// A part of a checkpoint in a node-local folder while one thread still writes it. Later stages, the copy to another node and the one to
// the shared file system, read behind the end that grows, so that stages run side by side with no more memory than their pieces: what lies
// between them is in the page cache.

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>

#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// The small files of a part, which end it.
struct part_texts {
    std::string about;     ///< see state_manifest, without a digest: what a checkpoint says beside its files
    std::string manifest;  ///< see part_manifest

    friend bool operator==(part_texts const&, part_texts const&) = default;
};

/// A part is a sequence of bytes: its weights, then its moments, and the two texts.
class growing_part {
public:
    using file_sizes = std::array<std::int64_t, 2>;

    struct state {
        std::int64_t there = 0;  ///< bytes of both files that can be read
        bool finished = false;   ///< all, with the texts, on disk
        bool failed = false;     ///< it will not be finished
    };

    /// @param folder where the files are  @param origin the rank whose part it is
    growing_part(std::filesystem::path folder, rank_id origin, file_sizes sizes);

    std::filesystem::path const& folder() const { return folder_; }
    rank_id origin() const { return origin_; }
    file_sizes const& sizes() const { return sizes_; }
    std::int64_t bytes() const { return sizes_[0] + sizes_[1]; }
    /// "model-3.safetensors", "state-3.safetensors".
    std::filesystem::path path(std::size_t file) const;

    // by who writes it
    void grown(std::int64_t there);
    void finished(part_texts texts);
    void failed();

    // by who reads it, on any thread
    state look() const;
    /// Until so many bytes are there, or it has ended, or that time is over.
    state wait_for(std::int64_t there, std::chrono::milliseconds most) const;
    /// @pre finished
    part_texts const& texts() const { return texts_; }
    /// Bytes from the sequence. @pre they are there  @throws exit_error
    void read(std::int64_t first, std::span<std::byte> into) const;

private:
    std::filesystem::path folder_;
    rank_id origin_;
    file_sizes sizes_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_{};
    state state_{};
    part_texts texts_{};
};

}  // namespace rheo::inline v0
