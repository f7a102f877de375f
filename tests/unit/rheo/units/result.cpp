// SPDX-License-Identifier: Apache-2.0
#include "rheo/units/result.hpp"

#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr result<int> half(int n)
{
    if (n % 2 != 0) {
        return failure{"odd"};
    }
    return n / 2;
}

static_assert(half(4) && half(4).has_value() && *half(4) == 2 && half(4).error().empty());
static_assert(!half(3) && half(3).error() == "odd");
static_assert(half(4) == half(4) && half(4) != half(6) && half(3) != half(4) && half(3) == half(5));

}  // namespace

TEST_CASE("result: a value or the sentence why there is none")
{
    result<std::vector<int>> const some = std::vector{1, 2};
    REQUIRE(some);
    CHECK(some->size() == 2);
    CHECK(*some == std::vector{1, 2});
    CHECK(some.error().empty());
    result<std::vector<int>> const none = failure{"nothing to list"};
    CHECK_FALSE(none);
    CHECK(none.error() == "nothing to list");
    CHECK(some != none);
}

TEST_CASE("result: the value of a failure throws its sentence")
{
    auto const odd = half(3);
    CHECK_THROWS_WITH(*odd, "odd");
    CHECK_THROWS_AS(*odd, precondition_error);
    CHECK_THROWS_AS(result<int>{failure{""}}, precondition_error);
}

TEST_CASE("result: a value that is only moved comes out")
{
    result<std::unique_ptr<int>> made = std::make_unique<int>(7);
    auto const taken = *std::move(made);
    CHECK(*taken == 7);
}
