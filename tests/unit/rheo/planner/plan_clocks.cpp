// SPDX-License-Identifier: Apache-2.0
// Clocks of plans: no time is lost, nothing is drawn in vain, and what is predicted is what a replay at these clocks draws and takes.
// Small plans are compared with all ways to set two clocks.
#include "rheo/planner/plan_clocks.hpp"

#include <array>

#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/simulate/energy.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr watts blocking{80.0};

/// Layers of these weights at clocks of 1400, 1000 and 700 MHz; a backward is two forwards.
profile layers_of_weights(std::vector<double> const& weights)
{
    profile measured;
    for (std::size_t layer = 0; layer < weights.size(); ++layer) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double const work = weights[layer] * (kind == instruction_kind::forward ? 1.0 : 2.0);
            auto const stage = stage_id{static_cast<int>(layer)};
            measured.rows.push_back({rank_id{-1}, stage, kind, {1400.0}, milliseconds(10.0 * work), {4.0 * work}});
            measured.rows.push_back({rank_id{-1}, stage, kind, {1000.0}, milliseconds(13.0 * work), {2.9 * work}});
            measured.rows.push_back({rank_id{-1}, stage, kind, {700.0}, milliseconds(18.0 * work), {2.3 * work}});
        }
    }
    return measured;
}

/// Pipelines of 1F1B: each a list of cuts, on ranks in their order, with so many microbatches.
plan plan_of(std::vector<std::vector<int>> const& cuts, std::vector<int> const& shares)
{
    plan p;
    p.schedule = one_f_one_b{};
    std::int32_t rank = 0;
    for (auto const& list : cuts) {
        auto& pipeline = p.pipelines.emplace_back();
        for (std::size_t k = 0; k < list.size(); ++k) {
            pipeline.cuts.push_back(layer_id{list[k]});
            if (k > 0) {
                pipeline.stages.push_back({rank_id{rank++}});
            }
        }
    }
    p.work = deal(shares);
    return p;
}

chosen_clocks choose(plan const& p, profile const& layers, clock_request const& request, std::vector<slow_rank> const& slow = {},
                     group_exchanges const& exchanges = {})
{
    std::vector<pipeline_frontier> made;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        made.push_back(*make_pipeline_frontier(p, i, layers, request, slow, exchanges));
    }
    std::vector<pipeline_frontier const*> all;
    for (auto const& f : made) {
        all.push_back(&f);
    }
    return *choose_clocks(all, request);
}

struct replayed {
    seconds time;
    joules energy;
};

/// The plan at given clocks, rank by rank from the profile: what it takes, and what its ranks draw until all are done.
replayed replay(plan const& p, profile const& layers, clocks_of_rows const& clocks, std::vector<slow_rank> const& slow = {},
                group_exchanges const& exchanges = {})
{
    replayed result{};
    seconds busy{};  // of all devices, of which each computes its part
    int ranks = 0;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const stages = *profile_of_stages(layers, p.pipelines[i].cuts);
        auto const network = make_event_network(schedule_of(p, i).compute);
        std::vector<seconds> lasts;
        std::vector<std::size_t> next(static_cast<std::size_t>(network.rows));
        auto const groups = groups_of(p.pipelines[i]);
        for (auto const& o : network.operations) {
            auto const& group = groups[static_cast<std::size_t>(o.row)];
            auto const degree = static_cast<int>(group.size());
            auto const most = static_cast<double>((exchanges.grid + degree - 1) / degree) / exchanges.grid;
            auto factor = 1.0;
            for (auto const rank : group) {
                factor = std::max(factor, detail::factor_of(slow, rank));
            }
            seconds exchanged{};
            auto const span = layers_of(p.pipelines[i], stage_id{o.instruction.stage});
            for (auto l = span.begin; degree > 1 && l < span.end; ++l) {
                exchanged += exchanges.by_layer[at(l)][static_cast<std::size_t>(degree) - 2];
            }
            auto const clock = clocks[i][static_cast<std::size_t>(o.row)].at(next[static_cast<std::size_t>(o.row)]++);
            for (auto const& option : options_of(stages, rank_id{-1}, stage_id{o.instruction.stage}, o.instruction.kind)) {
                if (option.clock == clock) {
                    result.energy += option.energy;
                    busy += option.time;  // what a slow rank takes longer it draws as one that waits
                    lasts.push_back((degree > 1 ? option.time * most + exchanged : option.time) * factor);
                }
            }
        }
        REQUIRE(lasts.size() == network.operations.size());
        std::vector<seconds> when(static_cast<std::size_t>(network.events));
        for (auto const& arc : network.arcs) {
            auto const time = arc.operation < 0 ? nanoseconds(static_cast<double>(arc.nanoseconds)) : lasts[static_cast<std::size_t>(arc.operation)];
            auto& end = when[static_cast<std::size_t>(arc.to)];
            end = std::max(end, when[static_cast<std::size_t>(arc.from)] + time);
        }
        result.time = std::max(result.time, when.back());
        ranks += static_cast<int>(ranks_of(p.pipelines[i]).size());
    }
    result.energy += blocking * (result.time * static_cast<double>(ranks) - busy);
    return result;
}

