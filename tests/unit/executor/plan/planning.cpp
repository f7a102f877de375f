// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/planning.hpp"

#include <algorithm>
#include <bit>
#include <sstream>
#include <string>
#include <vector>

#include "executor/plan/plan_file.hpp"
#include "executor/plan/plan_json.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/state.hpp"
#include "rheo/pipeline/arranged_by_nodes.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

run_config config_of(std::vector<int> pipelines, std::vector<int> shares = {})
{
    run_config config;
    config.model.blocks = 6;
    config.plan.pipelines = std::move(pipelines);
    config.plan.shares = std::move(shares);
    return config;
}

result<initial_plan> first_of(run_config const& config, int ranks) { return make_plan(gpt_model(config.model), config, ranks); }

/// What counts against plan.memory_mib.
bytes memory_of(plan const& p, model_description const& model, run_config const& config, rank_id rank)
{
    return needed_bytes(memory_parts_of(p, model, config, rank));
}

std::string json_of(plan const& p) { return format_members(to_json(p)); }

}  // namespace

TEST_CASE("planning: every first plan can be run")
{
    for (int ranks = 1; ranks <= 20; ++ranks) {
        for (int failures = 0; failures <= 2; ++failures) {
            for (int least = 1; least <= 3 && least <= ranks; ++least) {
                auto config = config_of({});
                config.plan.failures = failures;
                config.plan.min_ranks = least;
                auto const first = first_of(config, ranks);
                REQUIRE(first);
                CHECK(plan_error(first->plan, gpt_model(config.model), config, ranks).empty());
                CHECK(first->degraded == (ranks / least < failures + 1));
                for (auto const& pipeline : first->plan.pipelines) {
                    CHECK(static_cast<int>(pipeline.stages.size()) >= least);
                }
            }
        }
    }
}

TEST_CASE("planning: memory and messages follow the dtype")
{
    auto config = config_of({2});
    config.plan.failures = 0;
    auto const model = gpt_model(config.model);
    auto in_bf16 = config;
    in_bf16.train.dtype = stored_numbers::brain_float16;
    in_bf16.run.device = compute_device::cuda;
    REQUIRE(!check(in_bf16));
    auto const parts_of = [&](run_config const& c, int rank) { return memory_parts_of(first_of(config, 2)->plan, model, c, rank_id{rank}); };
    for (int const rank : {0, 1}) {
        auto const plain = parts_of(config, rank);
        auto const half = parts_of(in_bf16, rank);
        CHECK(half.state.master == plain.state.master);
        CHECK(half.state.stored * 2 == plain.state.master);
        CHECK(plain.state.stored == bytes{});
        CHECK(half.activations < plain.activations);
        CHECK(half.workspace * 2 == plain.workspace);
        auto kept = in_bf16;
        kept.train.state = stored_numbers::brain_float16;
        REQUIRE(!check(kept));
        auto const quarter = parts_of(kept, rank);
        CHECK(quarter.state.master * 2 == half.state.master);
        CHECK(quarter.state.moments * 2 == half.state.moments);
        CHECK(quarter.state.stored == bytes{});
        CHECK(quarter.state.reduced == half.state.reduced);
        CHECK(quarter.state.accumulators == half.state.accumulators);
    }
    // A limit between what the two need is kept by one of them.
    auto const needed = [&](run_config const& c) {
        auto const p = first_of(c, 2)->plan;
        return std::max(memory_of(p, model, c, rank_id{0}), memory_of(p, model, c, rank_id{1}));
    };
    config.train.microbatch = in_bf16.train.microbatch = {16, 64};  // activations outweigh the stored parameters
    config.plan.layers = in_bf16.plan.layers = {4, 4};              // that the memory does not change the cuts
    REQUIRE(needed(in_bf16) < needed(config));
    config.plan.memory = in_bf16.plan.memory = needed(in_bf16) + kibibytes(10);
    CHECK_FALSE(first_of(config, 2));
    CHECK(first_of(in_bf16, 2));
    in_bf16.plan.memory -= kibibytes(20);
    CHECK_FALSE(first_of(in_bf16, 2));
    auto const plain = planned_layers(model, config);
    auto const half = planned_layers(model, in_bf16);
    for (std::size_t l = 0; l < plain.size(); ++l) {
        CHECK(half[l].boundary * 2 == plain[l].boundary);
        CHECK(half[l].persistent - plain[l].persistent == bytes{2 * parameter_count(model.layers[l])});
        CHECK(half[l].per_microbatch <= plain[l].per_microbatch);
    }
}

