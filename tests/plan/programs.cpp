// SPDX-License-Identifier: Apache-2.0
// The programs of a plan: their product ends, whatever the pipelines, the shares and what is left of the work; and
// they contain what the plan says, once.
#include "rheo/plan/programs.hpp"

#include <map>
#include <set>

#include "catch.hpp"
#include "examples.hpp"
#include "rheo/model/state.hpp"
#include "rheo/schedule/deadlock.hpp"

using namespace rheo;

namespace {

struct gpt_state {
    int layers;
    collection state;
    std::vector<reduction_unit> units;
};

gpt_state make(int layers, bool tied)
{
    auto state = state_of(gpt_model({.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = layers - 2, .tied = tied}));
    auto units = reduction_units(state, layers);
    return {layers, std::move(state), std::move(units)};
}

/// Each rank computes exactly the (kind, microbatch) that the plan's work asks of its layers, once.
void check_computations(plan const& p, std::vector<program> const& programs)
{
    REQUIRE(programs.size() == p.pipelines.size());
    for (std::size_t i = 0; i < programs.size(); ++i) {
        auto const& cuts = p.pipelines[i].cuts;
        REQUIRE(programs[i].rows.size() == cuts.size() - 1);
        for (std::size_t s = 0; s < programs[i].rows.size(); ++s) {
            std::map<int, int> forwards, backwards;
            for (auto const& instruction : programs[i].rows[s]) {
                forwards[instruction.item] += instruction.kind == instruction_kind::forward ? 1 : 0;
                backwards[instruction.item] += instruction.kind == instruction_kind::backward ? 1 : 0;
            }
            for (auto const& w : p.work[i]) {
                REQUIRE(forwards[w.microbatch.value] == 1);
                REQUIRE(backwards[w.microbatch.value] == (w.deepest < cuts[s + 1] ? 1 : 0));
            }
            int total = 0;
            for (auto const& [item, count] : forwards) {
                total += count;
            }
            REQUIRE(total == static_cast<int>(p.work[i].size()));
        }
    }
}

/// Each rank posts and awaits each unit of its layers once: all others of the unit count on it.
void check_reductions(plan const& p, std::vector<program> const& programs, std::vector<reduction_unit> const& units)
{
    for (std::size_t i = 0; i < programs.size(); ++i) {
        auto const expected = units_of_stages(units, p.pipelines[i].cuts);
        for (std::size_t s = 0; s < expected.size(); ++s) {
            std::multiset<int> posted, awaited, wanted;
            for (auto const& instruction : programs[i].rows[s]) {
                if (instruction.kind == instruction_kind::post_reduction) {
                    posted.insert(instruction.item);
                } else if (instruction.kind == instruction_kind::await_reduction) {
                    awaited.insert(instruction.item);
                }
            }
            for (auto const u : expected[s]) {
                wanted.insert(u.value);
            }
            REQUIRE(posted == wanted);
            REQUIRE(awaited == wanted);
        }
    }
}

void check_plan(plan const& p, gpt_state const& model)
{
    auto const programs = programs_of(p, model.units, model.layers);
    check_computations(p, programs);
    check_reductions(p, programs, model.units);
    auto const strict = deadlock_free<rendezvous>(programs);
    INFO(strict.sentence());
    REQUIRE(strict.ok);
    REQUIRE(deadlock_free<nonblocking>(programs).ok);
}

/// The families that a plan may name.
std::vector<std::string_view> families_that_run()
{
    std::vector<std::string_view> names;
    for (auto const name : schedule_names) {
        if (why_not_run(name).empty()) {
            names.push_back(name);
        }
    }
    return names;
}

}  // namespace

TEST_CASE("the product of all pipelines ends: every schedule that runs, many shapes, whole and partial work, shares of nothing included")
{
    std::mt19937 draw{12};
    for (bool const tied : {true, false}) {
        for (int const layers : {3, 4, 7}) {
            auto const model = make(layers, tied);
            for (auto const name : families_that_run()) {
                for (int round = 0; round < 60; ++round) {
                    check_plan(test::random_plan(draw, std::string{name}, layers, static_cast<int>(draw() % 12), round % 2 == 1), model);
                }
            }
        }
    }
}

TEST_CASE("all partial works of two small pipelines end")
{
    auto const model = make(3, true);
    auto const cuts = [](std::initializer_list<int> values) {
        std::vector<layer_id> result;
        for (auto const v : values) {
            result.push_back(layer_id{v});
        }
        return result;
    };
    for (auto const name : families_that_run()) {
        plan p{std::string{name}, {{cuts({0, 1, 3}), {{rank_id{0}}, {rank_id{1}}}}, {cuts({0, 1, 2, 3}), {{rank_id{2}}, {rank_id{3}}, {rank_id{4}}}}}, {}, {}};
        std::vector<layer_id> const depths{layer_id{0}, layer_id{1}, layer_id{2}, no_backward};
        for (auto const a : depths) {
            for (auto const b : depths) {
                for (auto const c : depths) {
                    p.work = {{{microbatch_id{0}, a}, {microbatch_id{3}, b}}, {{microbatch_id{1}, c}, {microbatch_id{2}, a}, {microbatch_id{4}, b}}};
                    check_plan(p, model);
                }
            }
        }
    }
}

TEST_CASE("evaluation is forward only, without reductions, and ends")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 50; ++round) {
        auto p = test::random_plan(draw, "1f1b", 4, 6, false);
        for (auto& list : p.work) {
            for (auto& w : list) {
                w.deepest = no_backward;
            }
        }
        auto const programs = programs_of(p, {}, 4);
        check_computations(p, programs);
        REQUIRE(deadlock_free<rendezvous>(programs).ok);
        for (auto const& pr : programs) {
            for (auto const& row : pr.rows) {
                for (auto const& i : row) {
                    REQUIRE((i.kind == instruction_kind::forward || i.kind == instruction_kind::send_activation ||
                             i.kind == instruction_kind::receive_activation));
                }
            }
        }
    }
}

TEST_CASE("a schedule that nobody knows is refused")
{
    auto p = test::example();
    p.schedule = "1b1f";
    CHECK_THROWS_WITH(programs_of(p, {}, 6), Catch::Matchers::ContainsSubstring("not known"));
}
