// SPDX-License-Identifier: Apache-2.0
// `rheo simulate CONFIG` as its users start it: accounts that add up, a row per step, one output for one seed, each refusal.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/cli/small_cluster.hpp"

using namespace std::string_literals;

namespace {

constexpr auto config = R"(schema = 1
model = { width = 64, heads = 4, blocks = 6, context = 64 }
train = { steps = 40, microbatches = 8, microbatch = { sequences = 2, tokens = 64 } }
plan = { failures = 1, pipelines = [2, 2, 2] }
checkpoint = { every_steps = 10 }
)";
constexpr auto storage_and_recovery = R"([storage]
read_gb_per_s = 1.0
write_gb_per_s = 0.5
[recovery]
detect_s = 0.02
shrink_s = 0.001
)";
constexpr auto faults = "time_s,event,what,value\n0.5,lose,rank:3,\n0.9,return,rank:3,\n1.1,slow,rank:0,1.5\n1.3,well,rank:0,\n1.4,drain,node:2,\n";

void write_job(temporary_folder const& folder)
{
    folder.write("job.toml", config);
    folder.write("cluster.toml", std::string{small_cluster::text} + storage_and_recovery);
    folder.write("faults.csv", faults);
}

nlohmann::json simulated(temporary_folder const& folder, std::string const& arguments)
{
    auto const shown = run_rheo(folder, "simulate job.toml --cluster cluster.toml --json " + arguments);
    CAPTURE(shown.err);
    REQUIRE(shown.exit_code == 0);
    return nlohmann::json::parse(shown.out).at("policies");
}

std::int64_t accounts_of(nlohmann::json const& job)
{
    std::int64_t sum = 0;
    for (auto const* const name : {"creating_ns", "good_ns", "lost_ns", "recovery_ns", "evaluation_ns", "checkpoint_ns", "halted_ns", "unfinished_ns"}) {
        sum += job.at(name).get<std::int64_t>();
    }
    return sum;
}

std::string refused(temporary_folder const& folder, std::string const& arguments, int exit_code = 2)
{
    auto const shown = run_rheo(folder, "simulate " + arguments);
    CAPTURE(shown.err);
    CHECK(shown.exit_code == exit_code);
    CHECK(shown.out.empty());
    return shown.err;
}

}  // namespace

TEST_CASE("simulate_config_command: accounts of policies add up")
{
    temporary_folder const folder;
    write_job(folder);
    auto const jobs = simulated(folder, "--faults faults.csv --policy rheo --policy replay --policy checkpoint --policy spares:2");
    REQUIRE(jobs.size() == 4);
    for (auto const& job : jobs) {
        CAPTURE(job.at("policy").get<std::string>());
        CHECK(job.at("steps") == 40);
        CHECK(accounts_of(job) == job.at("end_ns"));
        std::int64_t parts = 0;
        for (auto const& part : job.at("good_parts_ns")) {
            parts += part.get<std::int64_t>();
        }
        CHECK(parts == job.at("good_ns"));
        CHECK(job.at("changes").size() >= 2);
        CHECK(job.at("computing_J") > 0.0);
    }
    CHECK(jobs[0].at("lost_ns") <= jobs[1].at("lost_ns"));
    CHECK(jobs[1].at("lost_ns") <= jobs[2].at("lost_ns"));
    CHECK(jobs[0].at("changes")[0].at("what") == "recovered");
    CHECK(jobs[2].at("changes")[0].at("what") == "restarted");
}

TEST_CASE("simulate_config_command: one seed gives one output")
{
    temporary_folder const folder;
    write_job(folder);
    auto const arguments = std::string{"simulate job.toml --cluster cluster.toml --mtbf 30s --repair 2s --steps 300 --csv steps.csv --seed "};
    auto const one = run_rheo(folder, arguments + "7");
    CAPTURE(one.err);
    REQUIRE(one.exit_code == 0);
    auto const rows = folder.read("steps.csv");
    CHECK(rows.starts_with("policy,step,begin_s,time_s,ranks,joules\nrheo,0,0.000000000,"));
    CHECK(std::count(rows.begin(), rows.end(), '\n') >= 301);
    auto const again = run_rheo(folder, arguments + "7 --page job.html");
    CHECK(again.out == one.out);
    for (auto const* const part :
         {"tokens per second", "power in steps, W", "memory of the fullest rank, GiB", "Changes of the members: rheo", "recovered", "job.toml, simulated"}) {
        CHECK(folder.read("job.html").find(part) != std::string::npos);
    }
    CHECK(folder.read("steps.csv") == rows);
    CHECK(run_rheo(folder, arguments + "8").out != one.out);
    for (auto const* const line : {"tokens/s", "    computing", "    reductions", "below f + 1 copies", "J/token", "fullest rank"}) {
        CHECK(one.out.find(line) != std::string::npos);
    }
    CHECK(run_rheo(folder, "simulate job.toml --cluster cluster.toml --until 1s").out.find("unfinished") != std::string::npos);
}

