// SPDX-License-Identifier: Apache-2.0
// The programs of a plan: their product ends, whatever the pipelines, the shares and what is left of the work; and
// they contain what the plan says, once.
#include "rheo/plan/programs.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "examples.hpp"
#include "rheo/model/state.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

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

/// Each (kind, stage, slice of a microbatch) that the plan's work asks for is computed once, on the rank of the stage, all stages of a microbatch
/// in one copy of the model; a backward is whole or in both of its parts.
void check_computations(plan const& p, std::vector<program> const& programs)
{
    REQUIRE(programs.size() == p.pipelines.size());
    for (std::size_t i = 0; i < programs.size(); ++i) {
        auto const& pipeline = p.pipelines[i];
        auto const& what = programs[i];
        REQUIRE(placement_of(what) == placement_of(pipeline));
        REQUIRE(what.rows.size() == ranks_of(pipeline).size());
        std::map<std::array<int, 3>, int> times;  // kind, stage, item
        std::size_t forwards = 0;
        for (std::size_t row = 0; row < what.rows.size(); ++row) {
            for (auto const& each : what.rows[row]) {
                if (is_compute(each.kind)) {
                    REQUIRE(what.placement[static_cast<std::size_t>(each.stage)] == static_cast<int>(row));
                    ++times[{static_cast<int>(each.kind), each.stage, each.item}];
                    forwards += each.kind == instruction_kind::forward ? 1 : 0;
                }
            }
        }
        REQUIRE(what.slices == p.slices);
        auto const count = [&](instruction_kind kind, int stage, int item) {
            auto const found = times.find({static_cast<int>(kind), stage, item});
            return found == times.end() ? 0 : found->second;
        };
        auto const chain = stage_count(pipeline.cuts);
        for (auto const& w : p.work[i]) {
            int copy = 0;
            auto const first = w.microbatch.value * p.slices;
            while (copy + 1 < what.copies && count(instruction_kind::forward, copy * chain, first) == 0) {
                ++copy;
            }
            for (int s = copy * chain; s < (copy + 1) * chain; ++s) {
                auto const backwards = w.deepest < layers_of(pipeline, stage_id{s}).end ? 1 : 0;
                for (int item = first; item < first + p.slices; ++item) {
                    REQUIRE(count(instruction_kind::forward, s, item) == 1);
                    REQUIRE(count(instruction_kind::backward, s, item) + count(instruction_kind::input_gradient, s, item) == backwards);
                    REQUIRE(count(instruction_kind::input_gradient, s, item) == count(instruction_kind::weight_gradient, s, item));
                }
            }
        }
        REQUIRE(forwards == p.work[i].size() * static_cast<std::size_t>(chain * p.slices));
    }
}

