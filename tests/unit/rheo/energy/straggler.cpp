// SPDX-License-Identifier: Apache-2.0
// Who is slow: ratios to the median, with patience in both directions; the compiler decides.
#include "rheo/energy/clocks/straggler.hpp"

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr std::vector<rank_id> four() { return {rank_id{0}, rank_id{1}, rank_id{2}, rank_id{3}}; }

/// How often the clocks change over steps in which rank 2 has these ratios and the others 1.
constexpr int changes_over(std::vector<double> const& ratios, stragglers& all)
{
    int changes = 0;
    for (auto const ratio : ratios) {
        std::vector<double> const slowness{1.0, 1.0, ratio, 1.0};
        changes += observe(all, four(), slowness) ? 1 : 0;
    }
    return changes;
}

constexpr int changes_over(std::vector<double> const& ratios)
{
    stragglers all;
    return changes_over(ratios, all);
}

static_assert(changes_over({1.0, 1.05, 0.9, 1.09}) == 0);
static_assert(changes_over({1.5, 1.0, 1.5, 1.0, 1.5}) == 0);  // never twice
static_assert(changes_over({1.5, 1.5, 1.5, 1.52, 1.49}) == 1);
static_assert(changes_over({1.5, 1.5, 1.0, 1.5, 1.0, 1.5}) == 1);  // it stays slow
static_assert(changes_over({1.5, 1.5, 1.07, 1.07, 1.07}) == 2);    // not well yet, but another slowness
static_assert(changes_over({1.5, 1.5, 1.0, 1.0, 1.0}) == 2);
static_assert(changes_over({1.08, 1.12, 1.08, 1.12, 1.08, 1.12}) == 0);

static_assert([] {
    stragglers all;
    changes_over({1.3, 1.3}, all);
    return slow_ranks(all) == std::vector<slow_rank>{{rank_id{2}, 1.3}};
}());

/// A profile that is wrong for all alike makes no rank slow, and of two ranks the slower one is.
static_assert([] {
    stragglers all;
    std::vector<double> const alike{2.0, 2.02, 1.98, 2.0};
    std::vector<double> const one{2.0, 2.0, 2.0, 3.0};
    bool changed = observe(all, four(), alike) || observe(all, four(), alike) || observe(all, four(), one);
    return !changed && observe(all, four(), one) && slow_ranks(all) == std::vector<slow_rank>{{rank_id{3}, 1.5}};
}());
static_assert([] {
    stragglers all;
    std::vector<rank_id> const two{rank_id{4}, rank_id{7}};
    std::vector<double> const slowness{1.2, 1.0};
    return !observe(all, two, slowness) && observe(all, two, slowness) && slow_ranks(all) == std::vector<slow_rank>{{rank_id{4}, 1.2}};
}());

}  // namespace

TEST_CASE("straggler: forgets lost ranks, keeps silent ones")
{
    stragglers all;
    changes_over({1.4, 1.4}, all);
    std::vector<double> const silent{1.0, 1.0, 0.0, 1.0};
    CHECK_FALSE(observe(all, four(), silent));
    CHECK(slow_ranks(all).size() == 1);
    std::vector<rank_id> const left{rank_id{0}, rank_id{1}, rank_id{3}};
    std::vector<double> const well{1.0, 1.0, 1.0};
    CHECK(observe(all, left, well));
    CHECK(slow_ranks(all).empty());
    CHECK_FALSE(observe(all, left, well));
    CHECK_THROWS(observe(all, left, silent));
}
