// SPDX-License-Identifier: Apache-2.0
// Index boxes against sets of elements.
#include "rheo/tensor/box.hpp"

#include <random>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr bool inside(index_box const& box, std::int64_t row, std::int64_t column)
{
    return row >= box.row_begin && row < box.row_end && column >= box.column_begin && column < box.column_end;
}

}  // namespace

static_assert(elements(whole({3, 5})) == 15 && whole({3, 5}) == index_box{0, 3, 0, 5} && elements(index_box{}) == 0);
static_assert(elements(intersection(index_box{0, 2, 0, 5}, index_box{2, 3, 0, 5})) == 0);
static_assert(intersection(index_box{0, 2, 1, 5}, index_box{1, 3, 0, 2}) == index_box{1, 2, 1, 2});
static_assert(elements(index_box{4, 2, 5, 1}) == 0);  // empty in both directions: still no elements
static_assert(elements(tensor_shape{}) == 1 && elements(tensor_shape{50257, 768}) == 38597376 && rows(microbatch_shape{4, 64}) == 256);

TEST_CASE("box: intersection is exact")
{
    std::mt19937 draw{3};
    auto const below = [&](int n) { return static_cast<std::int64_t>(draw() % static_cast<unsigned>(n)); };
    for (int round = 0; round < 2000; ++round) {
        index_box const a{below(7), below(7), below(7), below(7)};
        index_box const b{below(7), below(7), below(7), below(7)};
        auto const both = intersection(a, b);
        std::int64_t of_a = 0;
        std::int64_t of_both = 0;
        for (int r = 0; r < 7; ++r) {
            for (int c = 0; c < 7; ++c) {
                of_a += inside(a, r, c) ? 1 : 0;
                of_both += inside(a, r, c) && inside(b, r, c) ? 1 : 0;
                REQUIRE(inside(both, r, c) == (inside(a, r, c) && inside(b, r, c)));
            }
        }
        REQUIRE(elements(a) == of_a);
        REQUIRE(elements(both) == of_both);
        REQUIRE(intersection(b, a) == both);
        REQUIRE(intersection(a, a) == a);
    }
}
