// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/plan_report.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "executor/plan/equal_pipelines.hpp"
#include "executor/plan/forecast_json.hpp"
#include "executor/plan/plan_file.hpp"
#include "executor/plan/planning.hpp"
#include "executor/plan/text_table.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

/// What counts against plan.memory_mib.
bytes memory_of(plan const& p, model_description const& model, run_config const& config, rank_id rank)
{
    return needed_bytes(memory_parts_of(p, model, config, rank));
}

run_config five_ranks()
{
    run_config config;
    config.model.blocks = 4;
    config.train.microbatches = 5;
    config.plan.pipelines = {2, 3};
    config.plan.shares = {2, 3};
    config.plan.min_ranks = 2;
    return config;
}

}  // namespace

TEST_CASE("plan_report: the plan of five ranks, as people see it")
{
    auto const config = five_ranks();
    auto const model = gpt_model(config.model);
    auto const p = make_plan(model, config, 5)->plan;
    CHECK(drawing_of(p) == R"(pipeline 0
0 | F0 F1 .  .  B0 =  .  B1 =
1 | .  F0 B0 =  F1 B1 =  .  .
pipeline 1
0 | F2 F3 F4 .  .  .  .  B2 =  .  B3 =  .  B4 =
1 | .  F2 F3 .  .  B2 =  F4 B3 =  .  B4 =  .  .
2 | .  .  F2 B2 =  F3 B3 =  F4 B4 =  .  .  .  .
)");
    auto const text = format_plan(p, model, config, make_forecast(p, model, config));
    CHECK(text.find("checked: with all transfers and reductions, no rank waits for ever") != std::string::npos);
    CHECK(text.find("pipeline 1: 3 of 5 microbatches") != std::string::npos);
    for (int r = 0; r < 5; ++r) {
        CHECK(after_loss_of(rank_id{r}, p, model, config).find("2 pipelines of 2 + 2 ranks, shares 3 + 2") == 0);
    }
}

TEST_CASE("plan_report: prints templates, instantiations, outcomes")
{
    auto const config = five_ranks();
    auto const model = gpt_model(config.model);
    auto const first = make_plan(model, config, 5);
    auto const what = make_forecast(first->plan, model, config, {.node_size = 3, .device_memory = mebibytes(64)});
    auto const text = format_plan(first->plan, model, config, what);
    auto const has = [&](std::string const& line) {
        CAPTURE(line, text);
        CHECK(text.find(line) != std::string::npos);
    };
    has("templates (as modelled, at 3 microbatches)\n  ranks ");
    has("proved");
    has("templates of whole nodes of 3 devices (planned and priced; plan.tensor sets how many ranks share a stage)\n");
    has("; devices per stage ");
    has("what ranks run (2 pipelines wanted; the plan, and the quickest of fewer ranks; steps as modelled)\n");
    has("  5      2 + 3  ");
    has("  4      2 + 2  ");
    has("  fewer pipelines than wanted\n");
    has("  1      1 rank is too few: the smallest pipeline template takes 2\n");
    has("as it stands, any 1 rank can be lost, but the loss of node 0 would lose state");  // rank 2 stands beside rank 0, which has the other copy
    has("  node 0   the only copy of layer 0 is lost");
    has("  node 1   3  ");
    has("  any two   of 10 pairs, ");
    for (auto const& [rank, parts] : what.memory) {
        has(fmt::format("    rank {:<4}{:>9.2f} MiB   layers ", rank.value, in_mebibytes(memory_of(first->plan, model, config, rank))));
        has(fmt::format(
            "\n                            {:.2f} master parameters, {:.2f} moments, {:.2f} accumulators, {:.2f} reduced gradients, {:.2f} activations, {:.2f} to work in besides\n",
            in_mebibytes(parts.state.master), in_mebibytes(parts.state.moments), in_mebibytes(parts.state.accumulators), in_mebibytes(parts.state.reduced),
            in_mebibytes(parts.activations), in_mebibytes(parts.workspace)));
    }
    has(" lose the last copy of a layer");

    auto const tight = format_plan(first->plan, model, config, make_forecast(first->plan, model, config, {.device_memory = mebibytes(1)}));
    CHECK(tight.find("  2      no cuts found whose stages fit into the memory of their devices") != std::string::npos);
    auto limited = config;
    limited.plan.memory = mebibytes(64);
    CHECK(make_forecast(first->plan, model, limited, {}).templates == make_forecast(first->plan, model, config, {.device_memory = mebibytes(64)}).templates);
    CHECK(make_forecast(first->plan, model, limited, {.device_memory = mebibytes(1)}).templates ==
          make_forecast(first->plan, model, config, {.device_memory = mebibytes(1)}).templates);
    limited.plan.recompute = recompute_policy::selective;
    CHECK(format_plan(first->plan, model, limited, make_forecast(first->plan, model, limited, {})).find("; the fullest with full recomputation)") !=
          std::string::npos);
}

