// SPDX-License-Identifier: Apache-2.0
// Recomposition: f + 1 pipelines in every case where they fit, and the fewest bytes among all answers.
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/pipeline/recompose.hpp"
#include "support/catch.hpp"
#include "unit/rheo/pipeline/losses.hpp"

using namespace rheo;

namespace {

/// Of two pipelines of two, rank 1 is lost: the compiler plans what the other three do.
constexpr std::vector<rank_id> planned_by_the_compiler()
{
    std::vector<seconds> const times(4, seconds{1});
    std::vector<rank_holdings> const survivors{
        {rank_id{0}, {}, {layer_id{0}, layer_id{1}}, {}}, {rank_id{2}, {}, {layer_id{0}, layer_id{1}}, {}}, {rank_id{3}, {}, {layer_id{2}, layer_id{3}}, {}}};
    std::vector<tensor_bytes> const tensors{{{layer_id{0}, layer_id{3}}, bytes{4}}, {{layer_id{1}}, bytes{1}}, {{layer_id{2}}, bytes{1}}};
    auto const answer = recompose(survivors, plan_templates(times, {2, 3}), tensors, {.failures = 0, .microbatches = 4});
    std::vector<rank_id> ranks;
    for (auto const& stage : answer->pipelines.front().stages) {
        ranks.push_back(stage.front());
    }
    return ranks;
}
static_assert(planned_by_the_compiler() == std::vector<rank_id>{rank_id{0}, rank_id{2}, rank_id{3}});

/// Each survivor once, as a stage or as a spare; stages fit the cuts; bytes and batch add up.
void check_whole(recomposition const& answer, std::vector<rank_holdings> const& survivors, job const& of, int microbatches)
{
    std::set<rank_id> seen(answer.spares.begin(), answer.spares.end());
    std::int64_t moved = 0;
    for (auto const& pipeline : answer.pipelines) {
        REQUIRE(are_cuts(pipeline.cuts));
        REQUIRE(at(pipeline.cuts.back()) == of.times.size());
        REQUIRE(pipeline.stages.size() + 1 == pipeline.cuts.size());
        for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
            REQUIRE(pipeline.stages[s].size() == 1);
            auto const rank = pipeline.stages[s].front();
            REQUIRE(seen.insert(rank).second);
            auto const who = std::find_if(survivors.begin(), survivors.end(), [&](auto const& h) { return h.rank == rank; });
            REQUIRE(who != survivors.end());
            moved += missing(*who, layers_of(pipeline.cuts, stage_id{static_cast<int>(s)}), of.tensors);
        }
    }
    REQUIRE(seen.size() == survivors.size());
    REQUIRE(moved == answer.moved.count);
    REQUIRE(std::accumulate(answer.shares.begin(), answer.shares.end(), 0) == microbatches);
}

/// The fewest bytes of all multisets of sizes with the best time and spares, and of all placings.
std::int64_t fewest_bytes(std::vector<rank_holdings> const& survivors, template_set_value const& ready, job const& of, int failures, int microbatches)
{
    auto const available = sizes_of(ready);
    auto const ranks = static_cast<int>(survivors.size());
    auto const fewest = std::min(failures + 1, ranks / available.front());
    std::optional<std::tuple<std::int64_t, int, std::int64_t>> best;
    std::vector<int> sizes;
    std::function<void(std::size_t, int)> const visit = [&](std::size_t from, int left) {
        auto const pipelines = static_cast<int>(sizes.size());
        if (pipelines >= fewest && pipelines <= std::max(fewest, microbatches)) {
            auto const time = in_whole_nanoseconds(split_batch(costs_of_sizes(ready, sizes), microbatches).time);
            std::vector<layer_span> places;
            for (auto const n : sizes) {
                for (int s = 0; s < n; ++s) {
                    places.push_back(layers_of(template_of_size(ready, n).cuts, stage_id{s}));
                }
            }
            std::vector<std::size_t> order(survivors.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            do {
                std::int64_t moved = 0;
                for (std::size_t i = 0; i < places.size(); ++i) {
                    moved += missing(survivors[order[i]], places[i], of.tensors);
                }
                std::tuple const answer{time, left, moved};
                best = !best || answer < *best ? answer : *best;
            } while (std::next_permutation(order.begin(), order.end()));
        }
        for (auto i = from; i < available.size() && available[i] <= left; ++i) {
            sizes.push_back(available[i]);
            visit(i, left - available[i]);
            sizes.pop_back();
        }
    };
    visit(0, ranks);
    return std::get<2>(*best);
}

}  // namespace

TEST_CASE("recompose: 2, 2, 4 with f = 2 lose both nodes of a 2")
{
    auto const model = make_job(8);
    auto const ready = plan_templates(model.times, {2, 4});
    auto const answer = recompose(survivors_of(ready, {2, 2, 4}, {2, 0, 0}), ready, model.tensors, {.failures = 2, .microbatches = 12});
    CHECK(sizes_of(*answer) == std::vector<int>{2, 2, 2});
    CHECK(!answer->degraded);
    CHECK(answer->spares.empty());
    CHECK(answer->shares == std::vector<int>{4, 4, 4});
}

