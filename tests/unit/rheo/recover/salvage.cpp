// SPDX-License-Identifier: Apache-2.0
// Laws on random small jobs (three layers, the first and the last with a tied tensor, a loss), then examples.
#include "rheo/recover/salvage.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr int layers = 3;

collection three_layers()
{
    auto const l = [](int i) { return layer_id{i}; };
    auto const u = [](int i) { return use_id{i}; };
    return {{{"embedding", {4, 2}, {}, false, true, {l(0), l(2)}, {u(0), u(3)}},
             {"a", {2, 2}, {}, false, true, {l(1)}, {u(1)}},
             {"b", {2, 2}, {}, false, true, {l(2)}, {u(2)}},
             {"loss", {1, 1}, {}, false, false, {l(2)}, {u(4)}}},
            {{tensor_id{0}, l(0), 0}, {tensor_id{1}, l(1), 0}, {tensor_id{2}, l(2), 0}, {tensor_id{0}, l(2), 1}, {tensor_id{3}, l(2), -1}}};
}

/// A small deterministic source of numbers (a linear congruence); the cases are the same everywhere.
struct numbers {
    std::uint64_t state;

    int below(int n)
    {
        state = state * 6364136223846793005U + 1442695040888963407U;
        return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(n));
    }
};

pipeline_instance pipeline(std::vector<int> const& cuts, std::vector<int> const& ranks)
{
    pipeline_instance result;
    for (auto const c : cuts) {
        result.cuts.push_back(layer_id{c});
    }
    for (auto const r : ranks) {
        result.stages.push_back({rank_id{r}});
    }
    return result;
}

struct random_case {
    collection state = three_layers();
    std::vector<rank_holdings> holdings;
    std::vector<pipeline_instance> pipelines;
    std::vector<int> shares;
    int microbatches;
    int slices;

    explicit random_case(numbers draw, int cut = 1) : microbatches{1 + draw.below(6)}, slices{cut}
    {
        int const ranks = 1 + draw.below(5);
        for (int r = 0; r < ranks; ++r) {
            holdings.push_back({rank_id{2 * r}, step_id{5}, {}, {}});
        }
        for (int layer = 0; layer < layers; ++layer) {
            int const sure = draw.below(ranks);
            for (int r = 0; r < ranks; ++r) {
                if (r == sure || draw.below(2) == 0) {
                    holdings[static_cast<std::size_t>(r)].layers.push_back(layer_id{layer});
                }
            }
        }
        for (int use = 0; use < 5; ++use) {
            std::vector<std::size_t> holders;
            for (std::size_t r = 0; r < holdings.size(); ++r) {
                if (detail::holds_layer(holdings[r], state.uses[static_cast<std::size_t>(use)].layer)) {
                    holders.push_back(r);
                    holdings[r].uses.push_back({use_id{use}, {}});
                }
            }
            for (int m = 0; m < microbatches * slices; ++m) {
                if (draw.below(3) != 0) {
                    auto const who = holders[static_cast<std::size_t>(draw.below(static_cast<int>(holders.size())))];
                    holdings[who].uses.back().done.insert(microbatch_id{m});
                }
            }
        }
        std::vector<int> places;
        for (int r = 0; r < ranks; ++r) {
            places.insert(places.begin() + draw.below(r + 1), 2 * r);
        }
        while (!places.empty() && (pipelines.empty() || draw.below(4) != 0)) {
            int const stages = std::min({1 + draw.below(3), static_cast<int>(places.size()), layers});
            std::vector<int> const cuts = stages == 1 ? std::vector{0, 3} : stages == 3 ? std::vector{0, 1, 2, 3} : std::vector{0, 1 + draw.below(2), 3};
            std::vector<int> mine(places.end() - stages, places.end());
            places.resize(places.size() - static_cast<std::size_t>(stages));
            if (stages == 2 && draw.below(2) == 0) {  // the model twice, in opposite directions
                mine.insert(mine.end(), {mine[1], mine[0]});
            } else if (stages == 3 && draw.below(2) == 0) {  // the first and the last stage on one rank
                places.push_back(mine[2]);
                mine[2] = mine[0];
            }
            pipelines.push_back(pipeline(cuts, mine));
            shares.push_back(pipelines.size() == 1 ? 1 + draw.below(3) : draw.below(4));
        }
    }

