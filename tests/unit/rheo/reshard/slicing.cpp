// SPDX-License-Identifier: Apache-2.0
// Slicing rules: lengths, orders, composition; Tenplex's unit values.
#include "rheo/reshard/slicing.hpp"

#include <cstdint>
#include <limits>

#include "rheo/reshard/layout_fault.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/sub_collections.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr std::vector<std::int64_t> lengths_of(slices const& of, int dimension)
{
    std::vector<std::int64_t> lengths;
    for (auto const& part : of.parts) {
        lengths.push_back(0);
        for (auto const& box : part) {
            lengths.back() += length(box[dimension]);
        }
    }
    return lengths;
}

/// Whether the parts, one on each rank, are a layout.
bool is_layout(slices const& of)
{
    layout_tensor tensor{.name = "w", .shape = of.shape, .padded = of.padded};
    auto const layout = on(ranks_from(rank_id{0}, static_cast<int>(of.parts.size())), collect(tensor_id{0}, of), {tensor});
    INFO(describe(fault(layout)).view());
    return !fault(layout);
}

using numbers = std::vector<std::int64_t>;

}  // namespace

// kungfu-team/tenplex, dataset sharding by ceil(n / m), at commit 80341e13; 5 over 4 leaves the last part empty.
static_assert(lengths_of(slices_of({8}) | cut({.parts = 4}), 0) == numbers{2, 2, 2, 2});
static_assert(lengths_of(slices_of({10}) | cut({.parts = 4}), 0) == numbers{3, 3, 3, 1});
static_assert(lengths_of(slices_of({5}) | cut({.parts = 4}), 0) == numbers{2, 2, 1, 0});
static_assert(lengths_of(slices_of({6}) | cut({.parts = 4}), 0) == numbers{2, 2, 2, 0});

// Sums and products of lengths near 2^63 are made without leaving 64 bits.
constexpr auto longest = std::numeric_limits<std::int64_t>::max();
static_assert(lengths_of(slices_of({longest}) | cut({.parts = 2}), 0) == numbers{longest / 2 + 1, longest / 2});
static_assert(lengths_of(slices_of({longest}) | cut({.parts = 4, .multiple = 128}), 0) ==
              numbers{longest / 4 + 1, longest / 4 + 1, longest / 4 + 1, longest / 4});
static_assert(lengths_of(slices_of({longest}) | cut({.parts = 3, .multiple = longest - 1}), 0) == numbers{longest - 1, 1, 0});
static_assert(lengths_of(slices_of({longest}) | cut({.sizes = {longest - 5, 0, 5}}), 0) == numbers{longest - 5, 0, 5});
static_assert(lengths_of(slices_of({longest}) | cyclic({.block = longest / 2, .parts = 2}), 0) == numbers{longest / 2 + 1, longest / 2});
static_assert((slices_of({longest - 2}) | padded({.multiple = longest / 7})).padded == nd_shape{longest});
static_assert(by_shares(0, longest, {longest / 2, longest / 2}).sizes == numbers{longest / 2 + 1, longest / 2});
static_assert(by_shares(0, longest - 1, {longest - 2, 2}).sizes == numbers{longest - 2, 1});

TEST_CASE("slicing: sizes, multiples and padding")
{
    CHECK(lengths_of(slices_of({2, 10}) | cut({.dimension = 1, .sizes = {7, 3}}), 1) == numbers{7, 3});
    CHECK(lengths_of(slices_of({100}) | cut({.parts = 3, .multiple = 16}), 0) == numbers{48, 48, 4});
    CHECK_THROWS_WITH(slices_of({9}) | cut({.sizes = {7, 3}}),
                      "dimension 0 of length 9, cut with a size of 3: with it, the sizes add up to more than the length");
    CHECK_THROWS_WITH(slices_of({9}) | cut({.sizes = {7, 1}}),
                      "dimension 0 of length 9, cut into sizes that end at 8: the sizes add up to less than the length");
    CHECK_THROWS_WITH(slices_of({9}) | cut({.dimension = 1}), "a slicing rule names a dimension that the tensor does not have");
    for (auto const tp : {2, 4}) {  // Megatron's vocabulary: a multiple of 128 for each rank
        auto const table = slices_of({30524, 8}) | padded({.multiple = 128 * tp}) | cut({.parts = tp});
        CHECK(table.padded[0] == 30720);
        CHECK(lengths_of(table, 0) == numbers(static_cast<std::size_t>(tp), 30720 / tp));
        CHECK(is_layout(table));
    }
}