/// Each rank posts and awaits each unit of its layers once: all others of the unit count on it.
void check_reductions(plan const& p, std::vector<program> const& programs, std::vector<reduction_unit> const& units)
{
    for (std::size_t i = 0; i < programs.size(); ++i) {
        auto const ranks = ranks_of(p.pipelines[i]);
        for (std::size_t row = 0; row < ranks.size(); ++row) {
            auto const held = layers_of(p, ranks[row]);
            std::multiset<int> posted, awaited, wanted;
            for (auto const& instruction : programs[i].rows[row]) {
                if (instruction.kind == instruction_kind::post_reduction) {
                    posted.insert(instruction.item);
                } else if (instruction.kind == instruction_kind::await_reduction) {
                    awaited.insert(instruction.item);
                }
            }
            for (std::size_t u = 0; u < units.size(); ++u) {
                if (!units[u].tensors.empty() && std::any_of(units[u].layers.begin(), units[u].layers.end(), [&](layer_id l) { return contains(held, l); })) {
                    wanted.insert(static_cast<int>(u));
                }
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
    INFO(strict.message());
    REQUIRE(strict.ok);
    REQUIRE(deadlock_free<nonblocking>(programs).ok);
}

}  // namespace

TEST_CASE("programs: products of pipelines end in all forms")
{
    std::mt19937 draw{12};
    for (bool const tied : {true, false}) {
        for (int const layers : {3, 5, 9}) {
            auto const model = make(layers, tied);
            for (auto const name : schedule_names()) {
                for (int round = 0; round < 20; ++round) {
                    auto p = test::random_plan(draw, *parse_schedule(name), layers, static_cast<int>(draw() % 12), round % 2 == 1);
                    p.slices = 1 + round / 2 % 3;
                    check_plan(p, model);
                }
            }
        }
    }
}

TEST_CASE("programs: alike pipelines have the programs made for each")
{
    auto const model = make(9, true);
    std::mt19937 draw{7};
    int alike = 0;
    for (auto const name : schedule_names()) {
        for (int round = 0; round < 24; ++round) {
            auto const ranks = 2 + static_cast<int>(draw() % 3);
            plan p{*parse_schedule(name), {}, {}, {}};
            p.recompute.every_stage = round % 2 == 1;
            p.slices = p.recompute.every_stage ? 1 : 1 + round / 2 % 3;
            auto const seed = draw();
            auto const count = 1 + static_cast<int>(draw() % 9);
            bool const is_deeper = round % 6 == 5;  // one pipeline ends its backwards elsewhere
            std::vector<layer_id> depths;
            for (int m = 0; m < count; ++m) {
                depths.push_back(round % 4 == 3 ? layer_id{static_cast<int>(draw() % 9)} : layer_id{0});
            }
            for (int i = 0; i < 4; ++i) {
                std::mt19937 same{seed + (i == 2 ? 1 : 0)};  // cuts of its own
                p.pipelines.push_back(test::instance_for(same, p.schedule, 9, ranks, i * ranks));
                p.work.emplace_back();
                for (int m = 0; m < count; ++m) {
                    auto const depth = depths[static_cast<std::size_t>(m)];
                    microbatch_id const number{(3 - i) * 20 + (i == 3 ? 2 : 1) * m};  // the last: each second
                    p.work.back().push_back({number, i == 1 && is_deeper ? layer_id{(depth.value + 4) % 9} : depth});
                }
            }
            auto const programs = programs_of(p, model.units, model.layers);
            for (std::size_t i = 0; i < 4; ++i) {
                CHECK(programs[i] == detail::program_of(p, i, model.units, model.layers));
            }
            CHECK(detail::distance_of_work(p, 0, 1).has_value() != is_deeper);
            alike += is_deeper ? 0 : 1;
            CHECK((count == 1 || !detail::distance_of_work(p, 0, 3)));
        }
    }
    CHECK(alike == 20 * static_cast<int>(schedule_names().size()));
}

TEST_CASE("programs: all partial works of two small pipelines end")
{
    auto const model = make(3, true);
    auto const cuts = [](std::initializer_list<int> values) {
        std::vector<layer_id> result;
        for (auto const v : values) {
            result.push_back(layer_id{v});
        }
        return result;
    };
    for (auto const name : schedule_names()) {
        plan p{
            *parse_schedule(name), {{cuts({0, 1, 3}), {{rank_id{0}}, {rank_id{1}}}}, {cuts({0, 1, 2, 3}), {{rank_id{2}}, {rank_id{3}}, {rank_id{4}}}}}, {}, {}};
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

TEST_CASE("programs: evaluation is forward only and ends")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 50; ++round) {
        auto p = test::random_plan(draw, one_f_one_b{}, 4, 6, false);
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
                    REQUIRE(
                        (i.kind == instruction_kind::forward || i.kind == instruction_kind::send_activation || i.kind == instruction_kind::receive_activation));
                }
            }
        }
    }
}

TEST_CASE("programs: a substitute schedule gives its reason")
{
    auto const of = [](any_schedule family, int ranks, int layers, int microbatches) {
        std::mt19937 draw{1};
        plan p{family, {test::instance_for(draw, family, layers, ranks, 0)}, {{}}, {}};
        for (int m = 0; m < microbatches; ++m) {
            p.work[0].push_back({microbatch_id{m}, layer_id{0}});
        }
        return schedule_of(p, 0);
    };
    CHECK(of(one_f_one_b{}, 3, 5, 2).error.empty());
    CHECK(of(zb_v{}, 2, 5, 3).error.empty());
    CHECK(of(dualpipe{}, 2, 5, 4).error.empty());
    auto const odd = of(dualpipe{}, 3, 5, 6);
    CHECK(odd.family == one_f_one_b{});
    CHECK(odd.error == "dualpipe cannot be made for 3 ranks: this schedule runs in two directions and needs an even number of ranks");
    auto const thin = of(zb_v{}, 3, 5, 6);
    CHECK(thin.family == one_f_one_b{});
    CHECK(thin.error == "zb-v has 6 stages on 3 ranks, this pipeline has 3");
    auto const few = of(dualpipe{}, 2, 5, 3);
    CHECK(name_of(few) == "list");
    CHECK(few.error == "dualpipe cannot be made for 3 microbatches: this schedule needs at least twice as many microbatches as ranks");
    CHECK(complete(few.compute, 3).ok);
    CHECK(of(zb_v{}, 2, 5, 0).compute.rows == std::vector<std::vector<instruction>>(2));
}