    salvage_request request() const { return {holdings, &state, pipelines, shares, layers, microbatches, slices}; }
    int items() const { return microbatches * slices; }
};

using ledger = std::map<std::pair<int, int>, int>;  // (use, item) -> how often it counts

ledger count(std::vector<rank_holdings> const& all, int items)
{
    ledger result;
    for (auto const& holds : all) {
        for (auto const& use : holds.uses) {
            for (int m = 0; m < items; ++m) {
                result[{use.use.value, m}] += use.done.contains(microbatch_id{m}) ? 1 : 0;
            }
        }
    }
    return result;
}

}  // namespace

TEST_CASE("salvage: each contribution counts exactly once")
{
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
        random_case const job{numbers{seed}, 1 + static_cast<int>(seed % 3)};
        auto const plan = salvage(job.request());
        REQUIRE(plan.lost.empty());
        auto const before = count(job.holdings, job.items());
        auto total = count(plan.after, job.items());
        INFO("case " << seed << ", " << job.slices << " slices");
        REQUIRE(before == [&] {  // salvage loses and invents nothing, and books all uses of held layers
            auto same = before;
            for (auto& [pair, n] : same) {
                n = total[pair];
            }
            return same;
        }());
        int made = 0;
        int missing = 0;
        for (auto const& use : plan.missing) {
            missing += use.done.size();
        }
        std::vector<int> runs(static_cast<std::size_t>(job.microbatches));
        for (auto const& row : plan.work) {
            for (auto const work : row) {
                ++runs[at(work.microbatch)];
                bool needed_this_deep = false;
                for (std::size_t u = 0; u < job.state.uses.size(); ++u) {
                    use_id const use{static_cast<int>(u)};
                    for (int slice = 0; slice < job.slices; ++slice) {
                        microbatch_id const item{work.microbatch.value * job.slices + slice};
                        if (job.state.uses[u].layer >= work.deepest && misses(plan, use, item)) {
                            ++total[{use.value, item.value}];
                            ++made;
                            needed_this_deep = needed_this_deep || job.state.uses[u].layer == work.deepest;
                        }
                    }
                }
                REQUIRE(needed_this_deep);
            }
        }
        REQUIRE(made == missing);
        REQUIRE(std::all_of(total.begin(), total.end(), [](auto const& entry) { return entry.second == 1; }));
        REQUIRE(std::all_of(runs.begin(), runs.end(), [](int n) { return n <= 1; }));
    }
}

