// SPDX-License-Identifier: Apache-2.0
// Sets of microbatches against std::set, as laws over random sets; equal sets are equal values.
#include "rheo/topology/microbatch_set.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr microbatch_set of(std::initializer_list<int> members)
{
    microbatch_set result;
    for (auto const m : members) {
        result.insert(microbatch_id{m});
    }
    return result;
}

microbatch_set of(std::set<int> const& members)
{
    microbatch_set result;
    for (auto const m : members) {
        result.insert(microbatch_id{m});
    }
    return result;
}

std::set<int> random_members(std::mt19937& draw)
{
    int const below = 1 + static_cast<int>(draw() % 200);
    int const first = static_cast<int>(draw() % 3) * static_cast<int>(draw() % 100);
    std::set<int> members;
    for (auto count = draw() % 40; count > 0; --count) {
        members.insert(first + static_cast<int>(draw() % static_cast<unsigned>(below)));
    }
    return members;
}

}  // namespace

static_assert(of({}).empty() && of({}).size() == 0);
static_assert(of({1, 63, 64}).size() == 3 && of({64}).contains(microbatch_id{64}) && !of({64}).contains(microbatch_id{0}));
static_assert(of({3, 1}) == of({1, 3, 1}));
static_assert((of({1}) | of({70})) == of({1, 70}) && (of({70}) | of({1})) == of({1, 70}));
static_assert(disjoint(of({1, 70}), of({2, 71})) && !disjoint(of({1, 70}), of({70})) && disjoint(of({}), of({})));
static_assert(complement(of({0, 2}), 4) == of({1, 3}) && complement(of({}), 0).empty());
static_assert(of({6400}).words.size() == 1 && of({6400}) != of({0}) && (of({6400}) | of({6463})).words.size() == 1);  // grows with what is in it
static_assert([] {
    auto set = of({500});
    set.clear();
    return set == microbatch_set{};
}());

TEST_CASE("microbatch_set: behaves as a set with value equality")
{
    std::mt19937 draw{1};
    for (int round = 0; round < 500; ++round) {
        auto const a = random_members(draw);
        auto const b = random_members(draw);
        auto const x = of(a);
        auto const y = of(b);
        REQUIRE((x == y) == (a == b));
        REQUIRE(x.size() == static_cast<int>(a.size()));
        REQUIRE(x.empty() == a.empty());
        for (int m = 0; m < 410; ++m) {
            REQUIRE(x.contains(microbatch_id{m}) == (a.count(m) == 1));
        }
        std::set<int> both = a;
        both.insert(b.begin(), b.end());
        REQUIRE((x | y) == of(both));
        REQUIRE((x | y) == (y | x));
        REQUIRE((x | x) == x);
        REQUIRE(disjoint(x, y) == std::none_of(a.begin(), a.end(), [&](int m) { return b.count(m) == 1; }));
        int const count = 1 + static_cast<int>(draw() % 400);
        std::set<int> missing;
        for (int m = 0; m < count; ++m) {
            if (a.count(m) == 0) {
                missing.insert(m);
            }
        }
        auto const rest = complement(x, count);
        REQUIRE(rest == of(missing));
        REQUIRE(disjoint(rest, x));
        REQUIRE(complement(x | rest, count).empty());
        REQUIRE((x.empty() || (x.words.front() != 0 && x.words.back() != 0)));
        REQUIRE((rest.empty() || (rest.words.front() != 0 && rest.words.back() != 0)));
    }
}
