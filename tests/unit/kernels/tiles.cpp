// SPDX-License-Identifier: Apache-2.0
#include "kernels/tiles.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"

using rheo::tile_pool;

TEST_CASE("tiles: every tile is computed once, by a pool worker")
{
    for (int const threads : {1, 2, 3, 5}) {
        tile_pool pool{threads};
        CHECK(pool.threads() == threads);
        for (std::int64_t const count : {0, 1, 2, 7, 1000}) {
            std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
            std::atomic<bool> known{true};
            pool.run(count, [&](std::int64_t t, int worker) {
                ++times[static_cast<std::size_t>(t)];
                if (worker < 0 || worker >= threads) {
                    known = false;
                }
            });
            CHECK(known);
            for (auto const& n : times) {
                CHECK(n == 1);
            }
        }
    }
}

TEST_CASE("tiles: results are visible to the caller each run")
{
    tile_pool pool{3};
    std::vector<int> values(64);
    for (int round = 1; round <= 2000; ++round) {
        pool.run(64, [&](std::int64_t t, int) { values[static_cast<std::size_t>(t)] = round; });
        for (int const v : values) {
            if (v != round) {
                FAIL("a tile of round " << round << " was not seen");
            }
        }
    }
}

TEST_CASE("tiles: an exception comes out, and the pool continues")
{
    for (int const threads : {1, 3}) {
        tile_pool pool{threads};
        CHECK_THROWS_AS(pool.run(100,
                                 [](std::int64_t t, int) {
                                     if (t == 41) {
                                         throw std::runtime_error{"tile 41"};
                                     }
                                 }),
                        std::runtime_error);
        std::atomic<int> done{0};
        pool.run(10, [&](std::int64_t, int) { ++done; });
        CHECK(done == 10);
    }
}

TEST_CASE("tiles: scratch is per worker and slot, aligned, kept")
{
    tile_pool pool{2};
    auto const first = pool.scratch(0, 1000);
    CHECK(first.size() == 1000);
    CHECK(pool.scratch(0, 500).data() == first.data());
    CHECK(pool.scratch(1, 500).data() != first.data());
    CHECK(pool.scratch(0, 500, 1).data() != first.data());
    CHECK(reinterpret_cast<std::uintptr_t>(pool.scratch(0, 100'000).data()) % 64 == 0);
    CHECK_THROWS(pool.scratch(2, 8));
    CHECK_THROWS(tile_pool{0});
}