TEST_CASE("plan_report: JSON in the file that training reads")
{
    auto const config = five_ranks();
    auto const model = gpt_model(config.model);
    auto const p = make_plan(model, config, 5)->plan;
    auto const what = make_forecast(p, model, config, {.node_size = 2, .device_memory = mebibytes(64)});
    temporary_folder const folder;
    folder.write("plan.json", plan_as_json(p, what));
    CHECK(read_plan_file((folder.path / "plan.json").string()) == p);

    auto const whole = nlohmann::json::parse(folder.read("plan.json"));
    CHECK(whole["kind"] == "rheo plan");
    auto const& predicted = whole["forecast"];
    CHECK(predicted["times"] == "modelled");
    CHECK(predicted["step_s"] == what.step->count);
    CHECK(predicted["instantiations"][0]["step_s"] == what.step->count);
    REQUIRE(predicted["templates"].size() == what.templates.size());
    for (std::size_t i = 0; i < what.templates.size(); ++i) {
        auto const& split = what.templates[i].split;
        auto const& object = predicted["templates"][i];
        CHECK(object["ranks"] == what.templates[i].nodes);
        CHECK(object["makespan_s"] == split->makespan.count);
        CHECK(object["bound_s"] <= object["makespan_s"]);
        CHECK(object["proved"] == split->is_optimal());
        CHECK(object["cuts"].size() == split->cuts.size());
        CHECK(object["fullest_bytes"] == what.templates[i].fullest.count);
        CHECK(object["fitting_microbatches"] == what.templates[i].most_microbatches);
    }
    CHECK(predicted["node_templates"].size() == what.node_templates.size());
    CHECK(predicted["node_templates"][0]["devices"] == what.node_templates[0].split->devices);
    REQUIRE(predicted["instantiations"].size() == 5);
    CHECK(predicted["instantiations"][0]["ranks"] == 5);
    CHECK(predicted["instantiations"][0]["pipelines"] == std::vector{2, 3});
    CHECK(predicted["instantiations"][0]["microbatches"] == what.instantiations[0]->shares);
    CHECK(predicted["instantiations"][3]["degraded"] == true);
    CHECK(predicted["instantiations"][4] == nlohmann::json{{"ranks", 1}, {"error", what.instantiations[4].error()}});
    REQUIRE(predicted["memory"].size() == 5);
    for (int r = 0; r < 5; ++r) {
        auto const& memory = predicted["memory"][static_cast<std::size_t>(r)];
        CHECK(memory["rank"] == r);
        std::int64_t sum = 0;
        for (auto const& [key, value] : memory.items()) {
            sum += key == "rank" || key == "needed_bytes" || key == "workspace_bytes" ? 0 : value.get<std::int64_t>();
        }
        CHECK(memory["needed_bytes"] == sum);
        CHECK(sum == memory_of(p, model, config, rank_id{r}).count);
        CHECK(memory["workspace_bytes"] > 0);
    }
    CHECK(predicted["survivable"]["ranks"] == 1);
    CHECK(predicted["survivable"]["message"] == to_string(what.as_it_stands));
    REQUIRE(predicted["after_loss_of_rank"].size() == 5);
    for (int r = 0; r < 5; ++r) {
        auto const& loss = predicted["after_loss_of_rank"][static_cast<std::size_t>(r)];
        CHECK(loss["lost"] == std::vector{r});
        CHECK(loss["microbatches"] == std::vector{3, 2});
        CHECK(loss["step_s"] == what.ranks[static_cast<std::size_t>(r)].step->count);
        CHECK(loss["pipelines"].size() == 2);
        CHECK(loss["copied_bytes"] == what.ranks[static_cast<std::size_t>(r)].next.copies.certificate.moved.value.count);
        CHECK(loss["copied_bytes"] >= 0);
    }
    REQUIRE(predicted["after_loss_of_node"].size() == 3);
    CHECK(predicted["after_loss_of_node"][0]["lost"] == std::vector{0, 1});
    CHECK(predicted["after_loss_of_node"][0]["degraded"] == true);
    auto const& pairs = predicted["after_loss_of_two_ranks"];
    CHECK(pairs["pairs"] == 10);
    CHECK(pairs["as_wanted"].get<int>() + pairs["fewer_pipelines"].get<int>() + pairs["too_few_ranks"].get<int>() + pairs["state_lost"].get<int>() == 10);
    CHECK(pairs["state_lost"] > 0);
}