clocks_of_rows all_highest(chosen_clocks const& chosen)
{
    auto clocks = chosen.clocks;
    for (auto& pipeline : clocks) {
        for (auto& row : pipeline) {
            std::fill(row.begin(), row.end(), megahertz{1400.0});
        }
    }
    return clocks;
}

constexpr double tick = 2e-6;  // times are rounded up to microseconds

}  // namespace

TEST_CASE("plan_clocks: saves energy at no loss of time, as predicted")
{
    auto const layers = layers_of_weights({0.5, 1, 1, 1.5, 1, 1, 2});
    auto const p = plan_of({{0, 4, 7}, {0, 2, 4, 7}}, {3, 5});
    std::vector<slow_rank> const slow =
        GENERATE(std::vector<slow_rank>{}, std::vector<slow_rank>{{rank_id{0}, 1.3}}, std::vector<slow_rank>{{rank_id{4}, 1.15}, {rank_id{1}, 2.0}});
    auto const chosen = choose(p, layers, {.costs = {blocking}}, slow);
    auto const real = replay(p, layers, chosen.clocks, slow);
    auto const highest = replay(p, layers, all_highest(chosen), slow);
    CHECK(chosen.time.count <= chosen.fastest.count + tick);
    CHECK(chosen.fastest.count == Approx(highest.time.count).epsilon(1e-3));
    CHECK(real.time.count == Approx(chosen.time.count).epsilon(1e-6));
    CHECK(real.energy.count == Approx(chosen.energy.count).epsilon(1e-6));
    CHECK(chosen.at_highest.count == Approx(highest.energy.count).epsilon(1e-3));
    CHECK(chosen.energy < 0.95 * chosen.at_highest);
}

TEST_CASE("plan_clocks: a group has one clock, as predicted")
{
    auto const layers = layers_of_weights({0.5, 1, 1, 1.5, 1, 1, 2});
    auto p = plan_of({{0, 4, 7}, {0, 2, 4, 7}}, {3, 5});
    p.pipelines[0].stages = {{rank_id{0}, rank_id{1}}, {rank_id{2}, rank_id{3}, rank_id{4}}};
    p.pipelines[1].stages = {{rank_id{5}}, {rank_id{6}, rank_id{7}}, {rank_id{8}}};
    group_exchanges const exchanges{4, {7, {milliseconds(0.5), milliseconds(1.25), milliseconds(2.0)}}};
    std::vector<slow_rank> const slow = GENERATE(std::vector<slow_rank>{}, std::vector<slow_rank>{{rank_id{1}, 1.3}, {rank_id{6}, 1.1}, {rank_id{7}, 1.2}});
    auto const chosen = choose(p, layers, {.costs = {blocking}}, slow, exchanges);
    auto const real = replay(p, layers, chosen.clocks, slow, exchanges);
    auto const highest = replay(p, layers, all_highest(chosen), slow, exchanges);
    CHECK(chosen.time.count <= chosen.fastest.count + tick);
    CHECK(chosen.fastest.count == Approx(highest.time.count).epsilon(1e-3));
    CHECK(real.time.count == Approx(chosen.time.count).epsilon(1e-6));
    CHECK(real.energy.count == Approx(chosen.energy.count).epsilon(1e-6));
    CHECK(chosen.at_highest.count == Approx(highest.energy.count).epsilon(1e-3));
    CHECK(chosen.energy < chosen.at_highest);
    auto alone = p;
    alone.pipelines[0].stages = {{rank_id{0}}, {rank_id{2}}};
    CHECK_FALSE(frontier_key_of(p, 0, slow, 4) == frontier_key_of(alone, 0, slow, 4));
    auto named = p;
    named.pipelines[0].shares = {{3, 1}, {2, 1, 1}};
    CHECK_FALSE(frontier_key_of(p, 0, slow, 4) == frontier_key_of(named, 0, slow, 4));
    auto const fastest = [&](plan const& of) { return fastest_time(make_pipeline_frontier(of, 0, layers, {.costs = {blocking}}, slow, exchanges)->curve); };
    CHECK(fastest(named) > fastest(p));
}

