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
                CHECK(links * shares->link + groups * shares->group <= multiprocessors);
                CHECK((shares->link >= 1 && shares->group >= 1 && shares->group <= nccl::most_blocks_of_nccl));
                bool const another_would_fit = links * shares->link + groups * (shares->group + 1) <= multiprocessors;
                CHECK((groups == 0 || shares->group == nccl::most_blocks_of_nccl || !another_would_fit));
            }
        }
    }
}

TEST_CASE("connections: a large device limits no group")
{
    CHECK(nccl::shares_of(4, 2, 132)->group == 32);
    CHECK(nccl::shares_of(4, 2, 132)->link == 2);
    CHECK(nccl::shares_of(4, 4, 132)->group == 31);
    CHECK(nccl::shares_of(6, 1, 8)->link == 1);
}