TEST_CASE("plan_report: warns about an only copy")
{
    auto config = five_ranks();
    config.plan.pipelines = {3};
    config.plan.shares = {};
    auto const model = gpt_model(config.model);
    auto const p = make_plan(model, config, 3)->plan;
    CHECK(after_loss_of(rank_id{0}, p, model, config) == "the only copy of layer 0 is lost; without a checkpoint the run ends with exit code 6");
}

TEST_CASE("plan_report: memory is state plus items in flight")
{
    auto config = five_ranks();
    config.plan.pipelines = {1};
    config.plan.min_ranks = 1;
    config.plan.shares = {};
    auto const model = gpt_model(config.model);
    auto const p = make_plan(model, config, 1)->plan;
    auto untied_shape = config.model;
    untied_shape.tied = false;
    auto const untied = gpt_model(untied_shape);
    constexpr std::int64_t table = 256 * 64;
    auto const joined = reduction_buffer_bytes(table, dtype::i64);  // in which both ends of the tied table are
    CHECK(memory_of(p, untied, config, rank_id{0}) - memory_of(p, model, config, rank_id{0}) == bytes{16 * table} - joined);
    CHECK(memory_of(p, model, config, rank_id{1}) == bytes{0});
    auto const parts = memory_parts_of(p, model, config, rank_id{0});
    CHECK(total(parts.state) + item_bytes(parts) + parts.workspace == total(parts));
    CHECK(parts.activations + parts.kept_gradients == item_bytes(parts));
    CHECK(total(parts) - parts.workspace == needed_bytes(parts));
    auto gpipe = p;
    gpipe.schedule = rheo::gpipe{};  // all five microbatches in flight instead of one
    auto const state = total(parts.state);
    CHECK((memory_of(gpipe, model, config, rank_id{0}) - state) / (memory_of(p, model, config, rank_id{0}) - state) == 5);
}

namespace {

/// A profile of the model's layers in a file: as modelled, so many times as long, and one layer slow.
std::string written_profile(temporary_folder const& folder, model_description const& model, run_config const& config, double times, std::size_t slow)
{
    auto layers = planned_layers(model, config);
    for (std::size_t l = 0; l < layers.size(); ++l) {
        layers[l].forward = layers[l].forward * times * (l == slow ? 4 : 1);
        layers[l].backward = layers[l].backward * times * (l == slow ? 4 : 1);
    }
    std::string text = "layer,forward,backward,parameters,activations,boundary\n";
    for (std::size_t l = 0; l < layers.size(); ++l) {
        text += fmt::format("{},{},{},0,0,{}\n", l, layers[l].forward.count, layers[l].backward.count, layers[l].boundary.count);
    }
    return folder.write("layers.csv", text);
}

/// The lines from the one that begins so to the next empty one.
std::vector<std::string> table_in(std::string const& text, std::string const& title)
{
    std::vector<std::string> lines;
    auto at = text.find(title);
    REQUIRE(at != std::string::npos);
    for (at = text.find('\n', at) + 1; at < text.size() && text[at] == ' ' && text.compare(at, 9, "  any two") != 0; at = text.find('\n', at) + 1) {
        lines.push_back(text.substr(at, text.find('\n', at) - at));
    }
    return lines;
}

/// The columns of a table whose cells are separated by two spaces or more.
std::vector<std::string> cells_in(std::string const& line)
{
    std::vector<std::string> cells;
    for (auto at = line.find_first_not_of(' '); at != std::string::npos;) {
        auto const end = line.find("  ", at);
        cells.push_back(line.substr(at, end - at));
        at = end == std::string::npos ? end : line.find_first_not_of(' ', end);
    }
    return cells;
}

run_config job_of(int failures, int microbatches)
{
    run_config config;
    config.model.blocks = 4;
    config.train.microbatches = microbatches;
    config.plan.failures = failures;
    config.plan.min_ranks = 2;
    return config;
}

}  // namespace

