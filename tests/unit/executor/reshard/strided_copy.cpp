// SPDX-License-Identifier: Apache-2.0
// Copies of boxes between memories with any strides, against one element after the other.
#include "executor/reshard/strided_copy.hpp"

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Row-major memory of a box with gaps: how far each dimension's elements lie apart, in a random order of the dimensions.
struct memory {
    std::array<std::ptrdiff_t, detail::copied_dimensions> stride{};
    std::vector<std::byte> bytes{};
};

memory memory_of(detail::strided_box const& box, std::mt19937& draw)
{
    memory m;
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < box.dimensions; ++d) {
        order.insert(order.begin() + static_cast<std::ptrdiff_t>(draw() % 2 * order.size()), d);  // at either end
    }
    auto distance = static_cast<std::ptrdiff_t>(box.element_bytes * (1 + draw() % 2));
    for (auto const d : order) {
        m.stride[d] = distance;
        distance *= static_cast<std::ptrdiff_t>(box.extent[d] + static_cast<std::int64_t>(draw() % 2));
    }
    m.bytes.resize(static_cast<std::size_t>(distance));
    for (auto& b : m.bytes) {
        b = static_cast<std::byte>(draw());
    }
    return m;
}

/// Where each element begins, in row-major order.
std::vector<std::ptrdiff_t> places(detail::strided_box const& box, std::array<std::ptrdiff_t, detail::copied_dimensions> const& stride)
{
    std::vector<std::ptrdiff_t> result{0};
    for (std::size_t d = 0; d < box.dimensions; ++d) {
        std::vector<std::ptrdiff_t> next;
        for (auto const base : result) {
            for (std::int64_t i = 0; i < box.extent[d]; ++i) {
                next.push_back(base + static_cast<std::ptrdiff_t>(i) * stride[d]);
            }
        }
        result = next;
    }
    return result;
}

}  // namespace

TEST_CASE("strided_copy: every element of the box and no other byte")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 3000; ++round) {
        detail::strided_box box;
        box.dimensions = draw() % 6;
        box.element_bytes = std::size_t{1} << draw() % 5;
        if (draw() % 4 == 0) {
            box.element_bytes = 1 + draw() % 24;
        }
        for (std::size_t d = 0; d < box.dimensions; ++d) {
            box.extent[d] = static_cast<std::int64_t>(draw() % 8 == 0 ? 0 : 1 + draw() % 4);
        }
        auto const from = memory_of(box, draw);
        auto to = memory_of(box, draw);
        box.from_stride = from.stride;
        box.to_stride = to.stride;
        auto expected = to.bytes;
        auto const sources = places(box, from.stride);
        auto const targets = places(box, to.stride);
        for (std::size_t i = 0; i < sources.size(); ++i) {
            std::memcpy(expected.data() + targets[i], from.bytes.data() + sources[i], box.element_bytes);
        }
        std::size_t rows = 0;
        row_copier const counted = [&](row_block const& block) {
            rows += block.rows;
            for (std::size_t r = 0; r < block.rows; ++r) {
                auto const row = static_cast<std::ptrdiff_t>(r);
                std::memcpy(block.to + row * block.to_pitch, block.from + row * block.from_pitch, block.row_bytes);
            }
        };
        detail::copy_strided(box, to.bytes.data(), from.bytes.data(), draw() % 2 == 0 ? counted : row_copier{});
        REQUIRE(to.bytes == expected);
        REQUIRE(rows <= sources.size());
    }
}

TEST_CASE("strided_copy: streamed rows are the same anywhere")
{
    std::mt19937 draw{8};
    for (int round = 0; round < 500; ++round) {
        detail::strided_box box;
        box.dimensions = 2;
        box.element_bytes = std::size_t{1} << draw() % 4;
        box.extent = {static_cast<std::int64_t>(1 + draw() % 5), static_cast<std::int64_t>(1 + draw() % 400)};
        auto const element = static_cast<std::ptrdiff_t>(box.element_bytes);
        auto const row = element * static_cast<std::ptrdiff_t>(box.extent[1]);
        box.from_stride = {row + static_cast<std::ptrdiff_t>(draw() % 70), element};
        box.to_stride = {row + static_cast<std::ptrdiff_t>(draw() % 70), element};
        auto const from_first = draw() % 64;
        auto const to_first = draw() % 64;
        std::vector<std::byte> from(64 + 5 * static_cast<std::size_t>(box.from_stride[0]));
        for (auto& b : from) {
            b = static_cast<std::byte>(draw());
        }
        std::vector<std::byte> to(64 + 5 * static_cast<std::size_t>(box.to_stride[0]), std::byte{0x5a});
        auto expected = to;
        detail::copy_strided(box, expected.data() + to_first, from.data() + from_first, {}, detail::row_stores::cached);
        detail::copy_strided(box, to.data() + to_first, from.data() + from_first, {}, detail::row_stores::streaming);
        REQUIRE(to == expected);
    }
}

