// SPDX-License-Identifier: Apache-2.0
// A contract is a sentence: thrown at run time, and no constant expression when it is broken.
#include "rheo/units/expects.hpp"

#include <type_traits>

#include "support/catch.hpp"

namespace {

constexpr int half(int even)
{
    rheo::expects(even % 2 == 0, "half of an odd number is not whole");
    return even / 2;
}

template <int N>
concept halves = requires { typename std::integral_constant<int, half(N)>; };

static_assert(halves<8> && half(8) == 4);
static_assert(!halves<7>);

}  // namespace

TEST_CASE("expects: a broken contract throws its sentence")
{
    CHECK(half(10) == 5);
    CHECK_THROWS_AS(half(3), rheo::precondition_error);
    CHECK_THROWS_WITH(half(3), "half of an odd number is not whole");
}
