// SPDX-License-Identifier: Apache-2.0
// Branch and bound over cuts and devices against the exhaustive search with the schedule's own makespan.
#include <functional>
#include <optional>
#include <random>
#include <tuple>

#include "rheo/partition/optimal_makespan.hpp"
#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr modelled_link no_link{{0.0}, {1e18}};

/// Layers that take so many nanoseconds forward and backward.
constexpr stage_prices prices_of(std::initializer_list<std::pair<int, int>> times)
{
    std::vector<layer_profile> layers;
    for (auto const& [forward, backward] : times) {
        layers.push_back({nanoseconds(forward), nanoseconds(backward), {}, {}, {}, {}});
    }
    return make_stage_prices(layers, no_link);
}

constexpr result<makespan_split> one_each(stage_prices const& prices, int stages, int microbatches)
{
    return optimal_makespan(prices, {.schedule = one_f_one_b{}, .nodes = stages, .microbatches = microbatches});
}

/// By the compiler: the estimate says 60 for stages of 8 and 2, really it is 64.
constexpr auto front = one_each(prices_of({{4, 4}, {1, 1}}), 2, 8)->makespan;
static_assert(front == nanoseconds(64));
static_assert(one_each(prices_of({{1, 1}, {1, 2}, {2, 2}}), 2, 8)->cuts == std::vector<layer_id>{layer_id{0}, layer_id{2}, layer_id{3}});
static_assert(one_each(prices_of({{1, 2}, {1, 2}, {1, 2}, {1, 2}}), 2, 8)->is_optimal());

struct problem {
    stage_prices prices;
    makespan_request request;
};

using answer = std::tuple<std::int64_t, std::vector<layer_id>, std::vector<int>>;

/// The makespan by the schedule's own function, in whole nanoseconds.
std::int64_t makespan_of(program const& p, stage_prices const& prices, std::vector<layer_id> const& cuts, std::vector<int> const& devices)
{
    stage_costs costs;
    auto const chain = stages_per_copy(p);
    for (int s = 0; s < static_cast<int>(p.placement.size()); ++s) {
        auto const span = layers_of(cuts, stage_id{s % chain});
        auto const d = devices[static_cast<std::size_t>(s % chain)];
        auto const whole = prices.backward(span, d);
        auto const send = s % chain + 1 < chain ? prices.send_from(span) : 0;
        auto const back = s % chain > 0 ? prices.send_from(layers_of(cuts, stage_id{s % chain - 1})) : 0;
        auto const count = [](std::int64_t time) { return seconds{static_cast<double>(time)}; };
        costs.push_back({count(prices.forward(span, d)), count(whole), count(whole / 2), count(whole - whole / 2), count(send), count(back)});
    }
    return static_cast<std::int64_t>(makespan(p, costs).count);
}

bool fits(program const& p, stage_prices const& prices, std::optional<bytes> limit, std::vector<layer_id> const& cuts, std::vector<int> const& devices)
{
    std::vector<bytes> state(p.rows.size());
    std::vector<bytes> activations;
    for (int s = 0; s < static_cast<int>(p.placement.size()); ++s) {
        auto const stage = s % stages_per_copy(p);
        auto const span = layers_of(cuts, stage_id{stage});
        auto const row = static_cast<std::size_t>(p.placement[static_cast<std::size_t>(s)]);
        state[row] += prices.memory(span, 1, 0);
        activations.push_back(prices.memory(span, 1, 1) - prices.memory(span, 1, 0));
    }
    auto const peaks = peak_bytes_by_rank(p, activations);
    for (std::size_t r = 0; r < state.size(); ++r) {
        auto const d = p.rows.size() == p.placement.size() ? devices[r] : 1;
        if (limit && (state[r] + peaks[r]).count > limit->count * d) {
            return false;
        }
    }
    return true;
}

/// The best of all numbers of stages, cuts and devices; ties to the smallest cuts, then devices.
std::optional<answer> best_of_all(problem const& of)
{
    std::optional<answer> best;
    auto const per_node = of.prices.devices_per_node();
    auto const all = of.request.nodes * per_node;
    for (int ranks = of.request.nodes; ranks <= all; ++ranks) {
        schedule_shape const shape{.ranks = ranks, .microbatches = of.request.microbatches};
        if (error_of(of.request.schedule, shape) != shape_error::none) {
            continue;
        }
        auto const p = make_program(of.request.schedule, shape);
        bool const shared = p.placement.size() == p.rows.size();
        if (!shared && ranks < all) {
            continue;
        }
        std::vector<layer_id> cuts{layer_id{0}};
        std::vector<int> devices;
        std::function<void(int, int)> const visit = [&](int left, int used) {
            if (left == 0) {
                if (at(cuts.back()) + 1 == of.prices.persistent_before.size() && (!shared || used == all) &&
                    fits(p, of.prices, of.request.device_memory, cuts, devices)) {
                    answer const found{makespan_of(p, of.prices, cuts, devices), cuts, devices};
                    best = !best || found < *best ? found : *best;
                }
                return;
            }
            for (int end = cuts.back().value + 1; end <= of.prices.layers(); ++end) {
                for (int d = 1; d <= (shared ? per_node - used % per_node : 1); ++d) {
                    cuts.push_back(layer_id{end});
                    devices.push_back(d);
                    visit(left - 1, used + d);
                    devices.pop_back();
                    cuts.pop_back();
                }
            }
        };
        visit(stages_per_copy(p), 0);
    }
    return best;
}