TEST_CASE("planning: a single pipeline gets the exact memory")
{
    for (int const ranks : {1, 2}) {
        auto config = config_of({ranks});
        config.train.sums = sum_integers::int32;  // no gradients beside the sums of what no other rank holds
        config.plan.failures = 0;
        auto const model = gpt_model(config.model);
        auto const plain = first_of(config, ranks);
        REQUIRE(plain);
        bytes most;
        for (rank_id r{0}; r.value < ranks; ++r) {
            most = std::max(most, memory_of(plain->plan, model, config, r));
        }
        config.plan.memory = most;
        CHECK(first_of(config, ranks)->plan == plain->plan);
    }
}

TEST_CASE("planning: cuts only where the exact plan fits")
{
    for (auto const how : {recompute_policy::never, recompute_policy::selective, recompute_policy::automatic}) {
        for (auto const* family : {"1f1b", "gpipe", "zb-h1", "zb-h2", "interleaved", "zb-v", "seq1f1b"}) {
            for (int const ranks : {1, 2, 4}) {
                for (int const slices : {1, 2}) {
                    if (how == recompute_policy::automatic && slices > 1) {
                        continue;
                    }
                    auto config = config_of({ranks});
                    config.plan.failures = 0;
                    config.plan.schedule = *parse_schedule(family);
                    config.plan.recompute = how;
                    config.train.microbatch = {8, 64, slices};
                    INFO(family << " on " << ranks << " in " << slices
                                << (how == recompute_policy::never       ? ""
                                    : how == recompute_policy::selective ? ", recomputed"
                                                                         : ", recomputed"));
                    int refused = 0;
                    int cut = 0;
                    for (config.plan.memory = mebibytes(1); cut < 20; config.plan.memory = config.plan.memory * 103 / 100) {
                        REQUIRE(config.plan.memory < mebibytes(1000));
                        if (auto const first = first_of(config, ranks)) {
                            ++cut;
                        } else {
                            ++refused;
                            CHECK(cut == 0);
                            CHECK(first.error().starts_with("no pipeline of "));  // and nothing about what a rank would hold
                        }
                    }
                    CHECK(refused > 0);
                }
            }
        }
    }
}

TEST_CASE("planning: given pipelines keep sizes and shares")
{
    auto config = config_of({2, 4}, {3, 5});
    config.plan.min_ranks = 2;
    auto const in_order = first_of(config, 6)->plan;
    config.plan.node_size = 3;
    auto const arranged = first_of(config, 6)->plan;
    CHECK(missing_nodes(arranged.pipelines, 3, 2) < missing_nodes(in_order.pipelines, 3, 2));  // a stage that both nodes have a part of stays
    CHECK(plan_error(arranged, gpt_model(config.model), config, 6).empty());
    CHECK(arranged.work == in_order.work);
    for (std::size_t p = 0; p < 2; ++p) {
        CHECK(arranged.pipelines[p].cuts == in_order.pipelines[p].cuts);
    }
    config.plan.pipelines = {1, 3};  // a half of a node beside a half of the other: no arrangement helps
    config.plan.node_size = 2;
    config.plan.min_ranks = 1;
    auto const error = first_of(config, 4);
    REQUIRE(error);
    CHECK(missing_nodes(error->plan.pipelines, 2, 2) > 0);
}

TEST_CASE("planning: spares are last; f nodes can be lost")
{
    auto config = config_of({});
    config.plan.min_ranks = 2;
    config.plan.spares = 3;
    auto const first = first_of(config, 9);
    REQUIRE(first);
    CHECK(first->plan.spares == std::vector{rank_id{6}, rank_id{7}, rank_id{8}});
    CHECK(first_of(config_of({2, 3}), 5)->plan.spares.empty());
    int made_of_nodes = 0;
    for (int node_size = 2; node_size <= 4; ++node_size) {
        for (int nodes = 2; nodes <= 5; ++nodes) {
            for (int failures = 1; failures <= 2; ++failures) {
                auto of_nodes = config_of({});
                of_nodes.plan.failures = failures;
                of_nodes.plan.node_size = node_size;
                auto of_ranks = of_nodes;
                of_ranks.plan.node_size = 1;
                auto const model = gpt_model(of_nodes.model);
                auto const ranks = nodes * node_size;
                auto const made = first_of(of_nodes, ranks);
                REQUIRE(made);
                CHECK(plan_error(made->plan, model, of_nodes, ranks).empty());
                auto const lost_at = [&](plan const& p) {
                    std::vector<rank_holdings> members;
                    for (rank_id r{0}; r.value < ranks; ++r) {
                        members.push_back({r, {}, {}, {}});
                    }
                    auto const held = holdings_in({.pipelines = p.pipelines}, members);
                    return survivability_of(held, tensor_bytes_of(state_of(model), committed_formats), nodes_of(held, node_size)).nodes;
                };
                auto const plain = first_of(of_ranks, ranks);
                CHECK(lost_at(made->plan) >= std::min(failures, lost_at(plain->plan)));
                CHECK((lost_at(made->plan) >= failures) == (nodes > failures));
                made_of_nodes += made->plan == plain->plan ? 0 : 1;
            }
        }
    }
    CHECK(made_of_nodes > 0);
}

