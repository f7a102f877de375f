// SPDX-License-Identifier: Apache-2.0
// The list scheduler and its memory cap, the exact search against plain enumeration, building blocks.
#include <random>
#include <set>

#include "catch.hpp"
#include "rheo/schedule/complete.hpp"
#include "rheo/schedule/deadlock.hpp"
#include "rheo/schedule/exact_search.hpp"
#include "rheo/schedule/families.hpp"
#include "rheo/schedule/figures.hpp"
#include "rheo/schedule/list_schedule.hpp"
#include "rheo/schedule/placement.hpp"

using namespace rheo;

namespace {

/// The shortest makespan over all rows' orders that keep within the cap, by trying each instruction that is ready next, anywhere.
class every_schedule {
public:
    explicit every_schedule(list_request request) : request_{std::move(request)}
    {
        state_.rows.resize(static_cast<std::size_t>(request_.ranks));
        state_.placement = request_.placement;
        state_.slices = request_.slices;
        kinds_ = {instruction_kind::forward, request_.split ? instruction_kind::input_gradient : instruction_kind::backward};
        if (request_.split) {
            kinds_.push_back(instruction_kind::weight_gradient);
        }
    }

    double shortest()
    {
        explore(0);
        return best_;
    }

private:
    void explore(std::size_t count)
    {
        auto const stages = static_cast<int>(request_.placement.size());
        auto const items = request_.microbatches * request_.slices;
        if (!seen_.insert(to_text(state_)).second) {
            return;
        }
        if (count == static_cast<std::size_t>(stages * items) * kinds_.size()) {
            best_ = std::min(best_, makespan(state_, request_.costs).count);
            return;
        }
        for (int s = 0; s < stages; ++s) {
            for (int m = 0; m < items; ++m) {
                for (auto const kind : kinds_) {
                    auto const i = make_instruction(kind, stage_id{s}, microbatch_id{m});
                    auto& row = state_.rows[static_cast<std::size_t>(request_.placement[static_cast<std::size_t>(s)])];
                    if (has(i) || !is_ready(i)) {
                        continue;
                    }
                    row.push_back(i);
                    if (held(row) <= request_.cap || request_.cap == bytes{}) {
                        explore(count + 1);
                    }
                    row.pop_back();
                }
            }
        }
    }

    bool is_ready(instruction i) const
    {
        auto const slices = request_.slices;
        auto const other = [&](instruction_kind kind, int stage, int item) { return has({kind, static_cast<std::int16_t>(stage), item}); };
        if (i.kind == instruction_kind::forward) {
            return (i.stage == 0 || other(i.kind, i.stage - 1, i.item)) && (i.item % slices == 0 || other(i.kind, i.stage, i.item - 1));
        }
        if (i.kind == instruction_kind::weight_gradient) {
            return other(instruction_kind::input_gradient, i.stage, i.item);
        }
        bool const last = static_cast<std::size_t>(i.stage) + 1 == request_.placement.size();
        return other(instruction_kind::forward, i.stage, i.item) && (last || other(i.kind, i.stage + 1, i.item))
            && ((i.item + 1) % slices == 0 || other(i.kind, i.stage, i.item + 1));
    }

    bytes held(std::vector<instruction> const& row) const
    {
        bytes sum;
        for (auto const& i : row) {
            auto const size = request_.activations.empty() ? bytes{1} : request_.activations[static_cast<std::size_t>(i.stage)];
            bool const last = i.kind == instruction_kind::backward || i.kind == instruction_kind::weight_gradient;
            sum = i.kind == instruction_kind::forward ? sum + size : last ? sum - size : sum;
        }
        return sum;
    }

    bool has(instruction i) const
    {
        auto const& row = state_.rows[static_cast<std::size_t>(state_.placement[static_cast<std::size_t>(i.stage)])];
        return std::find(row.begin(), row.end(), i) != row.end();
    }

    list_request request_;
    program state_;
    std::vector<instruction_kind> kinds_;
    std::set<std::string> seen_;
    double best_ = 1e9;
};

stage_costs random_costs(std::mt19937& draw, int stages)
{
    auto const some = [&] { return seconds{static_cast<double>(std::uniform_int_distribution{1, 5}(draw))}; };
    stage_costs costs;
    for (int s = 0; s < stages; ++s) {
        auto const i = some();
        auto const w = some();
        costs.push_back({some(), i + w, i, w, seconds{static_cast<double>(draw() % 2)}, seconds{0.0}});
    }
    return costs;
}

}  // namespace