TEST_CASE("plan_clocks: waiting for a straggler saves energy")
{
    auto const layers = layers_of_weights({1, 1, 1, 1, 1, 1});
    auto const p = plan_of({{0, 2, 4, 6}, {0, 3, 6}}, {4, 3});
    auto const usual = choose(p, layers, {.costs = {blocking}});
    for (rank_id r{0}; r.value < 5; ++r) {
        std::vector<slow_rank> const slow{{r, 1.4}};
        auto const aware = choose(p, layers, {.costs = {blocking}}, slow);
        auto const unaware = replay(p, layers, usual.clocks, slow);
        CHECK(aware.energy < unaware.energy);
        CHECK(aware.time <= unaware.time + seconds{tick});
    }
    CHECK(choose(p, layers, {.costs = {blocking}}, {{rank_id{0}, 1.0}}).clocks == usual.clocks);
}

TEST_CASE("plan_clocks: deadlines are kept; later ones change nothing")
{
    auto const layers = layers_of_weights({1, 1, 1, 1, 1});
    auto const p = plan_of({{0, 2, 5}, {0, 5}}, {5, 3});
    auto last = choose(p, layers, {.costs = {blocking}});
    for (double const late : {1.05, 1.15, 1.3}) {
        auto const at = choose(p, layers, {.costs = {blocking}, .deadline = late * last.fastest});
        CHECK(at.time <= late * last.fastest + seconds{tick});
        CHECK(at.energy <= last.energy);
        last.energy = at.energy;
    }
    auto const far = choose(p, layers, {.costs = {blocking}, .deadline = {10.0}});
    CHECK(far.energy <= last.energy);
    CHECK(choose(p, layers, {.costs = {blocking}, .deadline = {20.0}}).clocks == far.clocks);
    CHECK(choose(p, layers, {.costs = {blocking}, .deadline = {1e-3}}).clocks == choose(p, layers, {.costs = {blocking}}).clocks);
}

TEST_CASE("plan_clocks: close to the optimum of all clock choices")
{
    auto const p = plan_of({{0, 1, 2}}, {2});
    for (double const second : {0.6, 1.0, 1.7}) {
        auto const layers = layers_of_weights({1, second});
        auto const chosen = choose(p, layers, {.costs = {blocking}});
        auto clocks = chosen.clocks;
        double best = 1e300;
        for (int code = 0; code < 6561; ++code) {  // 3^8
            int rest = code;
            for (auto& row : clocks[0]) {
                for (auto& clock : row) {
                    clock = megahertz{std::array{1400.0, 1000.0, 700.0}[static_cast<std::size_t>(rest % 3)]};
                    rest /= 3;
                }
            }
            auto const r = replay(p, layers, clocks);
            best = r.time <= chosen.fastest + seconds{tick} ? std::min(best, r.energy.count) : best;
        }
        CHECK(chosen.energy.count >= best * (1 - 1e-6));
        CHECK(chosen.energy.count <= best * (1 + 0.03));  // real clocks are a few only
    }
}

TEST_CASE("plan_clocks: what the profile lacks is reported")
{
    auto layers = layers_of_weights({1, 1});
    std::erase_if(layers.rows, [](profile_row const& row) { return row.kind == instruction_kind::backward; });
    CHECK_THAT(make_pipeline_frontier(plan_of({{0, 1, 2}}, {2}), 0, layers, {.costs = {blocking}}, {}).error(),
               Catch::Matchers::ContainsSubstring("the profile has nothing for"));
}
