// SPDX-License-Identifier: Apache-2.0
// `rheo analyze` of run folders as its users start it: rehearsed runs in which something is wrong, and one in which nothing is; refusals.
#include <algorithm>
#include <functional>
#include <regex>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "executor/plan/plan_json.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/pipeline/split_batch.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "rheo/trace/json_lines.hpp"
#include "support/catch.hpp"
#include "support/public_vectors.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

using json = nlohmann::json;

constexpr microbatch_shape shape{.sequences = 2, .tokens = 16};
constexpr modelled_machine machine{{1e9}, {1e10}, {microseconds(1.0), {1e10}}, microseconds(5.0)};

/// Two equal pipelines of two stages, five layers.
plan usual_plan()
{
    plan p{one_f_one_b{}, {}, {}, {}};
    p.pipelines.push_back({{layer_id{0}, layer_id{3}, layer_id{5}}, {{rank_id{0}}, {rank_id{1}}}});
    p.pipelines.push_back({{layer_id{0}, layer_id{3}, layer_id{5}}, {{rank_id{2}}, {rank_id{3}}}});
    p.work = deal(std::vector{8, 8});
    return p;
}

modelled_step usual_step()
{
    auto const model = gpt_model({.vocabulary = 64, .context = 16, .width = 32, .heads = 4, .blocks = 3});
    return step_of(usual_plan(), model, shape, machine);
}

/// Writes a run of 20 steps. @param change of a step, before it is rehearsed
void write_run(temporary_folder const& folder, std::function<void(modelled_step&)> const& change, std::string const& name = "run")
{
    folder.write(name + "/config.toml",
                 "schema = 1\n[model]\nvocabulary = 64\ncontext = 16\nwidth = 32\nheads = 4\nblocks = 3\n"
                 "[train]\nsteps = 20\nmicrobatches = 16\nmicrobatch = { sequences = 2, tokens = 16 }\n");
    std::string metrics;
    std::vector<std::string> traces(4);
    auto begin = seconds{1.0};
    for (int s = 0; s < 20; ++s) {
        auto step = usual_step();
        step.step = step_id{s};
        step.begin = begin;
        change(step);
        auto const rehearsed = rehearse_step(step);
        REQUIRE(rehearsed.sound.ok);
        for (auto const& e : rehearsed.events) {
            traces[at(e.rank)] += json_line{e}.text();
        }
        metrics += json{{"kind", "step"}, {"step", s}, {"attempt", 0}, {"duration_s", (rehearsed.end - begin).count}}.dump() + "\n";
        begin = rehearsed.end;
    }
    folder.write(name + "/metrics.jsonl", metrics);
    for (std::size_t r = 0; r < traces.size(); ++r) {
        folder.write(name + "/trace/rank-" + std::to_string(r) + ".jsonl", traces[r]);
    }
}

json analyzed(temporary_folder const& folder)
{
    auto const shown = run_rheo(folder, "analyze run --json");
    CAPTURE(shown.out, shown.err);
    REQUIRE(shown.exit_code == 0);
    return json::parse(shown.out);
}

std::vector<std::string> names_of_findings(json const& found)
{
    std::vector<std::string> names;
    for (auto const& finding : found.at("findings")) {
        names.push_back(finding.at("name"));
    }
    return names;
}

void expect_screen(std::string const& text)
{
    auto const lines = test::split(text, '\n');
    CHECK(lines.size() <= 60);
    CHECK(std::all_of(lines.begin(), lines.end(), [](auto const& line) { return line.size() <= 100; }));
}

}  // namespace

TEST_CASE("analyze_run: a run in which nothing is wrong has no finding")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step&) {});
    auto const found = analyzed(folder);
    CHECK(found.at("findings").empty());
    CHECK_THAT(found.at("answer").get<std::string>(), Catch::Matchers::StartsWith("nothing stands out: 20 steps of "));
    CHECK(found.at("steps").at("count") == 20);
    CHECK(found.at("bubble").at("by_schedule").get<double>() <= found.at("bubble").at("measured").get<double>() + 1e-9);
    auto const text = run_rheo(folder, "analyze run");
    CHECK(text.out.starts_with("nothing stands out: 20 steps of "));
    expect_screen(text.out);
}

TEST_CASE("analyze_run: a slow rank is named with its computations")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step& step) {
        auto& cost = step.pipelines[1].costs[1];
        cost.forward = cost.forward * 1.3;
        cost.backward = cost.backward * 1.3;
    });
    auto const found = analyzed(folder);
    REQUIRE(!found.at("findings").empty());
    auto const& first = found.at("findings").at(0);
    CHECK(first.at("name") == "slow rank");
    CHECK_THAT(first.at("message").get<std::string>(), Catch::Matchers::StartsWith("rank 3 computes 1.30 times as long as the others for its layers"));
    CHECK(found.at("ranks").at(3).at("slowness").get<double>() == Approx(1.3));
    CHECK(found.at("ranks").at(1).at("slowness").get<double>() == Approx(1.0));
    expect_screen(run_rheo(folder, "analyze run").out);
}

