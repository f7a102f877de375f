// SPDX-License-Identifier: Apache-2.0
// The whole plan of a recovery on a model of six layers with a tied tensor: losses from a full set of ranks down.
#include "rheo/recover/replan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "rheo/reshard/verify_reshard.hpp"
#include "six_layers.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::vector<layer_id> range(int first, int last)
{
    std::vector<layer_id> result;
    for (int l = first; l < last; ++l) {
        result.push_back(layer_id{l});
    }
    return result;
}

/// Five ranks as 2 + 3 in the middle of a step: microbatches 0..2 are done by the pair, 3 and 4 by the three.
std::vector<rank_holdings> two_and_three(replanning const& known)
{
    std::vector<rank_holdings> holdings;
    std::vector<std::pair<int, int>> const spans{{0, 3}, {3, 6}, {0, 2}, {2, 4}, {4, 6}};
    for (int r = 0; r < 5; ++r) {
        auto const [first, last] = spans[static_cast<std::size_t>(r)];
        rank_holdings holds{rank_id{r}, step_id{9}, range(first, last), {}};
        microbatch_set done;
        for (int m = (r < 2 ? 0 : 3); m < (r < 2 ? 3 : 5); ++m) {
            done.insert(microbatch_id{m});
        }
        for (std::size_t u = 0; u < known.state.uses.size(); ++u) {
            if (detail::holds_layer(holds, known.state.uses[u].layer)) {
                holds.uses.push_back({use_id{static_cast<int>(u)}, done});
            }
        }
        holdings.push_back(holds);
    }
    return holdings;
}

void check_complete(std::vector<rank_holdings> const& holdings, replanning const& known, recovery_plan const& plan)
{
    REQUIRE(plan.error.empty());
    REQUIRE(plan.salvage.lost.empty());
    // After the copies each rank has every tensor of the layers that it is to hold, each from a rank that has it.
    std::set<std::pair<int, int>> has;
    for (auto const& holds : holdings) {
        for (auto const& part : whole_parts(known.state, holds.layers)) {
            has.insert({holds.rank.value, part.tensor.value});
        }
    }
    auto const before = has;
    std::map<std::pair<int, int>, std::int64_t> came;
    for (auto const& t : plan.copies.transfers) {
        CHECK(before.count({t.from.value, t.tensor.value}) == 1);
        came[{t.to.value, t.tensor.value}] += elements(t.box);
    }
    for (auto const& [what, count] : came) {
        CHECK(has.insert(what).second);
        CHECK(count == elements(known.state.tensors[static_cast<std::size_t>(what.second)].shape));
    }
    auto const tensors = layout_tensors(known.state, known.formats);
    auto const from = state_layout(known.state, tensors, layers_by_rank(holdings));
    auto const to = state_layout(known.state, tensors, layers_by_rank(plan.salvage.after));
    CHECK(describe(verify(plan.copies, from, to)).view() == "");
    CHECK(plan.copies.certificate.moved.value == plan.copies.certificate.moved.bound);
    for (auto const& holds : plan.salvage.after) {
        for (auto const& part : whole_parts(known.state, holds.layers)) {
            CHECK(has.count({holds.rank.value, part.tensor.value}) == 1);
        }
    }
    int share = 0;
    for (auto const s : plan.shares) {
        share += s;
    }
    CHECK(share == known.wanted.microbatches);
    CHECK(plan.salvage.work.size() == plan.pipelines.size());
}

}  // namespace

TEST_CASE("replan: any single loss of 2 + 3 leaves two pipelines")
{
    auto const known = six_layers::known_before();
    for (int victim = 0; victim < 5; ++victim) {
        auto holdings = two_and_three(known);
        int lost_pairs = 0;
        for (auto const& use : holdings[static_cast<std::size_t>(victim)].uses) {
            lost_pairs += use.done.size();
        }
        holdings.erase(holdings.begin() + victim);
        auto const plan = replan(holdings, known);
        INFO("victim " << victim);
        check_complete(holdings, known, plan);
        CHECK(plan.pipelines.size() == 2);
        CHECK_FALSE(plan.degraded);
        int missing = 0;
        for (auto const& use : plan.salvage.missing) {
            missing += use.done.size();
        }
        CHECK(missing == 3 * 8 + lost_pairs);  // microbatches 5, 6, 7 were not begun, in eight uses
        CHECK(replan(holdings, known) == plan);
    }
}

TEST_CASE("replan: no rank lost: nothing moves")
{
    auto const known = six_layers::known_before();
    auto const holdings = two_and_three(known);
    auto const plan = replan(holdings, known);
    check_complete(holdings, known, plan);
    CHECK(plan.copies.certificate.moved.value == bytes{0});
    CHECK(plan.salvage.moves.empty());
    CHECK(plan.salvage.after == holdings);
}

TEST_CASE("replan: too few: no plan; no copy: state lost")
{
    auto const known = six_layers::known_before();
    auto all = two_and_three(known);
    std::vector<rank_holdings> one{all[0]};
    one[0].layers = range(0, six_layers::layers);
    CHECK_FALSE(replan(one, known).error.empty());
    std::vector<rank_holdings> const halves{all[0], all[2]};
    auto const plan = replan(halves, known);
    CHECK(plan.salvage.lost == range(3, 6));
    std::vector<rank_holdings> const pair{all[0], all[1]};
    check_complete(pair, known, replan(pair, known));
    CHECK(replan(pair, known).degraded);
}