TEST_CASE("slicing: what leaves 64 bits is refused with its place")
{
    auto const all = slices_of({4, longest});
    CHECK_THROWS_WITH(all | padded({.dimension = 1, .multiple = 128}),
                      "dimension 1 of length 9223372036854775807, padded to a multiple of 128: the padded length does not fit into 64 bits; it is at most "
                      "9223372036854775807");
    CHECK_THROWS_WITH(all | cut({.dimension = 1, .sizes = {longest, longest, 2}}),
                      "dimension 1 of length 9223372036854775807, cut with a size of 9223372036854775807: with it, the sizes add up to more than the length");
    CHECK_THROWS_WITH(all | segments({.dimension = 1, .sizes = {longest, 1}}),
                      "dimension 1 of length 9223372036854775807, cut with a size of 1: with it, the sizes add up to more than the length");
    CHECK_THROWS_WITH(all | cyclic({.dimension = 1, .block = 64, .parts = 2}),
                      "dimension 1 of length 9223372036854775807, cyclic in blocks of 64: a box has fewer than 16777216 blocks; make them larger");
    CHECK_THROWS_WITH(
        by_shares(1, longest, {3, longest}),
        "dimension 1 of length 9223372036854775807, divided with a share of 9223372036854775807: with it, the sum of the shares does not fit into 64 "
        "bits; scale them down");
    CHECK_THROWS_WITH(by_shares(1, 10, {3, -1}), "dimension 1 of length 10, divided with a share of -1: a share is at least 0");
    CHECK_THROWS_WITH(slices_of({3, -1}), "the lengths of a tensor that is cut are at least 0");
    CHECK_THROWS_WITH(all | heads({.dimension = 1, .query = 1 << 30, .key_value = 1 << 30, .parts = 2}), "the heads do not divide the length of the dimension");
    CHECK_THROWS_WITH(ranks_from(rank_id{16777000}, 217), "ranks that follow each other count from 0 to 16777215");
}

TEST_CASE("slicing: flat ranges near 2^63")
{
    std::vector<layout_tensor> tensors{{.name = "a", .shape = {longest / 3, 2}, .element = {bytes{1}}},
                                       {.name = "b", .shape = {longest / 3}, .element = {bytes{1}}}};
    for (auto const pieces : {1, 2, 3, 1000}) {
        auto const layout = on(ranks_from(rank_id{0}, pieces), flat(tensors, pieces), tensors);
        CAPTURE(pieces, describe(fault(layout)).view());
        CHECK(!fault(layout));
    }
    tensors.push_back({.name = "c", .shape = {2}});
    CHECK_THROWS_WITH(flat(tensors, 2), "tensor \"c\": with it, the flat range has more elements than 64 bits can count; it has at most 9223372036854775807");
    tensors[0].shape = {longest, longest};
    CHECK_THROWS_WITH(flat(tensors, 2), "tensor \"a\": with it, the flat range has more elements than 64 bits can count; it has at most 9223372036854775807");
}

