// SPDX-License-Identifier: Apache-2.0
// Repairs: the local rules by themselves, where they fall short, and that a repair never does.
#include <algorithm>
#include <numeric>
#include <random>

#include "rheo/pipeline/repair.hpp"
#include "support/catch.hpp"
#include "unit/rheo/pipeline/losses.hpp"

using namespace rheo;

namespace {

/// Pipelines of these sizes, ranks numbered through.
std::vector<pipeline_instance> pipelines_of(template_set_value const& ready, std::vector<int> const& sizes)
{
    std::vector<pipeline_instance> pipelines;
    int rank = 0;
    for (auto const n : sizes) {
        pipelines.push_back({template_of_size(ready, n).cuts, {}});
        for (int s = 0; s < n; ++s) {
            pipelines.back().stages.push_back({rank_id{rank++}});
        }
    }
    return pipelines;
}

rank_groups groups_of(std::vector<int> const& sizes, std::vector<int> const& lost)
{
    rank_groups groups;
    int rank = 0;
    for (std::size_t p = 0; p < sizes.size(); ++p) {
        groups.emplace_back();
        for (int s = 0; s < sizes[p]; ++s, ++rank) {
            if (s < sizes[p] - lost[p]) {
                groups.back().push_back(rank_id{rank});
            }
        }
    }
    return groups;
}

std::vector<int> sizes_after(std::vector<int> const& sizes, std::vector<int> const& lost, int smallest)
{
    std::vector<int> result;
    for (auto const& group : apply_local_rules(groups_of(sizes, lost), smallest)) {
        result.push_back(static_cast<int>(group.size()));
    }
    return result;
}

constexpr std::vector<std::size_t> borrowed_by_the_compiler()
{
    auto const groups = apply_local_rules({{rank_id{0}}, {rank_id{2}, rank_id{3}, rank_id{4}, rank_id{5}}}, 2);
    return {groups[0].size(), groups[1].size()};
}
static_assert(borrowed_by_the_compiler() == std::vector<std::size_t>{2, 3});

}  // namespace

TEST_CASE("repair: local rules: keep, shrink, borrow, merge")
{
    CHECK(sizes_after({3, 4}, {0, 1}, 2) == std::vector<int>{3, 3});
    CHECK(sizes_after({2, 4, 5}, {1, 0, 0}, 2) == std::vector<int>{2, 4, 4});
    CHECK(sizes_after({2, 2, 2}, {1, 1, 0}, 2) == std::vector<int>{2, 2});      // both halves make one
    CHECK(sizes_after({2, 2, 2}, {1, 0, 0}, 2) == std::vector<int>{2 + 1, 2});  // the half joins another
    CHECK(sizes_after({2, 3}, {2, 0}, 2) == std::vector<int>{3});               // no rank is left to borrow for
    CHECK(apply_local_rules({{rank_id{0}}, {rank_id{1}, rank_id{2}, rank_id{3}}}, 2) == rank_groups{{rank_id{0}, rank_id{3}}, {rank_id{1}, rank_id{2}}});
    CHECK_THROWS_AS(apply_local_rules({{rank_id{0}}}, 2), precondition_error);
    CHECK_THROWS_AS(apply_local_rules({}, 2), precondition_error);
}

