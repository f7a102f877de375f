// SPDX-License-Identifier: Apache-2.0
// Measured cost profiles of sail-sg/zero-bubble-pipeline-parallelism (legacy-main, megatron/core/pipeline_parallel/auto_schedule.py): ranks
// of unlike speed, transfers, and memory that is given back in two parts. What holds at unit costs must hold in its way there, too.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/check/figures.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/search/list_schedule.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Times of forward, input gradient and weight gradient per stage, of every transfer; the memory of a forward, in the profile's units.
struct profile {
    int microbatches;
    std::vector<double> forward;
    std::vector<double> input;
    std::vector<double> weight;
    double transfer;
    std::vector<std::int64_t> memory;
    std::int64_t most;
};

profile even(int ranks, int microbatches, std::array<double, 3> times, double transfer, std::int64_t memory, std::int64_t most)
{
    auto const n = static_cast<std::size_t>(ranks);
    return {microbatches, std::vector(n, times[0]), std::vector(n, times[1]), std::vector(n, times[2]), transfer, std::vector(n, memory), most};
}

std::vector<profile> const profiles{
    even(4, 12, {5, 6, 4}, 0, 2, 10),
    even(4, 12, {5, 6, 4}, 0, 2, 14),
    even(4, 12, {5478, 5806, 3534}, 200, 2, 32),
    even(32, 16, {1, 1, 1}, 0, 2, 64),
    {32,
     {30715, 29233, 29106, 29078, 28850, 28919, 28924, 41678},
     {31308, 29344, 29357, 29455, 29217, 29384, 29354, 38731},
     {18746, 18789, 19062, 19367, 19455, 19967, 20096, 32833},
     473,
     {943, 1240, 1240, 1240, 1240, 1240, 1240, 1071},
     19840},
    even(8, 32, {29850, 29767, 18868}, 466, 3720, 59520),
};

int ranks_of(profile const& p) { return static_cast<int>(p.forward.size()); }

stage_costs costs_of(profile const& p)
{
    stage_costs costs;
    for (std::size_t s = 0; s < p.forward.size(); ++s) {
        costs.push_back({{p.forward[s]}, {p.input[s] + p.weight[s]}, {p.input[s]}, {p.weight[s]}, {p.transfer}, {p.transfer}});
    }
    return costs;
}

std::vector<bytes> activations_of(profile const& p)
{
    std::vector<bytes> sizes;
    for (auto const m : p.memory) {
        sizes.push_back(bytes{m});
    }
    return sizes;
}

list_request request_of(profile const& p)
{
    return {.ranks = ranks_of(p),
            .placement = loop_placement(ranks_of(p), 1),
            .costs = costs_of(p),
            .microbatches = p.microbatches,
            .split = true,
            .activations = activations_of(p),
            .cap = bytes{p.most}};
}

}  // namespace

TEST_CASE("profiles: bounds hold; split backwards shorten 1F1B")
{
    for (std::size_t k = 0; k < profiles.size(); ++k) {
        auto const& x = profiles[k];
        INFO("profile " << k);
        auto const shape = schedule_shape{ranks_of(x), x.microbatches};
        auto const whole = figures_of(one_f_one_b::program(shape), costs_of(x));
        auto const h1 = figures_of(zb_h1::program(shape), costs_of(x));
        auto const h2 = figures_of(zb_h2::program(shape), costs_of(x));
        for (auto const& f : {whole, h1, h2}) {
            CHECK(f.lower_bound <= f.makespan + seconds{1e-6});
            CHECK(f.largest_work <= f.lower_bound);
        }
        CHECK(h1.makespan < whole.makespan);
        CHECK(h2.makespan < whole.makespan);
        CHECK(h2.span_bubble <= h1.span_bubble);
    }
}

TEST_CASE("profiles: even profiles match the closed formulas")
{
    auto const& x = profiles[0];
    auto const p = ranks_of(x);
    auto const f = x.forward[0];
    auto const i = x.input[0];
    auto const w = x.weight[0];
    schedule_shape const shape{p, x.microbatches};
    CHECK(figures_of(one_f_one_b::program(shape), costs_of(x)).makespan_bubble == seconds{(p - 1) * (f + i + w)});
    CHECK(figures_of(zb_h1::program(shape), costs_of(x)).span_bubble == seconds{(p - 1) * (f + i - w)});
    CHECK(figures_of(zb_h2::program(shape), costs_of(x)).span_bubble == seconds{(p - 1) * (f + i - 2 * w)});
}

TEST_CASE("profiles: ZB-H1 and ZB-H2 match the profile caps")
{
    for (auto const& [k, fits_h2] : {std::pair{0U, false}, std::pair{1U, true}}) {
        auto const& x = profiles[k];
        auto const fits = [&](program const& p) {
            auto const peaks = peak_bytes_by_rank(p, activations_of(x));
            return *std::max_element(peaks.begin(), peaks.end()) <= bytes{x.most};
        };
        CHECK(fits(zb_h1::program({ranks_of(x), x.microbatches})));
        CHECK(fits(zb_h2::program({ranks_of(x), x.microbatches})) == fits_h2);
    }
}

TEST_CASE("profiles: list schedules fit, are sound, beat 1F1B")
{
    for (std::size_t k = 0; k < profiles.size(); ++k) {
        auto const& x = profiles[k];
        auto const answer = list_schedule(request_of(x));
        INFO("profile " << k << ' ' << answer.error());
        REQUIRE(answer);
        CHECK(complete(answer->program, x.microbatches));
        CHECK(deadlock_free<rendezvous>(lower(answer->program)));
        for (auto const peak : peak_bytes_by_rank(answer->program, activations_of(x))) {
            CHECK(peak <= bytes{x.most});
        }
        auto const f = figures_of(answer->program, costs_of(x));
        CHECK(f.makespan == answer->makespan);
        CHECK(f.lower_bound <= f.makespan + seconds{1e-6});
        CHECK(f.makespan <= makespan(one_f_one_b::program({ranks_of(x), x.microbatches}), costs_of(x)));
    }
}

TEST_CASE("profiles: every family is sound at measured times")
{
    auto const& x = profiles[5];
    stage_cost const full{{x.forward[0]}, {x.input[0] + x.weight[0]}, {x.input[0]}, {x.weight[0]}, {x.transfer}, {x.transfer}};
    for (auto const family : schedule_families()) {
        int made = 0;
        for (auto const& [p, m] : {std::array{4, 4}, {4, 8}, {4, 16}, {2, 2}, {2, 4}, {8, 4}, {8, 8}, {8, 16}}) {
            if (error_of(family, {p, m}) != shape_error::none) {
                continue;
            }
            ++made;
            INFO(name_of(family) << " p " << p << " m " << m);
            auto const program = make_program(family, {p, m});
            CHECK(complete(program, m));
            CHECK(deadlock_free<rendezvous>(lower(program)));
            auto const f = figures_of(program, even_costs(program, full));
            CHECK(f.lower_bound <= f.makespan + seconds{1e-6});
            CHECK(makespan<nonblocking>(lower(program), even_costs(program, full)) >= f.makespan - seconds{1e-6});
        }
        CHECK(made >= 3);
    }
}
