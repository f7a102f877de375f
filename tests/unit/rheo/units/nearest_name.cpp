// SPDX-License-Identifier: Apache-2.0
// The edit distance is a metric on small words, and the nearest of the known names is found.
#include <array>
#include <string>
#include <vector>

#include "rheo/units/nearest_name.hpp"
#include "support/catch.hpp"

using namespace rheo;

static_assert(edit_distance("kitten", "sitting") == 3);
static_assert(edit_distance("", "abc") == 3 && edit_distance("abc", "abc") == 0);
static_assert(nearest_name("shedule", std::array<std::string_view, 3>{"steps", "schedule", "seed"}) == "schedule");
static_assert(nearest_name("x", array_view<std::string_view const>{}).empty());

TEST_CASE("nearest_name: a metric: symmetric, triangle inequality")
{
    std::vector<std::string> words{""};
    for (std::size_t k = 0; words[k].size() < 3; ++k) {
        for (char const c : {'a', 'b'}) {
            words.push_back(words[k] + c);
        }
    }
    for (auto const& a : words) {
        for (auto const& b : words) {
            CHECK(edit_distance(a, b) == edit_distance(b, a));
            CHECK((edit_distance(a, b) == 0) == (a == b));
            for (auto const& c : words) {
                CHECK(edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c));
            }
        }
    }
}