TEST_CASE("strided_copy: dimensions that lie in one run are one row")
{
    detail::strided_box box;
    box.dimensions = 3;
    box.element_bytes = 4;
    box.extent = {2, 3, 5};
    box.from_stride = {60, 20, 4};
    box.to_stride = {60, 20, 4};
    std::vector<row_block> calls;
    std::vector<std::byte> from(200);
    std::vector<std::byte> to(200);
    detail::copy_strided(box, to.data(), from.data(), [&](row_block const& b) { calls.push_back(b); });
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].row_bytes == 120);
    CHECK(calls[0].rows == 1);
    CHECK(detail::is_one_run(box, box.to_stride));

    box.to_stride = {60, 20, 4};
    box.from_stride = {96, 32, 4};  // rows of eight, of which five
    calls.clear();
    detail::copy_strided(box, to.data(), from.data(), [&](row_block const& b) { calls.push_back(b); });
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].row_bytes == 20);
    CHECK(calls[0].rows == 6);
    CHECK_FALSE(detail::is_one_run(box, box.from_stride));
}

TEST_CASE("strided_copy: large planes are transposed by tiles")
{
    for (std::size_t const bytes : {2U, 4U, 12U}) {
        detail::strided_box box;
        box.dimensions = 3;
        box.element_bytes = bytes;
        box.extent = {3, 70, 133};
        auto const element = static_cast<std::ptrdiff_t>(bytes);
        box.from_stride = {70 * 133 * element, 133 * element, element};
        box.to_stride = {70 * 140 * element, element, 70 * element};
        std::vector<std::byte> from(3 * 70 * 133 * bytes);
        std::mt19937 draw{6};
        for (auto& b : from) {
            b = static_cast<std::byte>(draw());
        }
        std::vector<std::byte> to(3 * 70 * 140 * bytes, std::byte{0x5a});
        auto expected = to;
        auto const sources = places(box, box.from_stride);
        auto const targets = places(box, box.to_stride);
        for (std::size_t i = 0; i < sources.size(); ++i) {
            std::memcpy(expected.data() + targets[i], from.data() + sources[i], bytes);
        }
        detail::copy_strided(box, to.data(), from.data(), {});
        CHECK(to == expected);
    }
}

TEST_CASE("strided_copy: column-major on both sides is long rows")
{
    detail::strided_box box;
    box.dimensions = 2;
    box.element_bytes = 8;
    box.extent = {10, 6};
    box.from_stride = {8, 160};
    box.to_stride = {8, 80};
    std::vector<row_block> calls;
    std::vector<std::byte> from(1000);
    std::vector<std::byte> to(480);
    detail::copy_strided(box, to.data(), from.data(), [&](row_block const& b) { calls.push_back(b); });
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].row_bytes == 80);
    CHECK(calls[0].rows == 6);
}

TEST_CASE("strided_copy: ordered boxes change by as few copies")
{
    detail::strided_box box;
    box.dimensions = 3;
    box.element_bytes = 4;
    box.change = detail::element_change::f32_to_bf16;
    box.extent = {2, 3, 5};
    box.from_stride = {60, 20, 4};  // one run
    box.to_stride = {48, 12, 2};    // rows of six and planes of four of them
    std::vector<std::byte> from(200, std::byte{0x3f});
    std::vector<std::byte> plain(96);
    std::vector<std::byte> ordered(96);
    int calls = 0;
    auto const counted = [&](row_block const& b) {
        ++calls;
        for (std::size_t r = 0; r < b.rows; ++r) {
            auto const row = static_cast<std::ptrdiff_t>(r);
            std::memcpy(b.to + row * b.to_pitch, b.from + row * b.from_pitch, b.row_bytes);
        }
    };
    detail::copy_strided(box, plain.data(), from.data(), counted);
    auto const once = std::exchange(calls, 0);
    detail::copy_strided(detail::in_copy_order(box), ordered.data(), from.data(), counted);
    CHECK(calls == once);
    CHECK(ordered == plain);
}