TEST_CASE("simulate_config_command: a clock profile gives the joules")
{
    temporary_folder const folder;
    write_job(folder);
    std::string rows = "stage,instruction,frequency,time,energy\n0,blocking,0,1,90\n";
    for (int layer = 0; layer < 8; ++layer) {
        for (auto const* const kind : {"forward", "backward"}) {
            rows += std::to_string(layer) + "," + kind + ",1400,0.002,0.6\n" + std::to_string(layer) + "," + kind + ",1000,0.0025,0.5\n";
        }
    }
    folder.write("clocks.csv", rows);
    std::string const clocked = "--steps 3 --set power.device=emulated --set power.clock_profile=clocks.csv";
    auto const quick = simulated(folder, clocked)[0];
    auto const calm = simulated(folder, clocked + " --set power.deadline_s=10")[0];
    CHECK(accounts_of(quick) == quick.at("end_ns"));
    CHECK(calm.at("end_ns") >= quick.at("end_ns"));
    CHECK(calm.at("computing_J") < quick.at("computing_J"));
    folder.write("clocks.csv", "stage,instruction,frequency,time,energy\n0,forward,1400,0.002,0.6\n");
    CHECK(refused(folder, "job.toml --cluster cluster.toml " + clocked, 4).find("clocks.csv") != std::string::npos);
}

TEST_CASE("simulate_config_command: networks and reductions are chosen")
{
    temporary_folder const folder;
    write_job(folder);
    auto const alone = simulated(folder, "--network free --steps 2")[0].at("end_ns").get<std::int64_t>();
    auto const shared = simulated(folder, "--steps 2 --faults faults.csv")[0];
    CHECK(alone <= shared.at("end_ns"));
    auto const whole = simulated(folder, "--network integer-ns --steps 2 --faults faults.csv")[0];
    CHECK(whole.at("end_ns").get<double>() == Approx(shared.at("end_ns").get<double>()).epsilon(0.05));
    CHECK(whole.at("end_ns") != shared.at("end_ns"));
    for (auto const* const form : {"slice-owner", "node-first", "ring", "tree", "direct"}) {
        CHECK(simulated(folder, std::string{"--steps 2 --reduction "} + form)[0].at("good_ns") > 0);
    }
    auto text = folder.read("cluster.toml");
    folder.write("cluster.toml", text + "[nccl]\ngpu = \"ampere\"\ncpu = \"amd\"\nchannels = 4\nchannel_gb_per_s = 20\n");
    CHECK(simulated(folder, "--steps 2 --network nccl") == simulated(folder, "--steps 2 --reduction nccl"));
    CHECK(simulated(folder, "--steps 2 --network nccl")[0].at("end_ns") != shared.at("end_ns"));
    text.replace(text.find("latency_us"), 0, "lines = [{ latency_us = 500.0, us_per_mib = 900.0 }]\n");
    folder.write("cluster.toml", text);
    CHECK(simulated(folder, "--steps 2 --network fitted")[0].at("end_ns") > alone);
    auto const here = run_rheo(folder, "simulate job.toml --steps 1");
    CHECK(here.exit_code == 0);
    CHECK(here.out.starts_with("6 ranks on processes of one machine, 1 step of 1024 tokens\n"));
}

TEST_CASE("simulate_config_command: page and picture show accounts")
{
    temporary_folder const folder;
    write_job(folder);
    auto const command = std::string{"simulate job.toml --cluster cluster.toml --faults faults.csv --policy rheo --policy checkpoint "};
    auto const plain = run_rheo(folder, command);
    auto const drawn = run_rheo(folder, command + "--page job.html --svg job.svg");
    CAPTURE(drawn.err);
    REQUIRE(drawn.exit_code == 0);
    CHECK(drawn.out == plain.out);
    auto const picture = folder.read("job.svg");
    auto const page = folder.read("job.html");
    CHECK(picture.starts_with("<svg "));
    for (auto const* const part : {"thousand tokens per second", "accounts of rheo, % of the time", "accounts of checkpoint, % of the time",
                                   "power in steps, W", "memory of the fullest rank, GiB"}) {
        CAPTURE(part);
        CHECK(picture.find(part) != std::string::npos);
        CHECK(page.find(part) != std::string::npos);
    }
    CHECK(picture.find("recovered, 5 ranks") != std::string::npos);
    CHECK(picture.find("good: 100.0 %") != std::string::npos);
    for (auto const* const part : {"A step before and after the first loss: rheo", "A step before and after the first loss: checkpoint",
                                   "the last one before the first loss", "the first whole one after the first loss"}) {
        CAPTURE(part);
        CHECK(page.find(part) != std::string::npos);
    }
    run_rheo(folder, command + "--svg again.svg");
    CHECK(folder.read("again.svg") == picture);
}