TEST_CASE("planning: pipelines and shares of the config are used")
{
    auto const first = first_of(config_of({2, 3}, {5, 3}), 5);
    REQUIRE(first);
    REQUIRE(first->plan.pipelines.size() == 2);
    CHECK(first->plan.pipelines[0].stages == std::vector<std::vector<rank_id>>{{rank_id{0}}, {rank_id{1}}});
    CHECK(first->plan.pipelines[1].stages == std::vector<std::vector<rank_id>>{{rank_id{2}}, {rank_id{3}}, {rank_id{4}}});
    CHECK(first->plan.work[0].size() == 5);
    CHECK(first->plan.work[1].size() == 3);
    CHECK_FALSE(first->degraded);
    CHECK(first_of(config_of({5}), 5)->degraded);
    auto const by_speed = first_of(config_of({2, 3}), 5);
    CHECK(by_speed->plan.work[0].size() < by_speed->plan.work[1].size());
}

TEST_CASE("planning: manual cuts are used or rejected")
{
    auto config = config_of({2, 3}, {5, 3});
    config.plan.layers = {1, 7, 3, 4, 1};
    auto const first = first_of(config, 5);
    REQUIRE(first);
    CHECK(first->plan.pipelines[0].cuts == std::vector{layer_id{0}, layer_id{1}, layer_id{8}});
    CHECK(first->plan.pipelines[1].cuts == std::vector{layer_id{0}, layer_id{3}, layer_id{7}, layer_id{8}});
    CHECK(plan_error(first->plan, gpt_model(config.model), config, 5).empty());
    config.plan.layers = {1, 7, 3, 5};
    CHECK(first_of(config, 5).error() == "plan.layers = [1, 7, 3, 5] must name the layers of 5 stages, not of 4");
    config.plan.layers = {1, 7, 3, 4, 2};
    CHECK(first_of(config, 5).error() == "plan.layers = [1, 7, 3, 4, 2] gives pipeline 1 9 layers, but the model has 8");
    config = config_of({2}, {8});
    config.plan.schedule = zb_v{};
    config.plan.layers = {1, 3, 3, 1};
    CHECK(first_of(config, 2)->plan.pipelines[0].cuts.size() == 5);
}

TEST_CASE("planning: every schedule round-trips through its file")
{
    temporary_folder const folder;
    for (auto const name : schedule_names()) {
        for (int ranks = 1; ranks <= 6; ++ranks) {
            auto config = config_of({});
            config.plan.schedule = *parse_schedule(name);
            config.train.microbatch.slices = name == "seq1f1b" ? 4 : 1 + ranks % 2;
            INFO(name << " on " << ranks);
            auto const first = first_of(config, ranks);
            REQUIRE(first);
            REQUIRE(plan_error(first->plan, gpt_model(config.model), config, ranks).empty());
            REQUIRE(read_plan_file(folder.write("plan.json", json_of(first->plan))) == first->plan);
        }
    }
}

TEST_CASE("planning: plan beyond the memory of a rank is rejected")
{
    auto config = config_of({2}, {8});
    config.plan.memory = kibibytes(512);
    CHECK(first_of(config, 2).error().starts_with("no pipeline of 2 ranks keeps within plan.memory_mib = 0.5; the least that one needs is "));
    config.plan.memory = mebibytes(1000);
    auto const first = first_of(config, 2);
    REQUIRE(first);
    config.plan.memory = kibibytes(512);
    CHECK(plan_error(first->plan, gpt_model(config.model), config, 2).find("of state and activations, but plan.memory_mib is 0.5; the largest part is ") !=
          std::string::npos);
}

