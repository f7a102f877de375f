#pragma once
// SPDX-License-Identifier: Apache-2.0

// Every byte of a checkpoint against its manifest, without the memory for a tensor.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Bytes [begin, end) of a file that are not what the manifest says.
struct bad_bytes {
    std::filesystem::path file;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::string what;  ///< "the header", "first_moment/wte.weight", ...

    friend bool operator==(bad_bytes const&, bad_bytes const&) = default;
};

struct verified_checkpoint {
    bytes size{};                    ///< read
    std::vector<bad_bytes> found{};  ///< by file, in the order of the manifest, then by place; empty: all is right
};

/// Reads all files that a checkpoint's manifest names. A bad byte is located as finely as digests are kept: to a box of a tensor
/// in one role.
/// Cost: one reading; each thread has at most 4 MiB or a row of a tensor in memory @throws exit_error: the manifest cannot be read
verified_checkpoint verify_checkpoint(std::filesystem::path const& folder, int threads = 1);

/// The same of files that are only a part of a checkpoint. @param manifest names them, and their tensors
verified_checkpoint verify_files(std::filesystem::path const& folder, checkpoint_manifest const& manifest, int threads = 1);

}  // namespace rheo::inline v0