TEST_CASE("simulate_config_command: steps shown are a Chrome trace")
{
    temporary_folder const folder;
    write_job(folder);
    auto const command = std::string{"simulate job.toml --cluster cluster.toml --faults faults.csv "};
    auto const plain = run_rheo(folder, command);
    auto const traced = run_rheo(folder, command + "--chrome trace.json --steps-shown 0..39");
    CAPTURE(traced.err);
    REQUIRE(traced.exit_code == 0);
    CHECK(traced.out == plain.out);
    auto const text = folder.read("trace.json");
    std::set<std::string> names;
    auto const events = nlohmann::json::parse(text).at("traceEvents");
    for (auto const& e : events) {
        auto const name = e.at("name").get<std::string>();
        names.insert(e.at("ph") == "X" ? name.substr(0, name.find(' ')) : "");
    }
    for (auto const* const name : {"F", "B", "SEND_F", "RECV_B", "AWAIT", "decide", "update", "detect", "copy", "shrink", "evaluate", "checkpoint"}) {
        CAPTURE(name);
        CHECK(names.contains(name));
    }
    run_rheo(folder, command + "--chrome trace.json --steps-shown 0..39");
    CHECK(folder.read("trace.json") == text);
    run_rheo(folder, command + "--chrome two.json");
    CHECK(folder.read("two.json").find("\"step\":1,") != std::string::npos);
    CHECK(folder.read("two.json").find("\"step\":2,") == std::string::npos);
    run_rheo(folder, command + "--chrome one.json --steps-shown 5");
    CHECK(folder.read("one.json").find("\"step\":5,") != std::string::npos);
    CHECK(folder.read("one.json").find("\"step\":6,") == std::string::npos);
    auto const job = "job.toml --cluster cluster.toml --chrome not.json "s;
    CHECK(refused(folder, job + "--steps-shown 43..40") == "rheo: --steps-shown: the range '43..40' is empty; its first step is behind its last\n");
    CHECK(refused(folder, job + "--steps-shown 38..40") == "rheo: --steps-shown: the job has no step 40; its steps are 0 to 39\n");
    CHECK(refused(folder, job + "--steps-shown 1-2") == "rheo: --steps-shown is '1-2'; expected a range of steps, as 40..43, or one step\n");
    CHECK(refused(folder, job + "--steps-shown 39 --until 1s") == "rheo: --steps-shown: the job ends before it has done step 39\n");
    CHECK(refused(folder, job + "--policy rheo --policy replay") == "rheo: --chrome: a trace shows one job; expected one --policy, not 2\n");
    CHECK(refused(folder, job + "--steps 100000 --steps-shown 0..99999") ==
          "rheo: --steps-shown: these steps have more than 1000000 events; expected fewer steps\n");
    CHECK(!std::filesystem::exists(folder.path / "not.json"));
}

TEST_CASE("simulate_config_command: each refusal is a sentence")
{
    temporary_folder const folder;
    write_job(folder);
    folder.write("twice.csv", "time_s,event,what,value\n1,lose,rank:3,\n2,lose,rank:3,\n");
    auto const job = std::string{"job.toml --cluster cluster.toml "};
    CHECK(refused(folder, "") == "rheo: simulate: expected the config of a run, or --steps-table with --policies and --faults\n");
    CHECK(refused(folder, "--steps-table steps.csv") == "rheo: simulate: --steps-table needs --policies and --faults\n");
    CHECK(refused(folder, job + "--faults twice.csv") == "rheo: twice.csv, line 3: rank 3 has already left; expected ranks that are in the job\n");
    CHECK(refused(folder, job + "--policy salvage") ==
          "rheo: --policy: a config has no policy 'salvage'; expected rheo, replay, checkpoint, or spares:N with N ranks that wait\n");
    CHECK(refused(folder, job + "--ranks 7 --set plan.pipelines=[2,2,3]", 3) ==
          "rheo: job.toml: the job has 7 ranks, the cluster 6 devices; expected a device for each rank, and at least one\n");
    CHECK(refused(folder, job + "--network nccl") == "rheo: NCCL's times need what NCCL finds on the machine; expected a --cluster with [nccl]\n");
    CHECK(refused(folder, job + "--network fitted") ==
          "rheo: --network fitted needs measured messages; expected a --cluster with measured = FILE in a [[level]]\n");
    CHECK(refused(folder, job + "--network token-ring") ==
          "rheo: --network: token-ring not in {contended,free,integer-ns,nccl,fitted}; rheo --help and rheo train --help say what there is\n");
    CHECK(refused(folder, "none.toml").find("none.toml") != std::string::npos);
}
