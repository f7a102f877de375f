// SPDX-License-Identifier: Apache-2.0
// Files of one line: ranks read clock limits while others write them, so a read never finds an empty file.
#include "executor/power/devices/small_file.hpp"

#include <atomic>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo::power;

TEST_CASE("small_file: a reader finds the old value or the new one")
{
    temporary_folder const folder;
    auto const file = folder.write("scaling_max_freq", "3400000\n");
    std::atomic<bool> ends{false};
    std::thread writer([&] {
        for (int k = 0; !ends; ++k) {
            (void)write_small_file(file, k % 2 == 0 ? "800000" : "3400000");
        }
    });
    std::set<double> seen;
    for (int k = 0; k < 20000; ++k) {
        auto const value = read_number_file(file);
        seen.insert(value ? *value : -1.0);
    }
    ends = true;
    writer.join();
    CHECK(seen == std::set<double>{800000.0, 3400000.0});
}

TEST_CASE("small_file: a shorter value leaves nothing of a longer one")
{
    temporary_folder const folder;
    auto const file = folder.write("limit", "123456789\n");
    REQUIRE(write_small_file(file, "7"));
    CHECK(folder.read("limit") == "7\n");
    CHECK(*read_small_file(file) == "7");
}