TEST_CASE("repair: better than local rules in 10,963 cases")
{
    auto const model = make_job(18);
    int cases = 0;
    int rules_short = 0;
    int rules_slower = 0;
    int rules_dearer = 0;
    int repair_short = 0;
    int repair_slower = 0;
    int repair_dearer = 0;
    int as_it_was = 0;
    for_each_loss(model, [&](loss_case const& of) {
        auto const by_rules = sizes_after(of.sizes, of.lost, of.smallest);
        auto const before = pipelines_of(of.ready, of.sizes);
        recomposition_request const request{.failures = of.failures, .microbatches = 64};
        auto const answer = repair(before, of.survivors, of.ready, model.tensors, request);
        auto const local = repair_locally(before, of.survivors, of.ready, model.tensors, request);
        auto const quickest = instantiate(of.ready, {static_cast<int>(of.survivors.size()), of.failures, 64})->time;
        ++cases;
        rules_short += static_cast<int>(by_rules.size()) < of.failures + 1 ? 1 : 0;
        CHECK(local.has_value() == (static_cast<int>(by_rules.size()) >= of.failures + 1));
        rules_slower += local && local->time > quickest ? 1 : 0;
        rules_dearer += local && local->time == answer->time && local->moved > answer->moved ? 1 : 0;
        repair_short += static_cast<int>(answer->pipelines.size()) < of.failures + 1 || answer->degraded || !answer->spares.empty() ? 1 : 0;
        repair_slower += answer->time > quickest ? 1 : 0;
        repair_dearer += local && local->time == answer->time && local->moved < answer->moved ? 1 : 0;
        as_it_was += answer->rebuilt ? 0 : 1;
    });
    CHECK(cases == 10963);
    CHECK(rules_short == 785);
    CHECK(rules_slower > 500);
    CHECK(rules_dearer > 500);
    CHECK(repair_short == 0);
    CHECK(repair_slower == 0);
    CHECK(repair_dearer == 0);
    CHECK(as_it_was > 500);
}

TEST_CASE("repair: 2, 2, 4 with f = 2; five of 3 with f = 3")
{
    auto const model = make_job(8);
    auto const two = plan_templates(model.times, {2, 4});
    auto const first = repair(pipelines_of(two, {2, 2, 4}), survivors_of(two, {2, 2, 4}, {2, 0, 0}), two, model.tensors, {.failures = 2, .microbatches = 12});
    CHECK(sizes_of(*first) == std::vector<int>{2, 2, 2});
    CHECK(first->rebuilt);
    auto const three = plan_templates(model.times, {3, 6});
    std::vector<int> const fives(5, 3);
    auto const second =
        repair(pipelines_of(three, fives), survivors_of(three, fives, {1, 1, 1, 0, 0}), three, model.tensors, {.failures = 3, .microbatches = 16});
    CHECK(sizes_of(*second) == std::vector<int>{3, 3, 3, 3});
    CHECK(second->rebuilt);
}

TEST_CASE("repair: healthy pipelines stay; a spare fills in")
{
    auto const model = make_job(9);
    auto const ready = plan_templates(model.times, {2, 6});
    auto const before = pipelines_of(ready, {3, 4});
    recomposition_request const request{.failures = 1, .microbatches = 8};
    auto survivors = survivors_of(ready, {3, 4}, {0, 1});
    auto const smaller = repair(before, survivors, ready, model.tensors, request);
    CHECK_FALSE(smaller->rebuilt);
    CHECK(sizes_of(*smaller) == std::vector<int>{3, 3});
    CHECK(smaller->pipelines[0] == before[0]);

    survivors.push_back(holder(7, {layer_id{0}, layer_id{0}}));
    auto const refilled = repair(before, survivors, ready, model.tensors, request);
    CHECK(sizes_of(*refilled) == std::vector<int>{3, 4});
    CHECK(refilled->pipelines[1].cuts == before[1].cuts);
    CHECK(refilled->pipelines[1].stages.back() == std::vector<rank_id>{rank_id{7}});  // all others hold what they need
    CHECK(refilled->spares.empty());

    survivors.push_back(holder(8, {layer_id{0}, layer_id{0}}));
    auto const waiting = repair(before, survivors, ready, model.tensors, request, {.reserved_spares = 1});
    CHECK(waiting->pipelines == refilled->pipelines);
    CHECK(waiting->spares == std::vector<rank_id>{rank_id{8}});
}