TEST_CASE("programs: recomputation shows in plan and programs")
{
    auto const plain = test::example();
    auto p = plain;
    p.recompute.every_stage = true;
    CHECK(digest_of(p) != digest_of(plain));
    auto const with = programs_of(p, {}, 6);
    auto without = with;
    int evictions = 0;
    for (auto& program : without) {
        for (auto& row : program.rows) {
            evictions += static_cast<int>(std::erase_if(row, [](instruction i) { return is_local(i.kind); }));
        }
    }
    CHECK(evictions > 0);
    CHECK(without == programs_of(plain, {}, 6));
    CHECK(deadlock_free<rendezvous>(with).ok);
}

TEST_CASE("programs: recompute levels change digest, not programs")
{
    auto const plain = test::example();
    auto p = plain;
    for (auto const& pipeline : p.pipelines) {
        p.recompute.levels.emplace_back(pipeline.stages.size(), std::vector(6, recompute_level::none));
    }
    auto other = p;
    p.recompute.levels.front().front()[1] = recompute_level::cheap;
    other.recompute.levels.front().front()[1] = recompute_level::full;
    CHECK(digest_of(p) != digest_of(plain));
    CHECK(digest_of(p) != digest_of(other));
    CHECK(programs_of(p, {}, 6) == programs_of(plain, {}, 6));
    CHECK(recompute_levels_at(p, {true, pipeline_id{0}, 0})[1] == recompute_level::cheap);
    CHECK(recompute_levels_at(plain, {true, pipeline_id{0}, 0}).empty());
}

TEST_CASE("programs: named stages recompute, in the digest")
{
    auto const plain = test::example();
    auto all = plain;
    all.recompute.every_stage = true;
    auto p = plain;
    for (auto const& pipeline : p.pipelines) {
        p.recompute.stages.emplace_back(pipeline.stages.size(), false);
    }
    p.recompute.stages.front().front() = true;
    CHECK(digest_of(p) != digest_of(all));
    CHECK(digest_of(p) != digest_of(plain));
    int evictions = 0;
    auto const programs = programs_of(p, {}, 6);
    for (std::size_t i = 0; i < programs.size(); ++i) {
        CHECK(recomputed_stages(plain, i) == std::vector<bool>(p.pipelines[i].stages.size(), false));
        CHECK(recomputed_stages(all, i) == std::vector<bool>(p.pipelines[i].stages.size(), true));
        for (auto const& row : programs[i].rows) {
            for (auto const& each : row) {
                if (is_local(each.kind)) {
                    ++evictions;
                    CHECK((i == 0 && each.stage == 0));
                }
            }
        }
    }
    CHECK(evictions > 0);
    CHECK(deadlock_free<rendezvous>(programs).ok);
}

TEST_CASE("programs: slices change digest and schedule family")
{
    auto const plain = test::example();
    auto p = plain;
    p.slices = 3;
    CHECK(digest_of(p) != digest_of(plain));
    auto seq = p;
    seq.schedule = seq1f1b{};
    auto const whole = to_stage_work(p.work[0], p.pipelines[0].cuts);
    CHECK(schedule_of(p, 0).compute == with_slices(program_of_work<one_f_one_b>(2, whole), 3));
    CHECK(schedule_of(seq, 0).compute == seq1f1b::program({.ranks = 2, .microbatches = 2, .slices = 3}));
    seq.slices = 1;
    CHECK(schedule_of(seq, 0).compute == schedule_of(plain, 0).compute);
}

TEST_CASE("programs: an unknown schedule is refused")
{
    auto p = test::example();
    p.schedule = {};
    CHECK_THROWS_WITH(programs_of(p, {}, 6), Catch::Matchers::ContainsSubstring("not known"));
}
