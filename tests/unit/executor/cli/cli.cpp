// SPDX-License-Identifier: Apache-2.0
// The program `rheo` as its users start it: every refusal is one sentence and an exit code.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

namespace {

/// A config of a model that trains in no time, in the folder.
void write_config(temporary_folder const& folder, std::string const& more = "")
{
    folder.write("text", std::string(3000, 'a') + "bcdefgh");
    folder.write("c.toml",
                 "schema = 1\n[model]\ncontext = 8\nwidth = 8\nheads = 2\nblocks = 1\n[data]\npaths = [\"text\"]\n"
                 "[train]\nsteps = 2\nmicrobatches = 2\nmicrobatch = { sequences = 1, tokens = 8 }\n[plan]\nfailures = 0\n" +
                     more);
}

void refused(outcome const& result, int exit_code, std::string const& message)
{
    CHECK(result.exit_code == exit_code);
    CHECK(result.err == "rheo: " + message + "\n");
    CHECK(result.out.empty());
}

}  // namespace

TEST_CASE("cli: a wrong command line: exit code 2")
{
    temporary_folder const folder;
    std::string const hint = "; rheo --help and rheo train --help say what there is";
    refused(run_rheo(folder, ""), 2, "A subcommand is required" + hint);
    refused(run_rheo(folder, "foo"), 2, "'foo' is not a command; the nearest is info" + hint);
    refused(run_rheo(folder, "shedule 1f1b"), 2, "'shedule' is not a command; the nearest is schedule" + hint);
    refused(run_rheo(folder, "train"), 2, "config is required" + hint);
    refused(run_rheo(folder, "train c.toml --jsn"), 2, "The following argument was not expected: --jsn" + hint);
    refused(run_rheo(folder, "plan c.toml --ranks 0"), 2, "--ranks: Value 0 not in range 1 to 65536" + hint);
    CHECK(run_rheo(folder, "--help").exit_code == 0);
    CHECK(run_rheo(folder, "--version").out.starts_with("rheo 0."));
}

TEST_CASE("cli: a wrong config: exit code 2, before anything starts")
{
    temporary_folder const folder;
    write_config(folder, "shedule = \"gpipe\"\n");
    refused(run_rheo(folder, "train none.toml"), 2, "none.toml: cannot be read: No such file or directory");
    refused(run_rheo(folder, "train c.toml"), 2, "c.toml:15: unknown key plan.shedule; the nearest known one is plan.schedule");
    write_config(folder, "pipelines = [2, 3]\n");
    refused(run_rheo(folder, "train c.toml"), 2, "c.toml:15: plan.pipelines = [2, 3] asks for 5 ranks, but 1 is started");
    refused(run_rheo(folder, "plan c.toml --ranks 4"), 2, "c.toml:15: plan.pipelines = [2, 3] asks for 5 ranks, but 4 are started");
    refused(run_rheo(folder, "train c.toml --set train.step=1"), 2, "--set train.step=1: unknown key train.step; the nearest known one is train.steps");
    refused(run_rheo(folder, "train c.toml --inject kill"), 2, "--inject: the fault 'kill' is not of the form kill:rank@step[:phase]");
    refused(run_rheo(folder, "train c.toml --plan none.json"), 2, "none.json: cannot be read: No such file or directory");
    write_config(folder);
    refused(run_rheo(folder, "plan c.toml"), 2, "c.toml: plan.pipelines names no ranks; say how many with --ranks");
    CHECK_FALSE(std::filesystem::exists(folder.path / "runs"));
}

