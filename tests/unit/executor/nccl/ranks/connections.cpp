// SPDX-License-Identifier: Apache-2.0
// How connections share a device.
#include "executor/nccl/connections.hpp"

#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("connections: kernels of all of them find room at once")
{
    for (int multiprocessors = 0; multiprocessors <= 140; multiprocessors += 7) {
        for (int links = 0; links <= 30; ++links) {
            for (int groups = 0; links + groups <= 30; ++groups) {
                CAPTURE(multiprocessors, links, groups);
                auto const shares = nccl::shares_of(links, groups, multiprocessors);
                REQUIRE(shares.has_value() == (links + groups <= multiprocessors));
                if (!shares) {
                    continue;
                }
                auto const group = shares->group == 0 ? nccl::most_blocks_of_nccl : shares->group;
                CHECK(links * shares->link + groups * group <= multiprocessors);
                CHECK(shares->link >= 1);
                bool const another_would_fit = links * shares->link + groups * (group + 1) <= multiprocessors;
                CHECK((groups == 0 || group == nccl::most_blocks_of_nccl || !another_would_fit));
            }
        }
    }
}

TEST_CASE("connections: a large device limits no group")
{
    CHECK(nccl::shares_of(4, 2, 132)->group == 0);
    CHECK(nccl::shares_of(4, 2, 132)->link == 2);
    CHECK(nccl::shares_of(4, 4, 132)->group == 31);
    CHECK(nccl::shares_of(6, 1, 8)->link == 1);
}