TEST_CASE("analyze_run: a plan is compared with its run")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step& step) { step.pipelines[1].costs[1].forward = step.pipelines[1].costs[1].forward * 3.0; });
    folder.write("plan.json", format_members(to_json(usual_plan())));
    auto const shown = run_rheo(folder, "analyze plan.json run --json");
    CAPTURE(shown.err);
    REQUIRE(shown.exit_code == 0);
    auto const found = json::parse(shown.out);
    CHECK(found.at("step").at("after_s").get<double>() > 1.05 * found.at("step").at("before_s").get<double>());
    CHECK_THAT(found.at("answer").get<std::string>(), Catch::Matchers::ContainsSubstring("rank 3 has"));
    CHECK_THAT(run_rheo(folder, "analyze plan.json run").out,
               Catch::Matchers::ContainsSubstring("plan.json at the rates of run: nothing stands out: 1 step of "));

    auto other = usual_plan();
    other.pipelines[1].cuts.back() = layer_id{4};
    folder.write("other.json", format_members(to_json(other)));
    auto const refused = run_rheo(folder, "analyze other.json run");
    CHECK(refused.exit_code == 4);
    CHECK_THAT(refused.err, Catch::Matchers::ContainsSubstring(
                                "other.json: the cuts of a pipeline must ascend from 0 to the 5 layers of the model; expected a plan for the model of run"));
}

TEST_CASE("analyze_run: clocks of hosts are aligned")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step&) {});
    auto const together = analyzed(folder);
    for (int rank = 0; rank < 4; ++rank) {
        auto const name = std::to_string(rank);
        folder.write("run/ranks/" + name + ".json", json{{"rank", rank}, {"host", rank < 2 ? "left" : "right"}}.dump());
        auto const path = "run/trace/rank-" + name + ".jsonl";
        std::string shifted;
        for (auto const& line : test::split(folder.read(path), '\n')) {
            trace_event e{};
            if (read_json_line(line, e).empty()) {
                e.start += seconds{rank < 2 ? 0.0 : 0.5};
                e.end += seconds{rank < 2 ? 0.0 : 0.5};
                shifted += json_line{e}.text();
            }
        }
        folder.write(path, shifted);
    }
    auto const apart = analyzed(folder);
    CHECK(apart.at("clocks_apart_s").get<double>() == Approx(0.5));
    CHECK(together.at("clocks_apart_s") == 0.0);
    CHECK(apart.at("findings").empty());
    CHECK(apart.at("steps").at("span_s").get<double>() == Approx(together.at("steps").at("span_s").get<double>()));
    CHECK_THAT(run_rheo(folder, "analyze run").out,
               Catch::Matchers::ContainsSubstring("clocks of hosts were up to 500 ms apart and are aligned by the ends of votes"));
}

TEST_CASE("analyze_run: a slow step is named with its rank")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step& step) {
        if (step.step == step_id{12}) {
            step.pipelines[0].costs[0].forward = seconds{2.0};
        }
    });
    auto const found = analyzed(folder);
    REQUIRE(!found.at("findings").empty());
    CHECK(names_of_findings(found) == std::vector<std::string>{"slow step"});  // one stalled step does not make all else look slow
    CHECK(found.at("steps").at("stalled") == 1);
    auto const& slowest = found.at("steps").at("slowest");
    CHECK(slowest.at("step") == 12);
    CHECK(slowest.at("because").at("rank") == 0);
    CHECK(slowest.at("because").at("class") == "forward");
}

TEST_CASE("analyze_run: waits have their names")
{
    temporary_folder const folder;
    auto const usual = usual_step();
    auto const one = usual.pipelines[0].costs[0].forward;
    write_run(folder, [&](modelled_step& step) { step.reductions.assign(step.reductions.size(), one * 8.0); });
    CHECK(names_of_findings(analyzed(folder)) == std::vector<std::string>{"exposed reductions"});
    write_run(folder, [&](modelled_step& step) { step.decide = one * 8.0; });
    CHECK(names_of_findings(analyzed(folder)) == std::vector<std::string>{"slow vote"});
    write_run(folder, [&](modelled_step& step) {
        for (auto& pipeline : step.pipelines) {
            for (auto& cost : pipeline.costs) {
                cost.send_activation = cost.send_gradient = one;
            }
        }
    });
    CHECK(names_of_findings(analyzed(folder)) == std::vector<std::string>{"exposed messages"});
    write_run(folder, [&](modelled_step& step) { step.pipelines[1].costs[0].send_activation = one * 2.0; });
    auto const found = analyzed(folder);
    REQUIRE(names_of_findings(found) == std::vector<std::string>{"slow link"});
    CHECK_THAT(found.at("findings").at(0).at("message").get<std::string>(), Catch::Matchers::StartsWith("a message from rank 2 to rank 3 is waited for "));
}