TEST_CASE("list schedules are complete, acyclic and within their cap")
{
    std::mt19937 draw{1};
    for (int round = 0; round < 200; ++round) {
        int const ranks = 1 + round % 5;
        int const chunks = 1 + round % 3;
        int const copies = 1 + round % 2;
        auto placement = round % 4 < 2 ? v_placement(ranks, chunks) : loop_placement(ranks, chunks);
        if (copies == 2) {
            placement = both_directions(placement, ranks);
        }
        auto const stages = static_cast<int>(placement.size());
        auto const cap = std::int64_t{chunks * copies} + round % 4;
        list_request const request{.ranks = ranks, .placement = placement, .costs = random_costs(draw, stages), .microbatches = round % 7,
            .copies = copies, .split = round % 3 == 0, .cap = bytes{cap}};
        auto const answer = list_schedule(request);
        REQUIRE(answer);
        INFO(to_text(answer.what));
        CHECK(complete(answer.what, request.microbatches));
        CHECK(dependencies_in_order(answer.what));
        CHECK(peak_activations(answer.what) <= cap);
        auto const f = figures_of(answer.what, request.costs);
        CHECK(f.lower_bound <= f.makespan);
    }
}

TEST_CASE("a cap below one activation per stage is answered with a sentence")
{
    list_request const request{.ranks = 2, .placement = v_placement(2, 2), .costs = unit_costs(4), .microbatches = 3, .cap = bytes{1}};
    CHECK(list_schedule(request).reason == "the memory cap does not hold one activation of each stage of a rank");
}

TEST_CASE("the exact search finds what plain enumeration finds")
{
    std::mt19937 draw{9};
    for (int round = 0; round < 12; ++round) {
        int const ranks = 1 + round % 3;
        int const microbatches = ranks == 3 ? 2 : 2 + round % 2;
        list_request const request{.ranks = ranks, .placement = loop_placement(ranks, 1), .costs = random_costs(draw, ranks), .microbatches = microbatches};
        auto const found = exact_schedule(request);
        INFO(to_text(found.what));
        CHECK(found.is_optimal);
        CHECK(found.makespan == found.lower_bound);
        CHECK(found.makespan.count == Approx(every_schedule{request}.shortest()));
        CHECK(makespan(found.what, request.costs) == found.makespan);
        CHECK(complete(found.what, microbatches));
    }
}

TEST_CASE("with several stages per rank, too, the exact search finds what enumeration finds")
{
    std::mt19937 draw{21};
    for (int round = 0; round < 8; ++round) {
        list_request const request{.ranks = 2, .placement = round % 2 == 0 ? v_placement(2, 2) : std::vector{0, 1, 0}, .costs = random_costs(draw, round % 2 == 0 ? 4 : 3),
            .microbatches = 2};
        auto const found = exact_schedule(request);
        CHECK(found.is_optimal);
        CHECK(found.makespan.count == Approx(every_schedule{request}.shortest()));
    }
}

TEST_CASE("within a memory cap, with split backwards and with slices, too")
{
    std::mt19937 draw{33};
    int tighter = 0;
    int infeasible = 0;
    for (int round = 0; round < 60; ++round) {
        int const form = round % 4;  // whole, split, sliced, two stages per rank
        auto const placement = form == 3 ? std::vector{0, 1, 0} : loop_placement(2, 1);
        list_request request{.ranks = 2, .placement = placement, .costs = random_costs(draw, static_cast<int>(placement.size())),
            .microbatches = form == 0 ? 3 : 2, .split = form == 1, .slices = form == 2 ? 2 : 1};
        for (std::size_t s = 0; s < placement.size(); ++s) {
            request.activations.push_back(bytes{1 + static_cast<std::int64_t>(draw() % 3)});
        }
        request.cap = bytes{2 + static_cast<std::int64_t>(draw() % 6)};
        auto const found = exact_schedule(request);
        auto const best = every_schedule{request}.shortest();
        INFO("form " << form << " cap " << request.cap.count << '\n' << to_text(found.what) << found.reason);
        if (!found) {
            CHECK(best == 1e9);
            ++infeasible;
            continue;
        }
        REQUIRE(found.is_optimal);
        CHECK(found.makespan.count == Approx(best));
        CHECK(found.lower_bound == found.makespan);
        CHECK(complete(found.what, request.microbatches));
        CHECK(makespan(found.what, request.costs) == found.makespan);
        for (auto const peak : peak_bytes_by_rank(found.what, request.activations)) {
            CHECK(peak <= request.cap);
        }
        request.cap = {};
        tighter += exact_schedule(request).makespan < found.makespan ? 1 : 0;
    }
    CHECK(tighter > 5);
    CHECK(infeasible > 2);
}

