// SPDX-License-Identifier: Apache-2.0
// `rheo trace export` and `diff` as their users start them: a plan is exported, passes the check, equals itself and differs from others; each refusal.
#include <filesystem>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;

void write_job(temporary_folder const& folder)
{
    folder.write("text", std::string(4000, 'a'));
    folder.write("job.toml",
                 "schema = 1\ndata.paths = [\"text\"]\nmodel.context = 32\nmodel.width = 32\nmodel.heads = 2\nmodel.blocks = 6\n"
                 "train.microbatches = 8\ntrain.microbatch = { sequences = 1, tokens = 16 }\nplan.pipelines = [2, 3]\n");
    folder.write("plan.json", run_rheo(folder, "plan job.toml --json").out);
}

std::string refused(temporary_folder const& folder, std::string const& arguments, int exit_code)
{
    auto const shown = run_rheo(folder, "trace " + arguments);
    CHECK(shown.exit_code == exit_code);
    CHECK(shown.out.empty());
    return shown.err;
}

}  // namespace

TEST_CASE("trace_export_command: a plan is exported and checked")
{
    temporary_folder const folder;
    write_job(folder);
    auto const shown = run_rheo(folder, "trace export plan.json --config job.toml --chakra traces/job");
    CHECK(shown.err.empty());
    CHECK(shown.exit_code == 0);
    CHECK_THAT(shown.out, ContainsSubstring("traces/job: the plan's step of plan.json, 5 ranks, "));
    auto const checked = run_rheo(folder, "trace check traces/job");
    CHECK(checked.exit_code == 0);
    CHECK_THAT(checked.out, ContainsSubstring("traces/job: 5 ranks, "));
    CHECK_THAT(checked.out, ContainsSubstring("keeps the contract of consumers and ends"));
}

TEST_CASE("trace_export_command: the first difference is named")
{
    temporary_folder const folder;
    write_job(folder);
    CHECK(run_rheo(folder, "trace export plan.json --config job.toml --chakra a").exit_code == 0);
    CHECK(run_rheo(folder, "trace export plan.json --config job.toml --chakra b").exit_code == 0);
    auto const same = run_rheo(folder, "trace diff a b");
    CHECK(same.exit_code == 0);
    CHECK_THAT(same.out, ContainsSubstring("a and b: the same "));
    CHECK_THAT(same.out, ContainsSubstring("times were not compared (--times)"));

    folder.write("other.json", run_rheo(folder, "plan job.toml --json --set plan.schedule=gpipe").out);
    CHECK(run_rheo(folder, "trace export other.json --config job.toml --chakra c").exit_code == 0);
    auto const other = run_rheo(folder, "trace diff a c");
    CHECK(other.exit_code == 1);
    CHECK_THAT(other.out, ContainsSubstring("a and c differ: rank 0, node "));
    CHECK_THAT(other.out, ContainsSubstring(": the name is '"));

    folder.write("fewer.json", run_rheo(folder, "plan job.toml --json --set plan.pipelines=[4]").out);
    CHECK(run_rheo(folder, "trace export fewer.json --config job.toml --chakra a").exit_code == 0);  // the files of five ranks were there
    CHECK(run_rheo(folder, "trace diff a b").out == "a and b differ: 4 and 5 ranks\n");
    CHECK(run_rheo(folder, "trace check a").exit_code == 0);
}

TEST_CASE("trace_export_command: refusals")
{
    temporary_folder const folder;
    write_job(folder);
    CHECK_THAT(refused(folder, "export plan.json --config job.toml", 2), ContainsSubstring("--chakra PREFIX is missing"));
    CHECK_THAT(refused(folder, "export plan.json --chakra x", 2), ContainsSubstring("a plan needs --config"));
    CHECK_THAT(refused(folder, "export plan.json --config job.toml --chakra x --step 3", 2), ContainsSubstring("--step chooses a step of a run"));
    CHECK_THAT(refused(folder, "check x --chakra y", 2), ContainsSubstring("--chakra is no option of rheo trace check"));
    CHECK_THAT(refused(folder, "diff x", 2), ContainsSubstring("rheo trace diff: expected two prefixes, not 1"));
    CHECK_THAT(refused(folder, "diff x y", 4), ContainsSubstring("x.0.et: no such file"));
    folder.write("smaller.toml",
                 "schema = 1\ndata.paths = [\"text\"]\nmodel.context = 32\nmodel.width = 32\nmodel.heads = 2\nmodel.blocks = 5\n"
                 "train.microbatch = { sequences = 1, tokens = 16 }\n");
    CHECK_THAT(
        refused(folder, "export plan.json --config smaller.toml --chakra x", 4),
        ContainsSubstring("plan.json: the cuts of a pipeline must ascend from 0 to the 7 layers of the model; expected a plan for the model of smaller.toml"));
    folder.write("grid.toml", folder.read("job.toml") + "train.shards = 2\nplan.tensor = 2\n");
    folder.write("grid.json", run_rheo(folder, "plan grid.toml --json --set plan.pipelines=[4]").out);
    CHECK_THAT(refused(folder, "export grid.json --config grid.toml --chakra x", 4), ContainsSubstring("pipeline 0 has a stage of 2 ranks"));
    for (auto const& [text, wrong] :
         {std::pair{R"("cuts": [])", "the cuts of a pipeline must ascend"}, std::pair{R"("cuts": [0, 9, 8])", "the cuts of a pipeline must ascend"},
          std::pair{R"("ranks": [[0],[2]])", "the plan names rank 2 twice"}, std::pair{R"("ranks": [[0],[2000000000]])", "2000000000"},
          std::pair{R"("microbatches": [0, 0, 1])", "each of the 8 microbatches of a step once and whole"}}) {
        auto plan = nlohmann::json::parse(folder.read("plan.json"));
        plan.erase("digest");
        plan.erase("forecast");
        plan["pipelines"][0].update(nlohmann::json::parse("{" + std::string{text} + "}"));
        folder.write("broken.json", plan.dump());
        CHECK_THAT(refused(folder, "export broken.json --config job.toml --chakra x", 4), ContainsSubstring(wrong));
    }
    CHECK(!std::filesystem::exists(folder.path / "x.0.et"));
}