TEST_CASE("recompose: five of 3 with f = 3 lose three nodes")
{
    auto const model = make_job(8);
    auto const ready = plan_templates(model.times, {3, 6});
    auto const survivors = survivors_of(ready, {3, 3, 3, 3, 3}, {1, 1, 1, 0, 0});
    auto const answer = recompose(survivors, ready, model.tensors, {.failures = 3, .microbatches = 16});
    CHECK(sizes_of(*answer) == std::vector<int>{3, 3, 3, 3});
    check_whole(*answer, survivors, model, 16);
    CHECK(answer->moved.count == 2 * (1005 + 1006 + 1007) + 5000);  // a first and a middle stage become last ones; the first has the tied tensor
}

TEST_CASE("recompose: 10,963 cases end with f + 1 pipelines")
{
    auto const model = make_job(18);
    int cases = 0;
    int short_of = 0;
    int spares = 0;
    for_each_loss(model, [&](loss_case const& of) {
        auto const answer = recompose(of.survivors, of.ready, model.tensors, {.failures = of.failures, .microbatches = 64});
        ++cases;
        short_of += static_cast<int>(answer->pipelines.size()) < of.failures + 1 || answer->degraded ? 1 : 0;
        spares += static_cast<int>(answer->spares.size());
    });
    CHECK(cases == 10963);
    CHECK(short_of == 0);
    CHECK(spares == 0);  // sizes n0 .. N - f n0 cover every number of nodes that is left
}

TEST_CASE("recompose: fewest bytes over all sizes and places")
{
    std::mt19937 draw{5};
    for (int round = 0; round < 250; ++round) {
        auto model = make_job(3 + static_cast<int>(draw() % 5));
        for (auto& tensor : model.tensors) {
            tensor.size = bytes{static_cast<std::int64_t>(draw() % 5)};
        }
        auto const layers = static_cast<int>(model.times.size());
        auto const ready = plan_templates(model.times, {1 + static_cast<int>(draw() % 2), 4});
        std::vector<rank_holdings> survivors;
        for (auto count = 2 + draw() % 5; count > 0; --count) {  // unordered ranks that hold some range, or nothing
            auto const begin = static_cast<int>(draw() % static_cast<unsigned>(layers));
            auto const end = begin + static_cast<int>(draw() % static_cast<unsigned>(layers - begin + 1));
            survivors.push_back(holder(static_cast<int>(3 * count), {layer_id{begin}, layer_id{end}}));
        }
        auto const f = static_cast<int>(draw() % 3);
        auto const microbatches = 1 + static_cast<int>(draw() % 8);
        auto const answer = recompose(survivors, ready, model.tensors, {.failures = f, .microbatches = microbatches});
        CAPTURE(survivors.size(), layers, f, microbatches);
        REQUIRE(answer);
        check_whole(*answer, survivors, model, microbatches);
        REQUIRE(answer->moved.count == fewest_bytes(survivors, ready, model, f, microbatches));
        std::reverse(survivors.begin(), survivors.end());
        REQUIRE(answer == recompose(survivors, ready, model.tensors, {.failures = f, .microbatches = microbatches}));
        for (std::size_t p = 1; p < answer->pipelines.size(); ++p) {
            REQUIRE(answer->pipelines[p - 1].stages.size() <= answer->pipelines[p].stages.size());
        }
    }
}

TEST_CASE("recompose: no loss moves nothing; ranks in order")
{
    auto const model = make_job(9);
    auto const ready = plan_templates(model.times, {2, 6});
    std::vector<rank_holdings> ranks;
    for (int r = 0; r < 5; ++r) {
        ranks.push_back(holder(r, {layer_id{0}, layer_id{0}}));
    }
    auto const first = recompose(ranks, ready, {}, {.failures = 1, .microbatches = 8});
    REQUIRE(first->pipelines.size() == 2);
    CHECK(first->pipelines[0].stages == std::vector<std::vector<rank_id>>{{rank_id{0}}, {rank_id{1}}});
    CHECK(first->pipelines[1].stages == std::vector<std::vector<rank_id>>{{rank_id{2}}, {rank_id{3}}, {rank_id{4}}});
    CHECK(sizes_of(*first) == instantiate(ready, {.ranks = 5, .failures = 1, .microbatches = 8})->sizes);
    ranks = survivors_of(ready, {2, 3}, {0, 0});
    auto const again = recompose(ranks, ready, model.tensors, {.failures = 1, .microbatches = 8});
    CHECK(again->pipelines == first->pipelines);
    CHECK(again->moved == bytes{0});
}

TEST_CASE("recompose: too few pipelines or ranks are reported")
{
    auto const model = make_job(6);
    auto const ready = plan_templates(model.times, {2, 2});
    auto const survivors = survivors_of(ready, {2, 2}, {1, 0});
    auto const answer = recompose(survivors, ready, model.tensors, {.failures = 1, .microbatches = 4});
    REQUIRE(answer);
    CHECK(answer->degraded);
    CHECK(sizes_of(*answer) == std::vector<int>{2});
    CHECK(answer->spares == std::vector<rank_id>{rank_id{2}});  // 0 and 3 hold the two stages; 2 is as good as 0, and higher
    std::vector<rank_holdings> const one{holder(7, {layer_id{0}, layer_id{3}})};
    auto const none = recompose(one, ready, model.tensors, {.failures = 1, .microbatches = 4});
    CHECK(!none);
    CHECK(none.error() == "1 rank is too few: the smallest pipeline template takes 2");
    std::vector<rank_holdings> const twice{one[0], one[0]};
    CHECK_THROWS_AS(recompose(twice, ready, model.tensors, {.failures = 1, .microbatches = 4}), precondition_error);
}
