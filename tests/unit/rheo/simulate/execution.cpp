// SPDX-License-Identifier: Apache-2.0
// Execution traces of plans: every consumer takes them and none hangs, for all families, unequal pipelines, tied tensors and what is left of a step.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "execution_plans.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/trace/chakra/check_traces.hpp"
#include "rheo/trace/chakra/play.hpp"

using namespace rheo;
using namespace test;

namespace {

struct exported_step {
    step_programs step;
    step_sizes sizes;
    execution_order order;
    chakra_trace_set traces;
};

exported_step exported(plan const& p, model_description const& model, std::int32_t ranks, microbatch_shape shape = small_shape)
{
    auto const layers = static_cast<int>(model.layers.size());
    auto const step = step_programs_of(p, reduction_units(state_of(model), layers), layers);
    REQUIRE(step.error() == "");
    auto const sizes = sizes_of(p, model, shape, fp32);
    auto const order = order_execution(*step, ranks);
    return {*step, sizes, order, read_files(files_of(*step, sizes, ranks), order.groups)};
}

void check_contract(exported_step const& e)
{
    CHECK(check_messages(e.traces) == "");
    CHECK(check_collectives(e.traces) == "");
    auto const ends = play(e.traces);
    CHECK(ends.error() == "");
}

int sum(std::vector<int> const& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0); }

std::vector<std::vector<int>> const rank_counts{{1},    {2},    {3},    {4},    {6},    {8},       {9},       {1, 1},
                                                {2, 2}, {1, 2}, {2, 4}, {4, 4}, {2, 3}, {2, 2, 2}, {3, 2, 4}, {1, 1, 1, 1}};

}  // namespace

TEST_CASE("execution: all families keep the contract and end")
{
    auto const model = deep_gpt();
    auto const layers = static_cast<int>(model.layers.size());
    std::set<std::string_view> seen;
    for (auto const family : schedule_families()) {
        for (auto const& pipelines : rank_counts) {
            std::vector<int> microbatches;
            for (std::size_t i = 0; i < pipelines.size(); ++i) {
                microbatches.push_back(2 * pipelines[i] + 2 * static_cast<int>(i % 2));
            }
            if (auto const p = plan_on(family, pipelines, microbatches, layers)) {
                INFO(name_of(family) << " on " << pipelines.size() << " pipelines of " << pipelines.front() << " ..");
                check_contract(exported(*p, model, sum(pipelines)));
                seen.insert(name_of(family));
            }
        }
    }
    CHECK(seen.size() == schedule_family_count);
}

TEST_CASE("execution: what a loss has left of a step ends, too")
{
    auto const model = deep_gpt(10);
    auto const layers = static_cast<int>(model.layers.size());
    for (auto const family : schedule_families()) {
        auto p = plan_on(family, {2, 2}, {4, 4}, layers);
        if (!p) {
            continue;
        }
        INFO(name_of(family));
        p->spares = {rank_id{5}};  // rank 4 is lost
        p->work[0] = {{microbatch_id{1}, layer_id{6}}, {microbatch_id{3}, layer_id{0}}};
        p->work[1] = {{microbatch_id{5}, no_backward}};
        auto const e = exported(*p, model, 6);
        check_contract(e);
        CHECK(e.traces.ranks[4].steps.empty());
        REQUIRE(e.traces.ranks[5].steps.size() == 1);
        CHECK(find_group(e.traces.groups, e.traces.ranks[5].steps[0].group)->ranks == std::vector{0, 1, 2, 3, 5});
    }
}

TEST_CASE("execution: recomputation and slices")
{
    auto const model = deep_gpt(6);
    auto p = *plan_on(one_f_one_b{}, {2, 4}, {4, 6}, 8);
    p.recompute.every_stage = true;
    auto const recomputed = exported(p, model, 6);
    check_contract(recomputed);
    auto const nodes = execution_nodes(recomputed.step, recomputed.sizes, recomputed.order, {0, 0}, 6);
    CHECK(std::count_if(nodes.begin(), nodes.end(), [](auto const& n) { return n.activity == activity::recompute; }) == 4);

    auto sliced = *plan_on(seq1f1b{}, {2, 4}, {4, 6}, 8);
    sliced.slices = 2;
    check_contract(exported(sliced, model, 6, {.sequences = 1, .tokens = 8, .slices = 2}));
}

TEST_CASE("execution: nodes are those of the program, with its sizes")
{
    auto const model = deep_gpt(4);
    auto const p = *plan_on(one_f_one_b{}, {2, 3}, {3, 5}, 6);
    auto const e = exported(p, model, 5);
    flops computed{};
    for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t k = 0; k < e.step.ranks[i].size(); ++k) {
            auto const nodes = execution_nodes(e.step, e.sizes, e.order, {i, k}, 5);
            std::vector<instruction> found;
            for (auto const& n : nodes) {
                if (n.type != chakra_node_type::comm_coll && n.instruction != execution_node::no_instruction) {
                    found.push_back(e.step.programs[i].rows[k][n.instruction]);
                }
                computed += n.activity == activity::update ? flops{} : n.work.computed;
            }
            std::vector<instruction> wanted;
            for (auto const& in : e.step.programs[i].rows[k]) {
                if (!is_reduction(in.kind)) {
                    wanted.push_back(in);
                }
            }
            CHECK(found == wanted);
            CHECK(nodes.back().activity == activity::update);
            CHECK(nodes[nodes.size() - 2].activity == activity::decide);
            CHECK(nodes.back().activations == bytes{});
        }
    }
    flops wanted{};
    for (auto const& layer : model.layers) {
        wanted += (forward_flops(layer, small_shape) + backward_flops(layer, small_shape)) * 8;
    }
    CHECK(computed == wanted);
}

