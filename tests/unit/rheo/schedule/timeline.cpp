// SPDX-License-Identifier: Apache-2.0
// Times are the least that satisfy the constraints: an independent relaxation over explicit edges is the oracle.
#include <random>

#include "programs.hpp"
#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/reductions.hpp"
#include "support/catch.hpp"

using namespace rheo;

static_assert(makespan(one_f_one_b::program({.ranks = 8, .microbatches = 16}), unit_costs(8)) == seconds{69.0});

namespace {

stage_costs random_costs(std::mt19937& draw, std::size_t stages)
{
    auto const time = [&] { return seconds{static_cast<double>(std::uniform_int_distribution{0, 9}(draw))}; };
    stage_costs costs;
    for (std::size_t s = 0; s < stages; ++s) {
        costs.push_back({time(), time(), time(), time(), time(), time()});
    }
    return costs;
}

/// Starts of all computations by repeated relaxation until nothing changes.
double relaxed_makespan(program const& p, stage_costs const& costs)
{
    std::map<std::tuple<int, int, int>, double> ends;  // kind class (forward, gradient, weight), stage, item
    auto const key = [](instruction i) {
        int const kind = i.kind == instruction_kind::forward ? 0 : i.kind == instruction_kind::weight_gradient ? 2 : 1;
        return std::tuple{kind, static_cast<int>(i.stage), i.item};
    };
    double last = 0.0;
    for (bool changed = true; changed;) {
        changed = false;
        for (auto const& row : p.rows) {
            double clock = 0.0;
            for (auto const& i : row) {
                auto const [kind, stage, item] = key(i);
                auto const source = stage + (kind == 0 ? -1 : 1);
                if (kind != 2 && source >= 0 && source < static_cast<int>(p.placement.size())) {
                    auto const& c = costs[static_cast<std::size_t>(source)];
                    bool const far = p.placement[static_cast<std::size_t>(source)] != p.placement[static_cast<std::size_t>(stage)];
                    auto const wire = kind == 0 ? c.send_activation.count : c.send_gradient.count;
                    clock = std::max(clock, ends[std::tuple{kind, source, item}] + (far ? wire : 0.0));
                }
                clock += cost_of(costs, i).count;
                if (ends[key(i)] != clock) {
                    ends[key(i)] = clock;
                    changed = true;
                }
                last = std::max(last, clock);
            }
        }
    }
    return last;
}

}  // namespace

TEST_CASE("timeline: makespan equals the relaxation")
{
    std::mt19937 draw{21};
    for (int round = 0; round < 300; ++round) {
        auto const p = test::random_program(draw, 1 + round % 4, 1 + round % 6, 1 + round % 5);
        auto const costs = random_costs(draw, p.placement.size());
        INFO(to_text(p));
        CHECK(makespan(p, costs).count == relaxed_makespan(p, costs));
        CHECK(makespan<nonblocking>(lower(p), costs) >= makespan(p, costs));
    }
}

TEST_CASE("timeline: rendezvous holds both ranks; posts do not")
{
    auto const p = test::from_text("0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F0,1RECV_F1,1F0,1F1\n", {0, 1});
    stage_costs costs(2, {{1.0}, {}, {}, {}, {5.0}, {}});
    auto const times = [&]<class Transport>(Transport) { return make_timeline<Transport>(array_view{&p, 1}, {{costs}, {}}); };
    auto const held = times(rendezvous{});
    CHECK(held.rows[0].instructions == std::vector<timed_instruction>{{{instruction_kind::forward, 0, 0}, {0.0}, {1.0}},
                                                                      {{instruction_kind::send_activation, 0, 0}, {1.0}, {6.0}},
                                                                      {{instruction_kind::forward, 0, 1}, {6.0}, {7.0}},
                                                                      {{instruction_kind::send_activation, 0, 1}, {7.0}, {12.0}}});
    CHECK(makespan(held) == seconds{14.0});
    auto const posted = times(nonblocking{});
    CHECK(posted.rows[0].instructions.back().end == seconds{2.0});
    CHECK(makespan(posted) == seconds{8.0});
}

TEST_CASE("timeline: reductions end after the last post")
{
    auto const units = units_by_stage{{reduction_id{0}}};
    std::vector<program> programs;
    for (int m : {4, 1}) {
        programs.push_back(with_reductions(lower(one_f_one_b::program({1, m})), units, 1));
    }
    for (std::size_t longer : {0U, 1U}) {
        auto const times = make_timeline<rendezvous>(programs, {{unit_costs(1), unit_costs(1)}, {seconds{2.5}}});
        REQUIRE(times.sound);
        CHECK(times.rows[longer].instructions.back() == timed_instruction{{instruction_kind::await_reduction, 0, 0}, {12.0}, {14.5}});
        CHECK(times.rows[1 - longer].instructions.back() == timed_instruction{{instruction_kind::await_reduction, 0, 0}, {3.0}, {14.5}});
        CHECK(makespan(times) == seconds{14.5});
        std::swap(programs[0], programs[1]);
    }
}

TEST_CASE("timeline: a timeline of what hangs shows what ran before")
{
    auto const p = lower_lazily(one_f_one_b::program({2, 2}));
    auto const times = make_timeline<rendezvous>(array_view{&p, 1}, {{unit_costs(2)}, {}});
    CHECK(times.sound.fault == program_error::hang);
    CHECK(times.rows[0].instructions.size() == 3);
    CHECK_THROWS_WITH(makespan<rendezvous>(p, unit_costs(2)), "a program that hangs has no makespan");
}