TEST_CASE("salvage: accumulators move to the new runner only")
{
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        random_case const job{numbers{seed + 10'000}};
        auto const plan = salvage(job.request());
        REQUIRE(plan.lost.empty());
        auto const find = [&](rank_id rank) -> rank_holdings const& {
            return *std::find_if(plan.after.begin(), plan.after.end(), [&](auto const& h) { return h.rank == rank; });
        };
        for (auto const& move : plan.moves) {
            auto const layer = job.state.uses[at(move.use)].layer;
            REQUIRE_FALSE(detail::holds_layer(find(move.from), layer));
            REQUIRE(detail::holds_layer(find(move.to), layer));
            REQUIRE_FALSE(move.done.empty());
        }
        for (auto const& holds : plan.after) {
            REQUIRE(holds.version == step_id{5});
            REQUIRE(std::is_sorted(holds.layers.begin(), holds.layers.end()));
            for (auto const& use : holds.uses) {
                REQUIRE(detail::holds_layer(holds, job.state.uses[at(use.use)].layer));
            }
        }
    }
}

TEST_CASE("salvage: an empty step is dealt by shares")
{
    auto const state = three_layers();
    std::vector<rank_holdings> const holdings{
        {rank_id{0}, {}, {layer_id{0}, layer_id{1}, layer_id{2}}, {}}, {rank_id{1}, {}, {layer_id{0}, layer_id{1}, layer_id{2}}, {}}, {rank_id{2}, {}, {}, {}}};
    std::vector const pipelines{pipeline({0, 3}, {0}), pipeline({0, 3}, {1}), pipeline({0, 3}, {2})};
    for (std::vector<int> const& shares : {std::vector{3, 5, 0}, std::vector{1, 6, 1}, std::vector{0, 0, 8}, std::vector{2, 3, 3}}) {
        auto const plan = salvage({holdings, &state, pipelines, shares, layers, 8});
        for (std::size_t p = 0; p < 3; ++p) {
            CHECK(plan.work[p].size() == static_cast<std::size_t>(shares[p]));
        }
    }
}

TEST_CASE("salvage: microbatches rerun only as deep as needed")
{
    auto const state = three_layers();
    microbatch_set both;
    both.insert(microbatch_id{0});
    both.insert(microbatch_id{1});
    microbatch_set one;
    one.insert(microbatch_id{0});
    std::vector<layer_id> const everything{layer_id{0}, layer_id{1}, layer_id{2}};
    std::vector<rank_holdings> const holdings{
        {rank_id{4}, {}, everything, {{use_id{0}, both}, {use_id{1}, one}, {use_id{2}, {}}, {use_id{3}, both}, {use_id{4}, both}}}};
    auto const plan = salvage({holdings, &state, std::vector{pipeline({0, 3}, {4})}, std::vector{2}, layers, 2});
    CHECK(plan.work == std::vector<std::vector<microbatch_work>>{{{microbatch_id{0}, layer_id{2}}, {microbatch_id{1}, layer_id{1}}}});
    CHECK(plan.moves.empty());
    CHECK_FALSE(misses(plan, use_id{1}, microbatch_id{0}));
    CHECK(misses(plan, use_id{1}, microbatch_id{1}));
}

TEST_CASE("salvage: moves are spread over the new holders")
{
    auto const state = three_layers();
    microbatch_set one;
    one.insert(microbatch_id{0});
    microbatch_set two;
    two.insert(microbatch_id{1});
    std::vector<rank_holdings> const holdings{{rank_id{0}, {}, {layer_id{1}}, {{use_id{1}, one}}},
                                              {rank_id{1}, {}, {layer_id{1}}, {{use_id{1}, two}}},
                                              {rank_id{2}, {}, {layer_id{0}, layer_id{2}}, {}},
                                              {rank_id{3}, {}, {layer_id{0}, layer_id{2}}, {}}};
    std::vector const pipelines{pipeline({0, 3}, {2}), pipeline({0, 3}, {3})};
    auto const plan = salvage({holdings, &state, pipelines, std::vector{1, 1}, layers, 2});
    REQUIRE(plan.moves.size() == 2);
    CHECK(plan.moves[0] == accumulator_move{use_id{1}, rank_id{0}, rank_id{2}, one});
    CHECK(plan.moves[1] == accumulator_move{use_id{1}, rank_id{1}, rank_id{3}, two});
    CHECK(plan.after[0].layers.empty());
}

TEST_CASE("salvage: lost: a tensor without any holder")
{
    auto const state = three_layers();
    auto const lost = [&](std::vector<layer_id> held) {
        std::vector<rank_holdings> const holdings{{rank_id{0}, {}, std::move(held), {}}};
        return salvage({holdings, &state, {}, {}, layers, 1}).lost;
    };
    CHECK(lost({layer_id{0}, layer_id{1}, layer_id{2}}).empty());
    CHECK(lost({layer_id{1}, layer_id{2}}).empty());  // the first layer is all embedding, which the last one has
    CHECK(lost({layer_id{0}, layer_id{1}}) == std::vector{layer_id{2}});
    CHECK(lost({layer_id{0}, layer_id{2}}) == std::vector{layer_id{1}});
    CHECK(lost({layer_id{1}}) == std::vector{layer_id{0}, layer_id{2}});
}

TEST_CASE("salvage: books that overlap are refused")
{
    auto const state = three_layers();
    microbatch_set one;
    one.insert(microbatch_id{0});
    std::vector<layer_id> const everything{layer_id{0}, layer_id{1}, layer_id{2}};
    std::vector<rank_holdings> const holdings{{rank_id{0}, {}, everything, {{use_id{1}, one}}}, {rank_id{1}, {}, everything, {{use_id{1}, one}}}};
    CHECK_THROWS_AS(salvage({holdings, &state, {}, {}, layers, 1}), precondition_error);
}