TEST_CASE("planning: auto: fewest stages recompute within memory")
{
    temporary_folder const folder;
    int some = 0;
    int refused = 0;
    for (auto const* family : {"1f1b", "gpipe", "zb-h1", "interleaved", "zb-v", "dualpipe"}) {
        for (int const ranks : {2, 4}) {
            INFO(family << " on " << ranks);
            auto config = config_of({ranks}, {8});
            config.plan.schedule = *parse_schedule(family);
            auto const model = gpt_model(config.model);
            auto const fullest = [&](plan const& p) {
                bytes most;
                for (rank_id r{0}; r.value < ranks; ++r) {
                    most = std::max(most, memory_of(p, model, config, r));
                }
                return most;
            };
            auto const plain = first_of(config, ranks)->plan;
            auto all = plain;
            all.recompute.every_stage = true;
            config.plan.recompute = recompute_policy::automatic;
            auto const& cuts = plain.pipelines[0].cuts;  // by hand, that the memory does not change them
            for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
                config.plan.layers.push_back(cuts[s + 1].value - cuts[s].value);
            }
            for (int part = -1; part <= 5; ++part) {  // from less than is possible to more than is needed
                bytes const limit{fullest(all).count + part * (fullest(plain).count - fullest(all).count) / 4};
                config.plan.memory = limit;
                auto const chosen = first_of(config, ranks);
                if (!chosen) {
                    CHECK(part <= 0);
                    CHECK(chosen.error().find("plan.memory_mib") != std::string::npos);
                    ++refused;
                    continue;
                }
                CHECK(fullest(chosen->plan) <= limit);
                auto const stages = chosen->plan.pipelines[0].stages.size();
                std::size_t fewest = stages + 1;  // of all sets of stages
                for (unsigned marks = 0; marks < 1U << stages; ++marks) {
                    auto tried = chosen->plan;
                    tried.recompute = {.stages = {{}}};
                    for (std::size_t s = 0; s < stages; ++s) {
                        tried.recompute.stages[0].push_back((marks >> s & 1U) != 0);
                    }
                    if (auto const count = static_cast<std::size_t>(std::popcount(marks)); count < fewest && fullest(tried) <= limit) {
                        fewest = count;
                    }
                }
                auto const marked = recomputed_stages(chosen->plan, 0);
                CHECK(static_cast<std::size_t>(std::count(marked.begin(), marked.end(), true)) == fewest);
                CHECK(recomputes_stages(chosen->plan) == (fewest > 0));
                some += fewest > 0 && fewest < stages ? 1 : 0;
                CHECK(plan_error(chosen->plan, model, config, ranks).empty());
                CHECK(read_plan_file(folder.write("plan.json", json_of(chosen->plan))) == chosen->plan);
            }
        }
    }
    CHECK(some > 0);
    CHECK(refused > 0);
}

