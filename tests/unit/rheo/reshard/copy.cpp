// SPDX-License-Identifier: Apache-2.0
// The laws of rounds: nothing lost, nothing twice, the budget kept.
#include <algorithm>
#include <map>
#include <random>

#include "rheo/reshard/copy.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

copy sized(int from, int to, int tensor, std::int64_t size) { return {rank_id{from}, rank_id{to}, {tensor_id{tensor}, {0, 1, 0, size}}, bytes{size}}; }

}  // namespace

TEST_CASE("copy: rounds keep the budget of every receiver")
{
    std::mt19937 draw{8};
    for (int round = 0; round < 300; ++round) {
        std::vector<copy> copies;
        for (auto count = draw() % 20; count > 0; --count) {
            copies.push_back(sized(0, 1 + static_cast<int>(draw() % 3), static_cast<int>(count), static_cast<std::int64_t>(1 + draw() % 12)));
        }
        bytes const budget{static_cast<std::int64_t>(1 + draw() % 15)};
        auto const rounds = in_rounds(copies, budget);
        std::size_t total = 0;
        std::map<rank_id, std::vector<bytes>> received;
        for (auto const& one : rounds) {
            REQUIRE(!one.empty());
            total += one.size();
            std::map<rank_id, std::pair<bytes, int>> now;
            std::size_t last = 0;
            for (auto const& c : one) {
                now[c.to].first += c.size;
                now[c.to].second += 1;
                auto const place = static_cast<std::size_t>(std::find(copies.begin(), copies.end(), c) - copies.begin());
                REQUIRE(place < copies.size());
                REQUIRE(place >= last);
                last = place;
            }
            for (auto const& [rank, sum] : now) {
                REQUIRE((sum.first <= budget || sum.second == 1));
                received[rank].push_back(sum.first);
            }
        }
        REQUIRE(total == copies.size());
        for (auto const& [rank, sums] : received) {  // first fit: no two rounds of a receiver would fit into one
            for (std::size_t i = 1; i < sums.size(); ++i) {
                REQUIRE(sums[i - 1] + sums[i] > budget);
            }
        }
    }
}

TEST_CASE("copy: no budget: one round; large copies alone")
{
    std::vector<copy> const copies{sized(0, 1, 0, 3), sized(0, 1, 1, 9), sized(0, 1, 2, 2), sized(0, 2, 1, 9)};
    CHECK(in_rounds(copies, std::nullopt) == std::vector<std::vector<copy>>{copies});
    CHECK(in_rounds({}, std::nullopt).empty());
    CHECK(in_rounds(copies, bytes{5}) == std::vector<std::vector<copy>>{{copies[1], copies[3]}, {copies[0], copies[2]}});
    CHECK_THROWS_AS(in_rounds(copies, bytes{0}), precondition_error);
}
