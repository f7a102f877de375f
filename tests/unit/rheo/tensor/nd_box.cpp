// SPDX-License-Identifier: Apache-2.0
// Set algebra on boxes, element by element.
#include "rheo/tensor/nd_box.hpp"

#include <limits>
#include <random>
#include <set>

#include "support/catch.hpp"

using namespace rheo;

static_assert(elements(nd_box{{0, 3}, {2, 6}}) == 12);
static_assert(is_empty(nd_box{{0, 3}, {2, 2}}) && is_empty(nd_box{}));
static_assert(whole({4, 5}) == nd_box{{0, 4}, {0, 5}});
static_assert(whole({}) == nd_box{{0, 1}});
static_assert(shape_of(nd_box{{1, 4}, {2, 4}}) == nd_shape{3, 2});
static_assert(intersection(nd_box{{0, 3}, {0, 3}}, nd_box{{1, 5}, {2, 9}}) == nd_box{{1, 3}, {2, 3}});
static_assert(contains(nd_box{{0, 3}}, nd_box{{1, 3}}) && !contains(nd_box{{0, 3}}, nd_box{{1, 4}}));
static_assert(difference(nd_box{{0, 4}, {0, 4}}, nd_box{{1, 3}, {1, 3}}).size() == 4);
static_assert(difference(nd_box{{0, 4}}, nd_box{{0, 4}}).empty());

namespace {

std::set<std::vector<std::int64_t>> elements_in(nd_box const& box)
{
    std::set<std::vector<std::int64_t>> all;
    for (auto i = box[0].begin; i < box[0].end; ++i) {
        for (auto j = box[1].begin; j < box[1].end; ++j) {
            for (auto k = box[2].begin; k < box[2].end; ++k) {
                all.insert({i, j, k});
            }
        }
    }
    return all;
}

}  // namespace

TEST_CASE("nd_box: difference and intersection by elements")
{
    std::mt19937 draw{3};
    auto const random = [&] {
        nd_box box{{0, 0}, {0, 0}, {0, 0}};
        for (int d = 0; d < 3; ++d) {
            box[d].begin = draw() % 4;
            box[d].end = box[d].begin + draw() % 4;
        }
        return box;
    };
    for (int round = 0; round < 500; ++round) {
        auto const a = random();
        auto const b = random();
        auto const in_a = elements_in(a);
        auto const in_b = elements_in(b);
        std::set<std::vector<std::int64_t>> rest;
        std::size_t count = 0;
        for (auto const& box : difference(a, b)) {
            auto const part = elements_in(box);
            count += part.size();
            rest.insert(part.begin(), part.end());
        }
        auto const common = elements_in(intersection(a, b));
        REQUIRE(count == rest.size());
        for (auto const& e : in_a) {
            REQUIRE(rest.count(e) + in_b.count(e) == 1);
            REQUIRE(common.count(e) == in_b.count(e));
        }
        REQUIRE(rest.size() + common.size() == in_a.size());
        REQUIRE(intersects(a, b) == !common.empty());
        REQUIRE(contains(b, a) == (common.size() == in_a.size()));
    }
}

TEST_CASE("nd_box: too many elements are no number")
{
    auto const most = std::numeric_limits<std::int64_t>::max();
    CHECK(count_elements(whole({most})) == most);
    CHECK(!count_elements(whole({most, 2})));
    CHECK(count_elements(whole({most, 2, 0})) == 0);
    CHECK_THROWS_WITH(elements(whole({most, 2})), "a box has more elements than 64 bits can count");
    CHECK_THROWS_WITH((nd_box{{}, {}, {}, {}, {}, {}, {}, {}, {}}), "a box has at most eight dimensions");
    CHECK(to_string(nd_box{{0, 4}, {8, 16}}) == "[0:4, 8:16]");
}
