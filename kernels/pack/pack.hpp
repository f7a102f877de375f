#pragma once
// SPDX-License-Identifier: Apache-2.0

// Many pieces of memory moved in one go: boxes of tensors into a message (pack), and out of it (unpack). A piece is rows of bytes, each side with
// a stride of its own, so both are the same operation. Pieces do not overlap.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cuda/stream.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Rows of one piece; strides are in bytes, from the beginning of a row to that of the next.
struct pack_piece {
    std::byte const* from;
    std::byte* to;
    std::int64_t rows;
    std::int64_t row_bytes;
    std::int64_t from_stride;
    std::int64_t to_stride;

    friend constexpr bool operator==(pack_piece const&, pack_piece const&) = default;
};

/// On a device everything it points at is the device's.
struct pack_arguments {
    std::int64_t piece_count;
    pack_piece const* pieces;         // [piece_count]
    std::int64_t const* first_block;  // [piece_count + 1], see pack_blocks
    std::int64_t blocks;              ///< the last of first_block
};

/// What a block of the device moves at most.
inline constexpr std::int64_t pack_block_bytes = 16384;

/// Where the blocks of each piece begin, and after the last one how many there are. @pre strides are not below row_bytes, nor is anything negative
inline std::vector<std::int64_t> pack_blocks(std::span<pack_piece const> pieces)
{
    std::vector<std::int64_t> first{0};
    for (auto const& p : pieces) {
        expects(p.rows >= 0 && p.row_bytes >= 0 && (p.rows <= 1 || (p.from_stride >= p.row_bytes && p.to_stride >= p.row_bytes)),
                "the rows of a piece to pack do not overlap");
        std::int64_t const chunks = p.rows * ((p.row_bytes + 15) / 16);
        first.push_back(first.back() + (chunks * 16 + pack_block_bytes - 1) / pack_block_bytes);
    }
    return first;
}

namespace definition {

inline void pack(pack_arguments const& a)
{
    for (std::int64_t n = 0; n < a.piece_count; ++n) {
        auto const& p = a.pieces[n];
        for (std::int64_t r = 0; r < p.rows; ++r) {
            std::memcpy(p.to + r * p.to_stride, p.from + r * p.from_stride, static_cast<std::size_t>(p.row_bytes));
        }
    }
}

}  // namespace definition

namespace cuda {

/// The pieces are moved when the stream has come so far.
void pack(stream queue, pack_arguments const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