TEST_CASE("a search that is cut short returns a bound that nothing beats")
{
    std::mt19937 draw{34};
    int cut = 0;
    for (int round = 0; round < 40; ++round) {
        list_request request{.ranks = 2, .placement = loop_placement(2, 1), .costs = random_costs(draw, 2), .microbatches = 2 + round % 2,
            .split = round % 4 == 0 && round % 2 == 0, .cap = bytes{round % 3 == 0 ? 0 : 2}};
        if (round % 5 == 4) {
            request.cap = {};
            request.slices = 2;
            request.microbatches = 2;
            request.split = false;
        }
        auto const best = every_schedule{request}.shortest();
        for (long const most : {0L, 1L, 3L, 10L}) {
            auto const found = exact_schedule(request, most);
            INFO("round " << round << " most " << most);
            CHECK(found.lower_bound.count <= best + 1e-9);
            CHECK(found.makespan.count >= best - 1e-9);
            CHECK((!found.is_optimal || found.makespan.count == Approx(best)));
            cut += found.is_optimal ? 0 : 1;
        }
    }
    CHECK(cut > 10);
}

TEST_CASE("an order that no cap allows is refused with a sentence")
{
    list_request request{.ranks = 2, .placement = v_placement(2, 2), .costs = unit_costs(4), .microbatches = 2, .cap = bytes{1}};
    CHECK(exact_schedule(request).reason == "the memory cap does not hold one activation of each stage of a rank");
    request.slices = 2;
    request.cap = bytes{3};
    CHECK(exact_schedule(request).reason == "no order keeps within the memory cap");
    request.cap = bytes{4};
    CHECK(exact_schedule(request));
}

TEST_CASE("Seq1F1B is no shorter than the exact search with its slices, and neither is the list schedule")
{
    auto const p = seq1f1b::program({.ranks = 2, .microbatches = 2, .slices = 2});
    auto const costs = even_costs(p, {{1.0}, {2.0}, {1.0}, {1.0}, {0.0}, {0.0}});
    list_request const request{.ranks = 2, .placement = p.placement, .costs = costs, .microbatches = 2, .slices = 2};
    auto const found = exact_schedule(request);
    CHECK(found.is_optimal);
    CHECK(found.makespan <= makespan(p, costs));
    auto const listed = list_schedule(request);
    CHECK(complete(listed.what, 2));
    CHECK(dependencies_in_order(listed.what));
    CHECK(found.makespan <= listed.makespan);
    CHECK(makespan(listed.what, costs) == listed.makespan);
    CHECK_THROWS_WITH(list_schedule({.ranks = 2, .placement = p.placement, .costs = costs, .microbatches = 2, .cap = bytes{9}, .slices = 2}),
        "a list schedule knows a memory cap for whole microbatches only");
}

TEST_CASE("no family beats the exact search, and 1F1B is optimal for whole backwards")
{
    list_request request{.ranks = 3, .placement = loop_placement(3, 1), .costs = unit_costs(3), .microbatches = 4};
    CHECK(exact_schedule(request).makespan == makespan(one_f_one_b::program({3, 4}), unit_costs(3)));
    request.split = true;
    request.microbatches = 3;
    auto const split = exact_schedule(request);
    CHECK(split.is_optimal);
    CHECK(split.makespan <= makespan(zb_h1::program({3, 3}), unit_costs(3)));
    CHECK(split.makespan <= makespan(zb_h2::program({3, 3}), unit_costs(3)));
}

TEST_CASE("the bound lies below every family at random costs")
{
    std::mt19937 draw{4};
    for (auto const family : schedule_families) {
        for (int round = 0; round < 10; ++round) {
            auto const p = make_program(family, {4, 8 + 2 * (round % 3)});
            auto const f = figures_of(p, random_costs(draw, static_cast<int>(p.placement.size())));
            INFO(name_of(family));
            CHECK(f.lower_bound <= f.makespan + seconds{1e-9});
            CHECK(f.largest_work <= f.lower_bound);
        }
    }
}

TEST_CASE("a building block that meets itself is refused")
{
    building_block const meets{{0}, {0}, {2}, {5}, 2};
    CHECK_FALSE(repeats(meets, 1));
    CHECK_THROWS_WITH(repeated(meets, 1, 2), "this building block meets itself when it is repeated");
    building_block const fits{{0}, {0}, {1}, {2}, 3};
    CHECK(to_text(repeated(fits, 1, 2)) == "0F0,0I0,0W0,0F1,0I1,0W1\n");
    for (int p = 1; p <= 24; ++p) {
        CHECK(repeats(v_half::block(p), p));
        CHECK(repeats(v_min::block(p), p));
    }
}
