// SPDX-License-Identifier: Apache-2.0
// Building blocks that meet themselves when they are repeated, and those that do not.
#include "rheo/schedule/transform/building_block.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/schedule/families/v_half.hpp"
#include "rheo/schedule/families/v_min.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("building_block: overlapping block is rejected")
{
    building_block const meets{{0}, {0}, {2}, {5}, 2};
    CHECK_FALSE(repeats(meets, 1));
    CHECK_THROWS_WITH(repeated(meets, 1, 2), "this building block meets itself when it is repeated");
    building_block const fits{{0}, {0}, {1}, {2}, 3};
    CHECK(to_text(repeated(fits, 1, 2)) == "0F0,0I0,0W0,0F1,0I1,0W1\n");
    for (int p = 1; p <= 24; ++p) {
        CHECK(repeats(v_half::block(p), p));
        CHECK(repeats(v_min::block(p), p));
    }
}