TEST_CASE("repair: as many pipelines as a full rebuild")
{
    std::mt19937 draw{6};
    int local = 0;
    for (int round = 0; round < 400; ++round) {
        auto const model = make_job(8);
        auto const smallest = 1 + static_cast<int>(draw() % 3);
        auto const ready = plan_templates(model.times, {smallest, 8});
        std::vector<int> sizes;
        std::vector<int> lost;
        for (auto count = 1 + draw() % 4; count > 0; --count) {
            sizes.push_back(smallest + static_cast<int>(draw() % 4));
            lost.push_back(static_cast<int>(draw() % 3) % (sizes.back() + 1));
        }
        auto const survivors = survivors_of(ready, sizes, lost);
        if (survivors.empty()) {
            continue;
        }
        recomposition_request const request{.failures = static_cast<int>(draw() % 3), .microbatches = 1 + static_cast<int>(draw() % 9)};
        auto const answer = repair(pipelines_of(ready, sizes), survivors, ready, model.tensors, request);
        auto const whole = recompose(survivors, ready, model.tensors, request);
        CAPTURE(sizes, lost, smallest, request.failures, request.microbatches);
        REQUIRE(answer.error() == whole.error());
        if (!answer) {
            continue;
        }
        REQUIRE(answer->degraded == whole->degraded);
        auto const fit = std::min<std::size_t>(static_cast<std::size_t>(request.failures) + 1, survivors.size() / static_cast<std::size_t>(smallest));
        REQUIRE(answer->pipelines.size() >= fit);
        std::set<rank_id> seen(answer->spares.begin(), answer->spares.end());
        std::int64_t missed = 0;
        for (auto const& pipeline : answer->pipelines) {
            for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
                REQUIRE(seen.insert(pipeline.stages[s].front()).second);
                for (auto const& survivor : survivors) {
                    if (survivor.rank == pipeline.stages[s].front()) {
                        missed += missing(survivor, layers_of(pipeline.cuts, stage_id{static_cast<int>(s)}), model.tensors);
                    }
                }
            }
        }
        REQUIRE(seen.size() == survivors.size());
        REQUIRE(missed == answer->moved.count);
        REQUIRE(std::accumulate(answer->shares.begin(), answer->shares.end(), 0) == request.microbatches);
        local += !answer->rebuilt ? 1 : 0;
    }
    CHECK(local > 100);
}

TEST_CASE("repair: of many ranks, few are placed")
{
    auto const model = make_job(8);
    auto const ready = plan_templates(model.times, {3, 4});
    recomposition_request const request{.failures = 1, .microbatches = 4000};
    auto const sizes = instantiate(ready, {650, request.failures, request.microbatches})->sizes;
    auto const before = pipelines_of(ready, sizes);
    auto const holdings = survivors_of(ready, sizes, std::vector<int>(sizes.size(), 0));
    for (auto const& lost : {std::vector{7}, std::vector{500}, std::vector{0, 1, 649}, std::vector{3, 4, 300, 301, 302, 400}}) {
        std::vector<rank_holdings> survivors;
        for (auto const& holds : holdings) {
            if (std::find(lost.begin(), lost.end(), holds.rank.value) == lost.end()) {
                survivors.push_back(holds);
            }
        }
        auto const next = repair(before, survivors, ready, model.tensors, request, {.redo_step = true});
        REQUIRE(next);
        std::vector<rank_id> placed = next->spares;
        std::size_t same = 0;
        for (auto const& pipeline : next->pipelines) {
            auto const ranks = ranks_of(pipeline);
            placed.insert(placed.end(), ranks.begin(), ranks.end());
            same += std::count(before.begin(), before.end(), pipeline) > 0 ? 1U : 0U;
            CHECK(pipeline == make_instance(template_of_size(ready, static_cast<int>(ranks.size())), ranks));
        }
        std::sort(placed.begin(), placed.end());
        std::vector<rank_id> all;
        for (auto const& holds : survivors) {
            all.push_back(holds.rank);
        }
        CHECK(placed == all);
        CHECK(std::is_sorted(next->pipelines.begin(), next->pipelines.end(), [](auto const& a, auto const& b) { return a.stages.size() < b.stages.size(); }));
        CHECK(next->rebuilt);
        CHECK(same >= before.size() - 4 * lost.size() - 4);
        auto const quickest = instantiate(ready, {static_cast<int>(survivors.size()), request.failures, request.microbatches});
        REQUIRE(quickest);
        CHECK(next->time >= quickest->time);
        CHECK(next->time <= quickest->time * 1.05);
    }
}