problem random_problem(std::mt19937& draw, any_schedule schedule, int most_devices)
{
    auto const per_node = 1 + static_cast<int>(draw() % static_cast<unsigned>(most_devices));
    std::vector<layer_profile> layers(2 + draw() % 5);
    auto const largest = 1 + draw() % 12;  // small numbers tie often
    for (auto& layer : layers) {
        layer = {nanoseconds(static_cast<double>(draw() % (largest + 1))),
                 nanoseconds(static_cast<double>(draw() % (2 * largest))),
                 {static_cast<std::int64_t>(draw() % 9)},
                 {static_cast<std::int64_t>(draw() % 5)},
                 {static_cast<std::int64_t>(draw() % 4)},
                 {}};
        for (int d = 2; d <= per_node; ++d) {
            layer.all_reduce.push_back(nanoseconds(static_cast<double>(draw() % 3)));
        }
    }
    problem result{make_stage_prices(layers, {seconds{0}, {draw() % 2 == 0 ? 1e18 : 1e9}}, per_node),
                   {schedule, 1 + static_cast<int>(draw() % (per_node == 1 ? 4 : 2)), 1 + static_cast<int>(draw() % 7)}};
    if (draw() % 3 == 0) {
        result.request.device_memory = bytes{static_cast<std::int64_t>(4 + draw() % 40)};
    }
    return result;
}

}  // namespace

TEST_CASE("optimal_makespan: equals exhaustive search, each family")
{
    std::mt19937 draw{11};
    int refused = 0;
    int shared = 0;
    for (auto const schedule : schedule_families()) {
        if (schedule == seq1f1b{}) {
            continue;  // slices of whole nanoseconds are rounded; see the next test
        }
        for (int round = 0; round < 60; ++round) {
            auto const of = random_problem(draw, schedule, round % 2 == 0 ? 1 : 3);
            auto const found = optimal_makespan(of.prices, of.request);
            auto const best = best_of_all(of);
            CAPTURE(name_of(schedule), round, of.request.nodes, of.request.microbatches, of.prices.devices_per_node(), of.prices.layers(), found.error());
            REQUIRE(static_cast<bool>(found) == best.has_value());
            refused += best ? 0 : 1;
            if (best) {
                REQUIRE(found->makespan == nanoseconds(static_cast<double>(std::get<0>(*best))));
                REQUIRE(found->cuts == std::get<1>(*best));
                REQUIRE(found->devices == std::get<2>(*best));
                REQUIRE(found->is_optimal());
                for (auto const d : found->devices) {
                    shared += d > 1 ? 1 : 0;
                }
            }
        }
    }
    CHECK(refused > 50);
    CHECK(shared > 50);
}

TEST_CASE("optimal_makespan: exhausted effort gives a valid bound")
{
    std::mt19937 draw{12};
    int open = 0;
    for (int round = 0; round < 300; ++round) {
        auto of = random_problem(draw, one_f_one_b{}, 2);
        auto const best = optimal_makespan(of.prices, of.request);
        of.request.effort = 1 + static_cast<std::int64_t>(draw() % 60);
        auto const found = optimal_makespan(of.prices, of.request);
        REQUIRE(static_cast<bool>(found) >= static_cast<bool>(best));
        if (found) {
            REQUIRE(found->bound <= best->makespan);
            REQUIRE(best->makespan <= found->makespan);
            REQUIRE(found->explored <= best->explored);
            open += found->is_optimal() ? 0 : 1;
        }
    }
    CHECK(open > 10);
}

TEST_CASE("optimal_makespan: slices use the schedule's makespan")
{
    std::vector<layer_profile> const layers(6, {nanoseconds(200), nanoseconds(400), {}, {}, {}, {}});
    auto const found = optimal_makespan(make_stage_prices(layers, no_link), {.schedule = seq1f1b{}, .nodes = 3, .microbatches = 4});
    REQUIRE(found);
    auto const p = make_program(seq1f1b{}, {.ranks = 3, .microbatches = 4});
    stage_cost const full{nanoseconds(400), nanoseconds(800), nanoseconds(400), nanoseconds(400), {}, {}};
    CHECK(in_whole_nanoseconds(found->makespan) == in_whole_nanoseconds(makespan(p, even_costs(p, full))));
}

TEST_CASE("optimal_makespan: what cannot be cut says why")
{
    auto const prices = prices_of({{1, 2}, {1, 2}, {1, 2}});
    CHECK(one_each(prices, 4, 8).error() == "there are more stages than layers");
    std::vector<layer_profile> const heavy(2, {seconds{1}, seconds{1}, gibibytes(1), {}, {}, {}});
    makespan_request request{.schedule = one_f_one_b{}, .nodes = 2, .microbatches = 4, .device_memory = mebibytes(1)};
    CHECK(optimal_makespan(make_stage_prices(heavy, no_link), request).error() == "no cuts found whose stages fit into the memory of their devices");
    request.schedule = chimera{};
    request.nodes = 3;
    CHECK(optimal_makespan(prices, request).error() == message_of(error_of(request.schedule, {.ranks = 3, .microbatches = 4})));
    request.nodes = 0;
    CHECK_THROWS_AS(optimal_makespan(prices, request), precondition_error);
}