TEST_CASE("execution: activations are those of the memory plan")
{
    auto const model = deep_gpt(10);
    auto const terms = terms_of_ranks(small_shape, fp32, 1);
    for (any_schedule const family : {any_schedule{one_f_one_b{}}, any_schedule{zb_h1{}}, any_schedule{interleaved{}}, any_schedule{dualpipe{}}}) {
        auto p = *plan_on(family, {4}, {8}, 12);
        for (bool const recompute : {false, true}) {
            p.recompute.every_stage = recompute;
            auto const e = exported(p, model, 4);
            for (std::size_t k = 0; k < 4; ++k) {
                bytes most{};
                for (auto const& n : execution_nodes(e.step, e.sizes, e.order, {0, k}, 4)) {
                    most = std::max(most, n.activations);
                }
                auto const parts = parts_at(model, p.pipelines[0], e.step.programs[0], static_cast<int>(k), terms);
                INFO(name_of(family) << " position " << k);
                CHECK(most == parts.activations + parts.kept_gradients);
            }
        }
    }
}

TEST_CASE("execution: tags are unique between two ranks")
{
    auto const model = deep_gpt();
    for (auto const family : schedule_families()) {
        auto const p = plan_on(family, {4, 2}, {8, 4}, static_cast<int>(model.layers.size()));
        if (!p) {
            continue;
        }
        auto const e = exported(*p, model, 6);
        for (auto const& rank : e.traces.ranks) {
            std::set<std::tuple<chakra_node_type, std::int32_t, std::int32_t>> tags;
            for (auto const& s : rank.steps) {
                bool const is_message = s.type == chakra_node_type::comm_send || s.type == chakra_node_type::comm_recv;
                CHECK((!is_message || tags.insert({s.type, s.peer, s.tag}).second));
            }
        }
    }
}

TEST_CASE("execution: traces end whatever operations take")
{
    auto const model = deep_gpt();
    std::mt19937 random{7};
    int hang = 0;  // without what only keeps the order of reductions
    for (auto const family : schedule_families()) {
        for (auto const& pipelines : {std::vector{2, 4}, std::vector{3, 2, 4}, std::vector{4, 4}}) {
            std::vector<int> microbatches;
            for (auto const count : pipelines) {
                microbatches.push_back(2 * count);
            }
            auto const p = plan_on(family, pipelines, microbatches, static_cast<int>(model.layers.size()));
            if (!p) {
                continue;
            }
            INFO(name_of(family));
            auto e = exported(*p, model, sum(pipelines));
            auto unordered = e.traces;
            for (std::size_t i = 0; i < e.step.ranks.size(); ++i) {
                for (std::size_t k = 0; k < e.step.ranks[i].size(); ++k) {
                    auto& rank = unordered.ranks[at(e.step.ranks[i][k])];
                    rank.dependencies.clear();
                    rank.ends.clear();
                    for (auto const& n : execution_nodes(e.step, e.sizes, e.order, {i, k}, e.traces.ranks.size())) {
                        std::set_difference(n.waits_for.begin(), n.waits_for.end(), n.only_in_order.begin(), n.only_in_order.end(),
                                            std::back_inserter(rank.dependencies));
                        rank.ends.push_back(rank.dependencies.size());
                    }
                }
            }
            for (int draw = 0; draw < 10; ++draw) {
                for (std::size_t r = 0; r < e.traces.ranks.size(); ++r) {
                    auto const slow = random() % 3 == 0 ? 40U : 4U;
                    for (std::size_t n = 0; n < e.traces.ranks[r].steps.size(); ++n) {
                        auto const took = random() % slow;
                        e.traces.ranks[r].steps[n].duration_micros = took;
                        unordered.ranks[r].steps[n].duration_micros = took;
                    }
                }
                CHECK(play(e.traces).error() == "");
                hang += play(unordered) ? 0 : 1;
            }
        }
    }
    CHECK(hang > 0);
}

TEST_CASE("execution: stages of several ranks are refused")
{
    auto p = *plan_on(one_f_one_b{}, {2}, {4}, 6);
    p.pipelines[0].stages[1].push_back(rank_id{2});
    CHECK(step_programs_of(p, {}, 6).error() == "pipeline 0 has a stage of 2 ranks; exported are plans whose stages have one rank each (plan.tensor = 1)");
    p.pipelines[0].stages[1].pop_back();
    p.optimizer.copies = 2;
    CHECK(step_programs_of(p, {}, 6).error() ==
          "the plan divides the optimizer's state; exported are plans without optimizer shards (plan.optimizer_shards = false)");
}