TEST_CASE("analyze_run: many small messages have their own finding")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step& step) {
        for (auto& pipeline : step.pipelines) {
            for (auto& cost : pipeline.costs) {
                cost.send_activation = cost.send_gradient = microseconds(900.0);
            }
        }
    });
    auto const found = analyzed(folder);
    REQUIRE(names_of_findings(found) == std::vector<std::string>{"many small messages"});
    auto const& first = found.at("findings").at(0);
    CHECK(first.at("message") == "pipeline 0 has 16 messages of 4.00 KiB a step, which take 900 us each");
    CHECK_THAT(first.at("detail").get<std::string>(), Catch::Matchers::StartsWith("their bytes need ") && Catch::Matchers::EndsWith(" in all were waited for"));
    CHECK(first.at("change") == "fewer slices or microbatches, or a larger microbatch");
    for (auto const& link : found.at("links")) {
        CHECK(link.at("largest_bytes") == 4096);
    }
    auto const shown = run_rheo(folder, "analyze run");
    CHECK(shown.out.starts_with("many small messages: pipeline 0 has 16 messages of 4.00 KiB a step"));
    CHECK_THAT(shown.out, Catch::Matchers::ContainsSubstring("4.00 KiB"));
    expect_screen(shown.out);
    for (int r = 0; r < 4; ++r) {  // as runs before this key wrote them
        auto const name = "run/trace/rank-" + std::to_string(r) + ".jsonl";
        folder.write(name, std::regex_replace(folder.read(name), std::regex(R"re(,"(peer|bytes)":[0-9]+)re"), ""));
    }
    auto const old = analyzed(folder);
    CHECK(names_of_findings(old) == std::vector<std::string>{"exposed messages"});
    CHECK(old.at("links").at(0).at("largest_bytes") == 0);
}

TEST_CASE("analyze_run: of two runs it says what grew")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step&) {});
    auto const slow_down = [](modelled_step& step) { step.pipelines[1].costs[0].backward = step.pipelines[1].costs[0].backward * 1.5; };
    write_run(folder, slow_down, "slower");
    auto const shown = run_rheo(folder, "analyze run slower");
    CAPTURE(shown.out, shown.err);
    REQUIRE(shown.exit_code == 0);
    CHECK(shown.out.starts_with("a step takes 1."));
    CHECK_THAT(shown.out, Catch::Matchers::ContainsSubstring("; rank 2 has "));
    CHECK_THAT(shown.out, Catch::Matchers::ContainsSubstring(" more backward\n"));
    expect_screen(shown.out);
    auto const same = run_rheo(folder, "analyze run run");
    CHECK(same.out.starts_with("no difference to speak of: "));
    auto const found = json::parse(run_rheo(folder, "analyze run slower --json").out);
    CHECK(found.at("step").at("after_s").get<double>() > found.at("step").at("before_s").get<double>());
    CHECK(found.at("ranks").size() == 4 * 11);
    REQUIRE(run_rheo(folder, "analyze run slower --csv c.csv").exit_code == 0);
    CHECK(test::split(folder.read("c.csv"), '\n').size() == 1 + 4 * 11);
}

TEST_CASE("analyze_run: a page says the same")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step& step) { step.decide = seconds{0.01}; });
    REQUIRE(run_rheo(folder, "analyze run --page a.html").exit_code == 0);
    auto const page = folder.read("a.html");
    CHECK_THAT(page, Catch::Matchers::ContainsSubstring("slow vote") && Catch::Matchers::ContainsSubstring("more microbatches in a step") &&
                         Catch::Matchers::ContainsSubstring("critical path in ms"));
}

TEST_CASE("analyze_run: CSV has a row per rank")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step&) {});
    REQUIRE(run_rheo(folder, "analyze run --csv a.csv").exit_code == 0);
    auto const rows = test::split(folder.read("a.csv"), '\n');
    REQUIRE(rows.size() == 5);
    CHECK(rows[0].starts_with("rank,steps,span_s,recovering_s,evaluating_s,critical_s,slack_s,last_at_vote,forward_s,backward_s,"));
    CHECK(rows[4].starts_with("3,20,"));
}

TEST_CASE("analyze_run: refusals say what is missing")
{
    temporary_folder const folder;
    write_run(folder, [](modelled_step&) {});
    auto const refused = [&](int code) {
        auto const shown = run_rheo(folder, "analyze run");
        CHECK(shown.exit_code == code);
        CHECK(shown.out.empty());
        return shown.err;
    };
    auto const whole = folder.read("run/trace/rank-0.jsonl");
    for (int r = 1; r < 4; ++r) {
        std::filesystem::remove(folder.path / ("run/trace/rank-" + std::to_string(r) + ".jsonl"));
    }
    folder.write("run/trace/rank-0.jsonl", whole.substr(0, whole.find('\n') + 1));
    CHECK_THAT(refused(4), Catch::Matchers::ContainsSubstring("'run' has no whole step in its traces"));
    folder.write("run/trace/rank-0.jsonl", "");
    CHECK_THAT(refused(4), Catch::Matchers::ContainsSubstring("'run' has no traces to analyze; run.trace = true records them"));
    std::filesystem::remove(folder.path / "run/config.toml");
    CHECK_THAT(refused(5), Catch::Matchers::ContainsSubstring("'run' is not the folder of a run"));
}