TEST_CASE("plan_report: step after a loss matches the table")
{
    auto const config = job_of(1, 6);
    auto const model = gpt_model(config.model);
    auto const p = make_plan(model, config, 11)->plan;
    auto const what = make_forecast(p, model, config);
    REQUIRE(what.ranks.size() == 11);
    for (auto const& outcome : what.ranks) {
        CAPTURE(outcome.lost.front().value, outcome.next.shares);
        CHECK(outcome.step == what.instantiations[1]->time);
        CHECK(outcome.next.pipelines.size() == 4);  // local rules alone: five of two, and a step 31 % longer
    }
}

TEST_CASE("plan_report: loss outcomes match the table")
{
    int promised = 0;
    int said = 0;
    for (double const mtbf_h : {1e-9, 1e-5, 10'000.0}) {
        for (int ranks = 4; ranks <= 12; ++ranks) {
            for (int const spares : {0, 1}) {
                auto config = job_of(1 + ranks % 2, 3 + ranks % 4);
                config.plan.mtbf = hours(mtbf_h);
                config.plan.spares = spares;
                auto const model = gpt_model(config.model);
                auto const first = make_plan(model, config, ranks);
                REQUIRE(first);
                auto const what = make_forecast(first->plan, model, config);
                CHECK(what.step == first->time);
                CHECK(what.instantiations[0]->time == first->time);
                bool same = true;
                bool quickest = true;
                for (auto const& outcome : what.ranks) {
                    if (outcome.next.pipelines.empty()) {
                        continue;
                    }
                    std::vector<int> sizes;
                    for (auto const& pipeline : outcome.next.pipelines) {
                        sizes.push_back(static_cast<int>(ranks_of(pipeline).size()));
                    }
                    same = same && outcome.step == what.instantiations[1]->time && sizes == what.instantiations[1]->sizes &&
                           outcome.next.shares == what.instantiations[1]->shares;
                    quickest = quickest && outcome.step == what.instantiations[1]->time;
                }
                CAPTURE(ranks, spares, mtbf_h);
                CHECK((quickest || mtbf_h < 1));
                auto const text = format_plan(first->plan, model, config, what);
                auto const line = table_in(text, "what ranks run").at(2);
                CHECK((line.find("after a loss ") == std::string::npos) == same);
                ++(same ? promised : said);
            }
        }
    }
    CHECK(promised > 10);
    CHECK(said > 5);
}

TEST_CASE("plan_report: follows plan.layer_profile and says so")
{
    temporary_folder const folder;
    auto config = job_of(1, 6);
    auto const model = gpt_model(config.model);
    auto const modelled = make_plan(model, config, 9);
    auto const before = make_forecast(modelled->plan, model, config);
    config.plan.layer_profile = written_profile(folder, model, config, 1000.0, 1);
    auto const profiled = make_plan(model, config, 9);
    REQUIRE(profiled);
    auto const what = make_forecast(profiled->plan, model, config);
    CHECK(profiled->time > modelled->time * 500.0);
    CHECK(what.step == profiled->time);
    CHECK(what.templates.front().split->makespan > before.templates.front().split->makespan * 500.0);
    CHECK(profiled->plan.pipelines.front().cuts != modelled->plan.pipelines.front().cuts);  // a pipeline of two is not cut in the middle
    for (std::size_t n = 0; n < what.instantiations.size(); ++n) {
        CHECK((!what.instantiations[n] || what.instantiations[n]->time > before.instantiations[n]->time * 500.0));
    }
    for (std::size_t r = 0; r < what.ranks.size(); ++r) {
        CHECK(*what.ranks[r].step > *before.ranks[r].step * 500.0);
        CHECK(what.ranks[r].step == what.instantiations[1]->time);
    }
    auto const text = format_plan(profiled->plan, model, config, what);
    CHECK(text.find("modelled") == std::string::npos);
    auto const source = "as profiled in " + config.plan.layer_profile;
    for (auto const* place : {"templates (", "steps "}) {
        CHECK(text.find(place + source) != std::string::npos);
    }
    CHECK(nlohmann::json::parse(plan_as_json(profiled->plan, what))["forecast"]["times"] == config.plan.layer_profile);
    // What is no profile of this model is refused before anything is planned by it.
    config.plan.layer_profile = folder.write("short.csv", "layer,forward,backward,parameters,activations,boundary\n0,1,1,0,0,0\n");
    CHECK(make_plan(model, config, 9).error() == config.plan.layer_profile + ": a profile of 1 layers, but the model has 6");
    CHECK(plan_error(profiled->plan, model, config, 9) == config.plan.layer_profile + ": a profile of 1 layers, but the model has 6");
}

TEST_CASE("plan_report: columns stay separate")
{
    CHECK(to_text({{"a"}, {"b", true}, {"c"}},
                  {{{"1 + 1 + 14 + 4", "4809456.370 ms", "x"}}, {{"2", "1 ms"}, "a sentence"}, {{"3"}, "another that is longer than columns"}}) ==
          "  a                            b  c\n"
          "  1 + 1 + 14 + 4  4809456.370 ms  x\n"
          "  2                         1 ms  a sentence\n"
          "  3               another that is longer than columns\n");
    temporary_folder const folder;
    auto config = job_of(1, 20);
    config.plan.min_ranks = 1;
    auto const model = gpt_model(config.model);
    config.plan.layer_profile = written_profile(folder, model, config, 50'000.0, 2);
    auto const first = make_plan(model, config, 13);
    REQUIRE(first);
    auto const what = make_forecast(first->plan, model, config);
    auto const text = format_plan(first->plan, model, config, what);
    auto const numbers = table_in(text, "what ranks run");
    REQUIRE(numbers.size() == 14);
    for (std::size_t n = 0; n < 13; ++n) {
        auto const cells = cells_in(numbers[n + 1]);
        INFO(numbers[n + 1]);
        REQUIRE(cells.size() >= 4);
        CHECK(cells[0] == std::to_string(13 - n));
        CHECK(cells[1] == format_sum(what.instantiations[n]->sizes));
        CHECK(cells[2] == format_sum(what.instantiations[n]->shares));
        CHECK(cells[3] == fmt::format("{:.3f} ms", what.instantiations[n]->time.count * 1e3));
    }
    CHECK(what.instantiations.back()->time > seconds{1000});
    auto const losses = table_in(text, "after a loss, by plan.mtbf_h");
    REQUIRE(losses.size() == 14);
    for (std::size_t r = 0; r < 13; ++r) {
        auto const cells = cells_in(losses[r + 1]);
        INFO(losses[r + 1]);
        REQUIRE(cells.size() >= 5);
        CHECK(cells[0] == fmt::format("rank {}", r));
        CHECK(cells[2] == format_sum(what.ranks[r].next.shares));
        CHECK(cells[3] == fmt::format("{:.3f} ms", what.ranks[r].step->count * 1e3));
        CHECK(cells[4] == fmt::format("{:.2f} MiB", in_mebibytes(what.ranks[r].next.copies.certificate.moved.value)));
    }
    for (auto const* title : {"templates (", "what ranks run", "after a loss, by plan.mtbf_h"}) {  // all columns begin or end where their titles do
        auto const lines = table_in(text, title);
        auto const at = lines.front().find("cuts");
        for (auto const& line : lines) {
            CHECK((at == std::string::npos || line.compare(at - 2, 2, "  ") == 0));
        }
    }
}
