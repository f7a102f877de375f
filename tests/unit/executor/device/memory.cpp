// SPDX-License-Identifier: Apache-2.0
#include "executor/device/memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Takes arrays of these sizes at once and gives them back one after the other, the first one last or first.
void take_and_give_back(std::vector<std::size_t> const& sizes, bool first_is_last)
{
    std::vector<array<unsigned char>> all;
    auto const taken = host_memory().take_all(sizes);
    REQUIRE(taken.size() == sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        all.emplace_back(host_memory()).adopt(static_cast<unsigned char*>(taken[i]), sizes[i]);
        CHECK(reinterpret_cast<std::uintptr_t>(taken[i]) % 64 == 0);
        CHECK(std::count(all[i].begin(), all[i].end(), 0) == static_cast<std::ptrdiff_t>(sizes[i]));
        std::fill(all[i].begin(), all[i].end(), static_cast<unsigned char>(i + 1));
    }
    while (!all.empty()) {
        for (auto const& each : all) {
            CHECK(std::count(each.begin(), each.end(), each[0]) == static_cast<std::ptrdiff_t>(each.size()));
        }
        all.erase(first_is_last ? all.end() - 1 : all.begin());
    }
}

}  // namespace

TEST_CASE("memory: arrays taken at once are zeros of their own")
{
    for (bool const first_is_last : {true, false}) {
        take_and_give_back({1, 64, 100'000, 3}, first_is_last);                    // each by itself
        take_and_give_back({1, 5'000'000, 4096, 12'345, 900'001}, first_is_last);  // in large pages
    }
    CHECK(host_memory().take_all({}).empty());
}

TEST_CASE("memory: an array taken with others can be resized")
{
    std::vector<std::size_t> const sizes{3'000'000, 3'000'000};
    auto const taken = host_memory().take_all(sizes);
    array<std::byte> first{host_memory()};
    array<std::byte> second{host_memory()};
    first.adopt(static_cast<std::byte*>(taken[0]), sizes[0]);
    second.adopt(static_cast<std::byte*>(taken[1]), sizes[1]);
    second[7] = std::byte{9};
    first.resize(10);
    CHECK(first[9] == std::byte{0});
    first = std::move(second);
    CHECK(first[7] == std::byte{9});
}

TEST_CASE("memory: more than there is cannot be taken")
{
    std::vector<std::size_t> const sizes{std::size_t{1} << 62U, std::size_t{1} << 62U};
    CHECK_THROWS_AS(host_memory().take_all(sizes), std::bad_alloc);
}