TEST_CASE("slicing: rules act on all parts before them")
{
    auto const qkv = slices_of({4, 12}) | segments({.dimension = 1, .sizes = {6, 2, 4}}) | cut({.dimension = 1, .parts = 2});
    CHECK(qkv.parts[1] == std::vector<nd_box>{{{0, 4}, {3, 6}}, {{0, 4}, {7, 8}}, {{0, 4}, {10, 12}}});
    CHECK(is_layout(qkv));
    auto const twice = slices_of({4}) | cut({.parts = 2}) | replicated(2);
    CHECK(twice.parts == std::vector<std::vector<nd_box>>{{{{0, 2}}}, {{{0, 2}}}, {{{2, 4}}}, {{{2, 4}}}});
    auto const grid = slices_of({5, 7}) | cyclic({.dimension = 0, .block = 2, .parts = 2}) | cyclic({.dimension = 1, .block = 3, .parts = 3});
    CHECK(grid.parts.size() == 6);
    CHECK(grid.parts[5] == std::vector<nd_box>{{{2, 4}, {6, 7}}});
    CHECK(is_layout(grid));
}

TEST_CASE("slicing: heads are cut, few of them replicated first")
{
    // 8 query heads and 2 of keys and values, two columns each: [q 0:16 | k 16:20 | v 20:24]
    auto const all = slices_of({1, 24});
    auto const two = all | heads({.dimension = 1, .query = 8, .key_value = 2, .parts = 2});
    CHECK(two.parts[1] == std::vector<nd_box>{{{0, 1}, {8, 16}}, {{0, 1}, {18, 20}}, {{0, 1}, {22, 24}}});
    auto const four = all | heads({.dimension = 1, .query = 8, .key_value = 2, .parts = 4});
    CHECK(four.parts[1] == std::vector<nd_box>{{{0, 1}, {4, 8}}, {{0, 1}, {16, 18}}, {{0, 1}, {20, 22}}});
    CHECK(four.parts[2] == std::vector<nd_box>{{{0, 1}, {8, 12}}, {{0, 1}, {18, 20}}, {{0, 1}, {22, 24}}});
    CHECK(is_layout(four));
    CHECK_THROWS_WITH(all | heads({.dimension = 1, .query = 8, .key_value = 2, .parts = 3}), "heads are cut into parts whose number divides the query heads");
}

TEST_CASE("slicing: Tenplex's map of requests")
{
    // 4 parts of 256 become 2 of 512: part 1 comes from sources 2 and 3 (statetransform tests, computed by hand).
    layout_tensor const tensor{.name = "w", .shape = {1024}};
    auto const from = on(ranks_from(rank_id{0}, 4), collect(tensor_id{0}, slices_of({1024}) | cut({.parts = 4})), {tensor});
    auto const to = on(ranks_from(rank_id{4}, 2), collect(tensor_id{0}, slices_of({1024}) | cut({.parts = 2})), {tensor});
    std::vector<std::pair<rank_id, nd_box>> got;
    for (auto const& move : try_reshard({.from = from, .to = to}).plan.transfers) {
        if (move.to == rank_id{5}) {
            got.emplace_back(move.from, move.box);
        }
    }
    CHECK(got == std::vector<std::pair<rank_id, nd_box>>{{rank_id{2}, {{512, 768}}}, {rank_id{3}, {{768, 1024}}}});
}

TEST_CASE("slicing: flat pieces and shares")
{
    std::vector<layout_tensor> tensors{{.name = "a", .shape = {3, 4}}, {.name = "b", .shape = {5}}, {.name = "c", .shape = {2, 3, 2}}};
    for (int pieces = 1; pieces <= 31; ++pieces) {
        auto const flat_ranges = flat(tensors, pieces);
        auto const layout = on(ranks_from(rank_id{0}, pieces), flat_ranges, tensors);
        CAPTURE(pieces, describe(fault(layout)).view());
        CHECK(!fault(layout));
        std::int64_t most = 0;
        for (auto const& piece : flat_ranges) {
            std::int64_t size = 0;
            for (auto const& part : piece) {
                size += elements(part.box);
            }
            most = std::max(most, size);
        }
        CHECK(most == (29 + pieces - 1) / pieces);
    }
    CHECK(by_shares(0, 10, {3, 1, 1}).sizes == numbers{6, 2, 2});
    CHECK(by_shares(0, 8, {3, 0, 2}).sizes == numbers{5, 0, 3});
}
