// SPDX-License-Identifier: Apache-2.0
// A vector that is a constexpr value, and says when it is full.
#include "rheo/tensor/fixed_vector.hpp"

#include <type_traits>

#include "support/catch.hpp"

using namespace rheo;

namespace {

template <std::size_t Capacity>
constexpr fixed_vector<int, Capacity> of(std::initializer_list<int> items)
{
    fixed_vector<int, Capacity> result;
    for (auto const i : items) {
        result.push_back(i);
    }
    return result;
}

template <std::size_t Capacity>
concept holds_three = requires { typename std::integral_constant<std::size_t, of<Capacity>({1, 2, 3}).size()>; };

constexpr int sum(fixed_vector<int, 4> const& v)
{
    int result = 0;
    for (auto const i : v) {
        result += i;
    }
    return result;
}

constexpr auto stored = of<4>({1, 2, 3});
static_assert(stored.size() == 3 && !stored.empty() && stored[1] == 2 && stored.back() == 3 && sum(stored) == 6);
static_assert(of<4>({}).empty());
static_assert(of<4>({1, 2}) == of<4>({1, 2}) && !(of<4>({1, 2}) == of<4>({1, 3})) && !(of<4>({1, 2}) == of<4>({1, 2, 0})));
static_assert(holds_three<3> && !holds_three<2>);
static_assert([] {
    auto v = of<2>({1});
    v[0] = 5;
    return v[0] == 5 && v.end() - v.begin() == 1;
}());

}  // namespace

TEST_CASE("fixed_vector: a full fixed vector refuses one more")
{
    auto v = of<2>({1, 2});
    CHECK_THROWS_WITH(v.push_back(3), Catch::Matchers::ContainsSubstring("full"));
    CHECK(v == of<2>({1, 2}));
}
