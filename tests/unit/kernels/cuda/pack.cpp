// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack/pack.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

using bytes = std::vector<std::byte>;

bytes random_bytes(std::size_t count, unsigned seed)
{
    std::mt19937 random{seed};
    bytes values(count);
    for (auto& v : values) {
        v = static_cast<std::byte>(random());
    }
    return values;
}

/// Pieces of a tensor of `stride` bytes per row, one after the other in a message.
struct box {
    std::int64_t offset, rows, row_bytes;
};

std::vector<pack_piece> pieces_of(std::vector<box> const& boxes, std::int64_t stride, std::byte* tensor, std::byte* message, bool unpack)
{
    std::vector<pack_piece> pieces;
    std::int64_t at = 0;
    for (auto const& b : boxes) {
        pack_piece const packs{
            .from = tensor + b.offset, .to = message + at, .rows = b.rows, .row_bytes = b.row_bytes, .from_stride = stride, .to_stride = b.row_bytes};
        pieces.push_back(unpack ? pack_piece{.from = packs.to,
                                             .to = tensor + b.offset,
                                             .rows = b.rows,
                                             .row_bytes = b.row_bytes,
                                             .from_stride = b.row_bytes,
                                             .to_stride = stride}
                                : packs);
        at += b.rows * b.row_bytes;
    }
    return pieces;
}

}  // namespace

TEST_CASE("cuda pack: moves exactly the boxes, both ways")
{
    constexpr std::int64_t stride = 4096;
    constexpr std::int64_t rows = 40;
    for (auto const& boxes :
         {std::vector<box>{{0, 40, 4096}}, std::vector<box>{{16, 3, 32}, {32 + 5 * stride, 30, 1600}, {6 * stride + 2048, 0, 16}, {7 * stride + 2048, 2, 16}},
          std::vector<box>{{3, 5, 7}, {5 * stride + 1, 1, 1}, {6 * stride, 10, 1602}, {20 * stride + 2, 1, 4000}}}) {
        std::int64_t message_bytes = 0;
        for (auto const& b : boxes) {
            message_bytes += b.rows * b.row_bytes;
        }
        auto tensor = random_bytes(stride * rows, 1);
        bytes message(size(message_bytes));
        auto const defined = pieces_of(boxes, stride, tensor.data(), message.data(), false);
        auto const first = pack_blocks(defined);
        definition::pack({.piece_count = std::ssize(defined), .pieces = defined.data(), .first_block = first.data(), .blocks = first.back()});
        same_in_every_order([&] {
            device::array<std::byte> const from{tensor}, packed{message_bytes}, back{stride * rows};
            for (bool const unpack : {false, true}) {
                auto const list = pieces_of(boxes, stride, unpack ? back.data() : from.data(), packed.data(), unpack);
                REQUIRE(pack_blocks(list) == first);
                device::array<pack_piece> const pieces{list};
                device::array<std::int64_t> const blocks{first};
                cuda::pack(device::queue(), {.piece_count = std::ssize(list), .pieces = pieces.data(), .first_block = blocks.data(), .blocks = first.back()});
            }
            CHECK(packed.host() == message);
            auto expected = bytes(size(stride * rows), std::byte{0xff});
            for (auto const& b : boxes) {
                for (std::int64_t r = 0; r < b.rows; ++r) {
                    std::copy_n(tensor.begin() + b.offset + r * stride, b.row_bytes, expected.begin() + b.offset + r * stride);
                }
            }
            CHECK(back.host() == expected);
            CHECK((from.margins_kept() && packed.margins_kept() && back.margins_kept()));
            return 0;
        });
    }
}

TEST_CASE("pack: overlapping rows are rejected; 16 KiB blocks")
{
    std::byte some{};
    pack_piece const piece{.from = &some, .to = &some, .rows = 2, .row_bytes = 100, .from_stride = 100, .to_stride = 99};
    CHECK_THROWS_WITH(pack_blocks(std::vector{piece}), Catch::Matchers::ContainsSubstring("do not overlap"));
    CHECK(pack_blocks(std::vector<pack_piece>{{nullptr, nullptr, 1, 16384, 0, 0}, {nullptr, nullptr, 0, 5, 5, 5}, {nullptr, nullptr, 1, 16385, 0, 0}}) ==
          std::vector<std::int64_t>{0, 1, 1, 3});
}