TEST_CASE("cli: one message and one exit code for all ranks")
{
    temporary_folder const folder;
    auto const second = run_rheo(folder, "train none.toml", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2");
    CHECK(second.exit_code == 2);
    CHECK(second.err.empty());
    refused(run_rheo(folder, "train none.toml", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2"), 2, "none.toml: cannot be read: No such file or directory");
    write_config(folder, "pipelines = [2, 3]\n");
    refused(run_rheo(folder, "train c.toml", "PMI_RANK=0 PMI_SIZE=3"), 2, "c.toml:15: plan.pipelines = [2, 3] asks for 5 ranks, but 3 are started");
}

TEST_CASE("cli: what cannot be planned: exit code 3")
{
    temporary_folder const folder;
    write_config(folder);
    refused(run_rheo(folder, "train c.toml --set plan.min_ranks=2"), 3, "c.toml: 1 rank is too few: the smallest pipeline template takes 2");
    refused(run_rheo(folder, "plan c.toml --ranks 9 --set plan.min_ranks=4"), 3,
            "c.toml: a pipeline of plan.min_ranks = 4 ranks cannot be cut from a model of 3 layers");
    refused(run_rheo(folder, "train c.toml --set run.folder=none --set plan.memory_mib=0.001"), 3,
            "c.toml: no pipeline of at most 1 rank keeps within plan.memory_mib = 0.001; the least that one needs is 0.11");
    CHECK_FALSE(std::filesystem::exists(folder.path / "none"));  // before anything was made
    auto const plan = run_rheo(folder, "plan c.toml --ranks 2 --json");
    CHECK(plan.exit_code == 0);
    folder.write("plan.json", plan.out);
    refused(run_rheo(folder, "train c.toml --plan plan.json"), 3, "plan.json: the plan names rank 1 twice, or it is none of the 1 ranks that are started");
}

TEST_CASE("cli: bad data: exit code 4")
{
    temporary_folder const folder;
    write_config(folder);
    refused(run_rheo(folder, "train c.toml --data none"), 4, "data: 'none' does not exist");
    refused(run_rheo(folder, "train c.toml --set model.vocabulary=99"), 4,
            "data: 'text' has the token 99 at position 3001, but model.vocabulary = 99 ends before it");
}

TEST_CASE("cli: a run folder that cannot be made: exit code 5")
{
    temporary_folder const folder;
    write_config(folder);
    refused(run_rheo(folder, "train c.toml --set run.folder=text/run"), 5, "run folder: 'text/run' cannot be made: Not a directory");
}

TEST_CASE("cli: train works without mpirun; --json prints JSON")
{
    temporary_folder const folder;
    write_config(folder);
    auto const result = run_rheo(folder, "train c.toml --json");
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    auto const report = nlohmann::json::parse(result.out);
    CHECK(report["steps"] == 2);
    CHECK(report["exit_code"] == 0);
    CHECK(report["digest"].get<std::string>().size() == 32);
    CHECK(result.out == folder.read("runs/c/report.json"));
    CHECK(folder.read("runs/c/config.toml").find("steps = 2") != std::string::npos);
    CHECK(nlohmann::json::parse(folder.read("runs/c/trace.json"))["traceEvents"].size() > 10);

    auto const plan = run_rheo(folder, "plan c.toml --ranks 1 --json");
    folder.write("plan.json", plan.out);
    auto const again = run_rheo(folder, "train c.toml --json --plan plan.json --set run.folder=again --set plan.schedule=gpipe");
    CHECK(nlohmann::json::parse(again.out)["digest"] == report["digest"]);
}

TEST_CASE("cli: a fork needs a checkpoint: exit code 2")
{
    temporary_folder const folder;
    write_config(folder);
    refused(run_rheo(folder, "train c.toml --resume fork"), 2,
            "--resume fork: runs/c has no checkpoint that a new folder could start from; without --resume a run begins there");
    CHECK_FALSE(std::filesystem::exists(folder.path / "runs/c-fork-1"));
    CHECK_FALSE(std::filesystem::exists(folder.path / "runs/c/metrics.jsonl"));
    CHECK(run_rheo(folder, "train c.toml --set checkpoint.every_steps=1").exit_code == 0);
    CHECK(run_rheo(folder, "train c.toml --set train.steps=3 --resume fork").exit_code == 0);
    CHECK(std::filesystem::exists(folder.path / "runs/c-fork-1/report.json"));
}

namespace {

/// The libraries that the program's processes load for a command, those that they open later included.
std::vector<std::string> loaded_for(temporary_folder const& folder, std::string const& arguments)
{
    auto const ended = run_rheo(folder, arguments, "LD_DEBUG=files LD_DEBUG_OUTPUT=loaded");
    INFO(arguments << ": " << ended.err);
    CHECK(ended.exit_code == 0);
    std::vector<std::string> files;
    for (auto const& entry : std::filesystem::directory_iterator{folder.path}) {
        if (auto const name = entry.path().filename().string(); name.starts_with("loaded.")) {
            std::istringstream lines{folder.read(name)};
            for (std::string line; std::getline(lines, line);) {
                constexpr std::string_view loads = "calling init: ";
                if (auto const at = line.find(loads); at != line.npos) {
                    files.push_back(std::filesystem::path{line.substr(at + loads.size())}.filename().string());
                }
            }
            std::filesystem::remove(entry.path());
        }
    }
    return files;
}

}  // namespace

TEST_CASE("cli: commands without ranks start without MPI")
{
    temporary_folder const folder;
    write_config(folder);
    folder.write("clocks.csv",
                 "stage,instruction,frequency,time,energy\n0,forward,1000,1,100\n0,forward,500,2,80\n0,backward,1000,2,200\n0,backward,500,4,160\n"
                 "1,forward,1000,1,100\n1,forward,500,2,80\n1,backward,1000,2,200\n1,backward,500,4,160\n");
    REQUIRE(run_rheo(folder, "train c.toml --set checkpoint.every_steps=2").exit_code == 0);
    for (std::string const command :
         {"--version", "--help", "schedule zb-v --ranks 4 --microbatches 8", "plan c.toml --ranks 2", "plan c.toml --ranks 2 --schedule all",
          "frontier clocks.csv --microbatches 4", "report runs/c", "export runs/c weights", "import weights in"}) {
        CAPTURE(command);
        auto const loaded = loaded_for(folder, command);
        CHECK(std::any_of(loaded.begin(), loaded.end(), [](auto const& file) { return file.starts_with("libc.so"); }));
        for (auto const& file : loaded) {
            constexpr std::string_view known[] = {"libc.",    "libm.",       "libstdc++.",   "libgcc_s.", "libfmt.",           "libdl.",
                                                  "libz.",    "libpthread.", "librt.",       "ld-linux",  "libasan.",          "libubsan.",
                                                  "libtsan.", "libpcre2-8.", "libutf8proc.", "libzstd.",  "libsentencepiece.", "libsentencepiece_train."};
            CAPTURE(file);
            CHECK(std::any_of(std::begin(known), std::end(known), [&](auto prefix) { return file.starts_with(prefix); }));
        }
    }
    auto const info = loaded_for(folder, "info");
    CHECK(std::any_of(info.begin(), info.end(), [](auto const& file) { return file.starts_with("libmpi"); }));
}

TEST_CASE("cli: info tells what was found, also as JSON")
{
    temporary_folder const folder;
    auto const text = run_rheo(folder, "info").out;
    CHECK(text.find("ULFM ") != std::string::npos);
    CHECK(text.find("\nclocks ") != std::string::npos);
    auto const info = nlohmann::json::parse(run_rheo(folder, "info --json").out);
    CHECK(info["schema"] == 1);
    CHECK(info["ulfm"]["active"].is_null());
    for (auto const* const key : {"losses", "cudnn"}) {
        CAPTURE(info[key].dump());
        CHECK((info[key].is_null() || info[key].is_string()));
    }
    CHECK(info["power"]["devices"].size() + info["power"]["missing"].size() >= 1);
}