TEST_CASE("planning: selective: fewest layers recompute")
{
    temporary_folder const folder;
    int some = 0;
    for (auto const* family : {"1f1b", "gpipe", "zb-h1", "zb-v", "dualpipe"}) {
        for (int const slices : {1, 2}) {
            INFO(family << " in " << slices);
            auto config = config_of({2}, {8});
            config.plan.schedule = *parse_schedule(family);
            config.train.microbatch.slices = slices;
            auto const model = gpt_model(config.model);
            auto const plain = first_of(config, 2)->plan;
            auto const& cuts = plain.pipelines[0].cuts;
            for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
                config.plan.layers.push_back(cuts[s + 1].value - cuts[s].value);
            }
            auto const fullest = std::max(memory_of(plain, model, config, rank_id{0}), memory_of(plain, model, config, rank_id{1}));
            config.plan.recompute = recompute_policy::selective;
            bool fits = true;
            for (int part = 21; part > 0; --part) {
                bytes const limit{fullest.count * part / 20};
                config.plan.memory = limit;
                auto const chosen = first_of(config, 2);
                CHECK(fits >= static_cast<bool>(chosen));  // never again with less
                fits = static_cast<bool>(chosen);
                if (!fits) {
                    continue;
                }
                CHECK(chosen->plan.recompute.levels.empty() == (fullest <= limit));
                CHECK_FALSE(recomputes_stages(chosen->plan));
                for (rank_id const rank : {rank_id{0}, rank_id{1}}) {
                    CHECK(memory_of(chosen->plan, model, config, rank) <= limit);
                    for (auto const how : recompute_levels_at(chosen->plan, position_of(chosen->plan, rank))) {
                        CHECK((slices == 1 || how != recompute_level::full));
                        some += how == recompute_level::cheap ? 1 : 0;
                    }
                }
                CHECK(plan_error(chosen->plan, model, config, 2).empty());
                CHECK(read_plan_file(folder.write("plan.json", json_of(chosen->plan))) == chosen->plan);
            }
            CHECK_FALSE(fits);
            auto const error = first_of(config, 2).error();
            INFO(error);
            CHECK(error.find("plan.memory_mib") != std::string::npos);
        }
    }
    CHECK(some > 0);
    // By hand, with templates that would fit: the sentence of the memory plan.
    auto config = config_of({1}, {8});
    config.plan.schedule = gpipe{};
    auto const model = gpt_model(config.model);
    auto p = first_of(config, 1)->plan;
    config.plan.recompute = recompute_policy::selective;
    config.plan.memory = total(memory_parts_of(p, model, config, rank_id{0}).state) + kibibytes(10);
    choose_recomputation(p, model, config);
    auto const message = plan_error(p, model, config, 1);
    INFO(message);
    CHECK(message.find("rank 0 has ") == 0);
    CHECK(message.find(" are needed with full recomputation; the largest part is ") != std::string::npos);
}

TEST_CASE("planning: what cannot be planned is answered with the reason")
{
    CHECK(first_of(config_of({9}), 9).error() == "a pipeline of 9 ranks cannot be cut from a model of 8 layers");
    auto config = config_of({});
    config.plan.min_ranks = 3;
    CHECK(first_of(config, 2).error() == "2 ranks are too few: the smallest pipeline template takes 3");
    config.plan.min_ranks = 9;
    CHECK(first_of(config, 9).error() == "a pipeline of plan.min_ranks = 9 ranks cannot be cut from a model of 8 layers");
}

TEST_CASE("planning: a plan file reads as the plan that was written")
{
    temporary_folder folder;
    auto const config = config_of({2, 3}, {3, 5});
    auto first = first_of(config, 5);
    auto p = first->plan;
    p.work[1][2].deepest = layer_id{3};
    p.spares = {rank_id{7}};
    CHECK(read_plan_file(folder.write("plan.json", json_of(p))) == p);
}

TEST_CASE("planning: a bad plan file is refused in one sentence")
{
    temporary_folder folder;
    auto const good = json_of(first_of(config_of({2, 3}), 5)->plan);
    auto const refusal = [&](std::string const& text) {
        auto const path = folder.write("p", text);
        try {
            read_plan_file(path);
        } catch (exit_error const& error) {
            return std::string{error.what()}.substr(path.size());
        }
        return std::string{"taken"};
    };
    auto const replaced = [&](std::string const& what, std::string const& by) {
        auto text = good;
        auto const at = text.find(what);
        REQUIRE(at != text.npos);
        return text.replace(at, what.size(), by);
    };
    CHECK(refusal(good) == "taken");
    CHECK(refusal("") == ": no valid JSON; expected a plan as rheo plan --json prints it");
    CHECK(refusal(good.substr(0, good.size() / 2)) == ": no valid JSON; expected a plan as rheo plan --json prints it");
    CHECK(refusal("[1]") == ": no plan: expected an object with 'schema'");
    CHECK(refusal(replaced("\"schema\": 1", "\"schema\": 2")) == ": a plan of schema 2, expected 1");
    CHECK(refusal(replaced("\"1f1b\"", "\"x\"")) == ": no schedule is called 'x'; the nearest known name is '1f1b'");
    CHECK(refusal(replaced("\"cuts\"", "\"cutz\"")) == ": no plan: expected an object with 'cuts'");
    CHECK(refusal(replaced("\"cuts\": [0", "\"cuts\": [-1")) == ": no plan: 'cuts' must be a list of whole numbers from 0 on");
    CHECK(refusal(replaced("[[0], [1]]", "[0, 1]")) == ": no plan: 'ranks' must be a list of lists of whole numbers from 0 on");
    CHECK(refusal(replaced("[[0], [1]]", "[[1], [0]]")) ==
          ": the plan is not the one that its digest was made of; a plan that was changed by hand goes without 'digest'");
    CHECK_THROWS_WITH(read_plan_file("/nowhere/p"), "/nowhere/p: cannot be read: No such file or directory");
}

