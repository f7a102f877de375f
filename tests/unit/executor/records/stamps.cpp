// SPDX-License-Identifier: Apache-2.0
// What every record has: its time, and one count of steps; and what ranks record of their memory while they run.
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/records/records.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;
using json = nlohmann::json;

namespace {

double unix_time() { return std::chrono::duration<double>{std::chrono::system_clock::now().time_since_epoch()}.count(); }

step_record step(std::int64_t number)
{
    return {.step = step_id{number}, .of_steps = 9, .attempt = {}, .loss = 1, .tokens = 64, .duration = seconds{1}, .ranks = 1};
}

}  // namespace

TEST_CASE("records: each has its time and the committed steps")
{
    temporary_folder folder;
    auto const before = unix_time();
    {
        records writer(folder.path.string(), rank_id{0}, false, true);
        writer.start({generation_id{0}, step_id{4}, 1}, true);
        writer.note("first");
        writer.step(step(4));
        auto redone = step(5);
        redone.redone = true;
        writer.step(redone);
        writer.step(step(5));
        writer.evaluation({step_id{6}, 3.25});
        recovery_record lost{};
        lost.step = step_id{6};
        writer.recovery(lost);
        writer.checkpoint({step_id{6}, bytes{64}, seconds{1}});
        writer.note("second");
        writer.finish({.exit_code = 0, .message = "done", .steps = step_id{6}});
    }
    std::vector<std::int64_t> steps;
    std::istringstream lines{folder.read("metrics.jsonl")};
    auto last = before - 1e-3;  // stamps have milliseconds
    for (std::string line; std::getline(lines, line);) {
        auto const record = json::parse(line);
        steps.push_back(record["steps"].get<std::int64_t>());
        auto const time = record["unix_time_s"].get<double>();
        CHECK(time >= last);
        last = time;
    }
    CHECK(last <= unix_time() + 1e-3);
    CHECK(steps == std::vector<std::int64_t>{4, 4, 5, 5, 6, 6, 6, 6, 6, 6});
}

TEST_CASE("records: ranks record their memory from the first step on")
{
    temporary_folder folder;
    records writer(folder.path.string(), rank_id{3}, false, true);
    auto const rank = [&] { return json::parse(folder.read("ranks/3.json")); };
    memory_record memory{};
    memory.planned.activations = bytes{100};
    memory.measured.activations = bytes{90};
    memory.measured.state.moments = bytes{800};
    writer.memory(memory);
    CHECK_FALSE(rank().contains("measured_activations_bytes"));
    writer.start({generation_id{0}, step_id{0}, 1}, true);
    writer.step(step(0));
    CHECK(rank()["planned_activations_bytes"] == 100);
    CHECK(rank()["measured_activations_bytes"] == 90);
    CHECK_FALSE(rank().contains("peak_memory_bytes"));
    auto const metrics = folder.read("metrics.jsonl");
    auto const written = json::parse(metrics.substr(metrics.find('\n') + 1));
    CHECK(written["state_and_activation_bytes"] == 890);
    CHECK(written["memory_bytes"].get<std::int64_t>() > 0);
    memory.planned.activations = bytes{200};  // another plan
    writer.memory(memory);
    writer.step(step(1));
    CHECK(rank()["planned_activations_bytes"] == 200);
    writer.flush();
    CHECK(rank()["peak_memory_bytes"].get<std::int64_t>() > 0);
    CHECK(rank()["planned_activations_bytes"] == 200);
}
