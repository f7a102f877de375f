// SPDX-License-Identifier: Apache-2.0
// What is not the planned step runs at clocks of the plan: at the highest of its stage and kind, never above those of the row.
#include "rheo/energy/clocks/carried_clocks.hpp"

#include <algorithm>

#include "support/catch.hpp"

using namespace rheo;

namespace {

using enum instruction_kind;

constexpr instruction step[] = {{forward, 1, 0}, {forward, 3, 0}, {send_activation, 1, 0}, {forward, 1, 1}, {backward, 1, 0}, {backward, 1, 1}};
constexpr megahertz clocks[] = {{900}, {700}, {1200}, {1410}, {1000}};

constexpr bool holds()
{
    auto const planned = highest_clocks(step, clocks, 4);
    constexpr instruction rest[] = {{receive_activation, 1, 7}, {forward, 1, 7}, {backward, 1, 7}, {forward, 3, 7}, {weight_gradient, 1, 7}, {forward, 7, 7}};
    std::vector<megahertz> const wanted{{1200}, {1410}, {700}, {1410}, {700}};
    return carried_clocks(planned, rest, 4) == wanted && carried_clocks({}, rest, 4).empty() && carried_clocks(planned, array_view{rest}.first(1), 4).empty();
}
static_assert(holds());

}  // namespace

TEST_CASE("carried_clocks: a carried clock is the highest of its kind")
{
    unsigned state = 7;
    auto const below = [&](unsigned limit) { return state = state * 1664525u + 1013904223u, static_cast<int>((state >> 16) % limit); };
    for (int round = 0; round < 200; ++round) {
        std::vector<instruction> row;
        std::vector<megahertz> given;
        for (int i = 0; i < 1 + below(12); ++i) {
            row.push_back({below(2) == 0 ? forward : backward, static_cast<std::int16_t>(below(3)), i});
            given.push_back({100.0 * below(5)});
        }
        auto const planned = highest_clocks(row, given, 3);
        auto shuffled = row;
        std::reverse(shuffled.begin(), shuffled.end());
        shuffled.resize(1 + static_cast<std::size_t>(below(static_cast<unsigned>(shuffled.size()))));
        auto const carried = carried_clocks(planned, shuffled, 3);
        REQUIRE(carried.size() == shuffled.size());
        for (std::size_t k = 0; k < carried.size(); ++k) {
            bool among = false;
            bool above = false;
            for (std::size_t p = 0; p < row.size(); ++p) {
                bool const alike = row[p].kind == shuffled[k].kind && row[p].stage == shuffled[k].stage;
                among = among || (alike && given[p] == carried[k]);
                above = above || (alike && given[p] > carried[k]);
            }
            CHECK(among);
            CHECK_FALSE(above);
        }
    }
}

TEST_CASE("carried_clocks: clocks of another row are rejected")
{
    CHECK_THROWS(highest_clocks(step, array_view{clocks}.first(4), 4));
    CHECK_THROWS(highest_clocks(array_view{step}.first(4), clocks, 4));
}