TEST_CASE("planning: shares that do not fit are rejected")
{
    auto const config = [] {
        auto c = config_of({3});
        c.train.shards = 4;
        c.plan.tensor = {{2, 1}};
        c.plan.failures = 0;
        return c;
    }();
    auto const model = on_grid(gpt_model(config.model), config.train.shards);
    auto const made = make_plan(model, config, 3);
    REQUIRE(made);
    auto const good = made->plan;
    REQUIRE(good.pipelines[0].stages.size() == 2);
    auto const refusal = [&](std::vector<std::vector<int>> const& shares) {
        auto p = good;
        p.pipelines[0].shares = shares;
        return plan_error(p, model, config, 3);
    };
    CHECK(refusal({}).empty());
    CHECK(refusal({{1, 3}, {4}}).empty());
    CHECK(refusal({{1, 3}}) == "a pipeline of 2 stages has shares for 1");
    CHECK(refusal({{4}, {4}}) == "stage 0 has 2 ranks, but shares for 1");
    CHECK(refusal({{4, 0}, {4}}) == "stage 0 gives rank 1 no shard; each rank of a group needs one");
    CHECK(refusal({{1, 2}, {4}}) == "the shares of stage 0 add up to 3, but train.shards is 4");
    CHECK(refusal({{1, 3}, {5}}) == "the shares of stage 1 add up to 5, but train.shards is 4");
    auto p = good;
    p.pipelines[0].stages = {{rank_id{0}, rank_id{1}}, {rank_id{2}}, {rank_id{0}, rank_id{1}}, {rank_id{2}}};
    p.pipelines[0].shares = {{1, 3}, {4}, {2, 2}, {4}};
    CHECK(plan_error(p, model, config, 3) == "rank 0 has different shares in stages 0 and 2; a position has the same shares for all of its stages");
}

TEST_CASE("planning: plan that does not fit the run is rejected")
{
    auto const config = config_of({2, 3});
    auto const model = gpt_model(config.model);
    auto const good = first_of(config, 5)->plan;
    auto const refusal = [&](auto change, int ranks = 5) {
        auto p = good;
        change(p);
        return plan_error(p, model, config, ranks);
    };
    CHECK(refusal([](plan&) {}).empty());
    CHECK(refusal([](plan&) {}, 6) == "the plan has no place for rank 5 of 6; a rank without work stands among the spares");
    CHECK(refusal([](plan&) {}, 4) == "the plan names rank 4 twice, or it is none of the 4 ranks that are started");
    CHECK(refusal([](plan& p) { p.spares = {rank_id{0}}; }) == "the plan names rank 0 twice, or it is none of the 5 ranks that are started");
    CHECK(refusal([](plan& p) { p.slices = 2; }) == "the plan is for microbatches in 2 slices, train.slices is 1");
    CHECK(refusal([](plan& p) { p.schedule = {}; }) == "a plan needs a schedule");
    CHECK(refusal([](plan& p) { p.pipelines.clear(); }) == "a plan needs at least one pipeline");
    CHECK(refusal([](plan& p) { p.pipelines[0].cuts.back() = layer_id{7}; }) == "the cuts of a pipeline must ascend from 0 to the 8 layers of the model");
    CHECK(refusal([](plan& p) { p.pipelines[0].cuts.insert(p.pipelines[0].cuts.begin() + 1, layer_id{1}); }) ==
          "a pipeline needs a rank for each stage between its cuts");
    CHECK(refusal([](plan& p) { p.pipelines[0].stages[0].clear(); }) == "a pipeline needs a rank for each stage between its cuts");
    CHECK(refusal([](plan& p) { p.pipelines[0].stages[0].push_back(rank_id{4}); }) ==
          "a stage has 2 ranks, but train.shards is 1: each rank of a group needs a shard");
    CHECK(refusal([](plan& p) { p.work[0].pop_back(); }) == "the plan must name each of the 8 microbatches of a step once and whole");
    CHECK(refusal([](plan& p) { p.work[0][0] = p.work[1][0]; }) == "the plan must name each of the 8 microbatches of a step once and whole");
    CHECK(refusal([](plan& p) { p.work[0][0].deepest = layer_id{1}; }) == "the plan must name each of the 8 microbatches of a step once and whole");
}
