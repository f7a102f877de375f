// SPDX-License-Identifier: Apache-2.0
// What the next launch makes of what an earlier one left.
#include "executor/records/earlier_run.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/records/progress.hpp"
#include "executor/records/record_json.hpp"
#include "executor/records/record_text.hpp"
#include "executor/records/run_folder.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;
using json = nlohmann::json;

TEST_CASE("earlier_run: nothing to resume: nothing is rejected")
{
    temporary_folder const folder;
    CHECK(find_earlier_state(folder.path / "not-there").error.empty());
    folder.write("metrics.jsonl",
                 "{\"kind\":\"start\",\"step\":0,\"generation\":1,\"ranks\":2,\"from_checkpoint\":false}\n"
                 "{\"kind\":\"note\",\"message\":\"no checkpoint of step 7\"}\n{\"kind\":\"checkpoint\",\"step\":\"7\"}\n{\"kind\":\"check");
    auto const found = find_earlier_state(folder.path);
    CHECK_FALSE(found.newest);
    CHECK((found.skipped.empty() && found.error.empty()));
}

TEST_CASE("earlier_run: missing recorded checkpoint stops the run")
{
    for (auto const* line :
         {"{\"kind\":\"checkpoint\",\"step\":40,\"bytes\":1}\n", "{\"kind\":\"start\",\"step\":40,\"generation\":1,\"ranks\":2,\"from_checkpoint\":true}\n"}) {
        temporary_folder const folder;
        folder.write("metrics.jsonl", line);
        auto const found = find_earlier_state(folder.path);
        CHECK_THAT(found.error,
                   ContainsSubstring("step-40' is not there, but 'metrics.jsonl' says that it was written: expected a folder with manifest.json; restore it"));
        CHECK_THAT(found.error, ContainsSubstring("\nrun folder '") && ContainsSubstring("nothing was changed") && ContainsSubstring("--resume never"));
        REQUIRE(small_job::write(folder.path, step_id{20}, 1).state == writer_state::published);
        auto const older = find_earlier_state(folder.path);
        REQUIRE(older.newest);
        CHECK(older.newest->step() == step_id{20});
        CHECK((older.error.empty() && older.skipped.size() == 1));
    }
}

TEST_CASE("earlier_run: a checkpoint of a newer schema is kept")
{
    temporary_folder const folder;
    REQUIRE(small_job::write(folder.path, step_id{2}, 1).state == writer_state::published);
    auto manifest = json::parse(folder.read("step-2/manifest.json"))["checkpoint"];
    manifest["schema"] = checkpoint_schema + 1;
    folder.write("step-2/manifest.json", seal("checkpoint", manifest));
    auto const found = find_earlier_state(folder.path);
    CHECK_FALSE(found.newest);
    CHECK_THAT(found.error,
               ContainsSubstring("step-2/manifest.json' has schema 3; this version of rheo (") && ContainsSubstring(") reads schemas 1 to 2; restore it"));
    CHECK(fs::exists(folder.path / "step-2" / "model-0.safetensors"));
}

TEST_CASE("earlier_run: the digest of a checkpoint includes scales")
{
    temporary_folder const folder;
    REQUIRE(small_job::write(folder.path, step_id{3}, 2).state == writer_state::published);
    auto const state = small_job::state_after(step_id{3});
    checkpoint const written{folder.path / "step-3"};
    CHECK(written.manifest().digest() == small_job::digest(*state));
    state_digest without;
    for (tensor_id t{0}; at(t) < small_job::info().tensors.size(); ++t) {
        without += state->holds(t) ? state->digest(t) : state_digest{};
    }
    CHECK_FALSE(written.manifest().digest() == without);
    auto manifest = json::parse(folder.read("step-3/manifest.json"))["checkpoint"];
    auto const with = manifest["state_digest"];
    manifest["state_digest"] = to_string(without);
    CHECK_THROWS_WITH(parse_manifest(seal("checkpoint", manifest), "m"), ContainsSubstring("not the sum of its entries and scales"));
    manifest["schema"] = 1;
    CHECK(parse_manifest(seal("checkpoint", manifest), "m").digest() == small_job::digest(*state));
    manifest["state_digest"] = with;
    CHECK_THROWS_AS(parse_manifest(seal("checkpoint", manifest), "m"), exit_error);
}

TEST_CASE("earlier_run: recorded losses before the checkpoint")
{
    temporary_folder const folder;
    CHECK_FALSE(steps_of_records(folder.path, step_id{3}).loss);
    folder.write("metrics.jsonl", R"({"kind":"step","step":0,"loss":5.0,"skipped":false}
{"kind":"step","step":1,"loss":null,"skipped":true}
{"kind":"step","step":1,"loss":null,"skipped":true}
{"kind":"evaluation","step":2,"loss":null}
{"kind":"undone","was":"step","step":2,"loss":null,"skipped":true}
{"kind":"step","step":2,"loss":4.5,"skipped":false}
{"kind":"evaluation","step":3,"loss":null}
{"kind":"step","step":3,"loss":null,"skipped":true}
{"kind":"step","step":2,"loss":"4","skipped":true}
{"kind":"step","step":2,"lo)");
    auto const so_far = steps_of_records(folder.path, step_id{3});
    CHECK(so_far.loss == 4.5);
    CHECK((so_far.skipped == 1 && so_far.evaluations_not_finite == 1));
    CHECK(std::isnan(steps_of_records(folder.path, step_id{2}).loss.value()));
    auto words = so_far.words();
    REQUIRE(words.size() == steps_so_far::word_count);
    words.insert(words.begin(), 99);
    CHECK(steps_so_far::of(words, 1).words() == so_far.words());
    CHECK_FALSE(steps_so_far::of(steps_so_far{}.words(), 0).loss);
}

TEST_CASE("earlier_run: a report is read back as it was written")
{
    final_record const end{.exit_code = 7,
                           .message = "so",
                           .steps = step_id{9},
                           .loss = std::numeric_limits<double>::infinity(),
                           .unigram_entropy = 3.25,
                           .digest = {1, 2},
                           .digest_known = true,
                           .steps_skipped = 4,
                           .evaluations_not_finite = 1,
                           .pairs_by_survivors = 7,
                           .sample = "a",
                           .plan_drawing = "b",
                           .energy = {3.5},
                           .energy_per_step = {1.5},
                           .energy_per_token = {0.5},
                           .energy_missing = {rank_id{2}}};
    recovery_record r{};
    r.generation = generation_id{3};
    r.step = step_id{4};
    r.lost = {rank_id{1}};
    r.left = {rank_id{0}, rank_id{5}};
    r.ranks = 3;
    r.copy = {0.25};
    r.pairs_missing = 6;
    r.message = "any";
    auto const text = to_json(end, std::vector{r}).dump();
    auto const back = ended_run_of(json::parse(text));
    CHECK(to_json(back.record, back.recoveries).dump() == text);
    CHECK(std::isnan(back.record.loss.value()));
    CHECK_FALSE(back.record.validation_loss);
    CHECK(final_table(back.record, back.recoveries) == final_table(end, std::vector{r}));
}

TEST_CASE("earlier_run: finished when report and checkpoint agree")
{
    temporary_folder const folder;
    REQUIRE(small_job::write(folder.path, step_id{9}, 1).state == writer_state::published);
    REQUIRE(small_job::write(folder.path, step_id{5}, 1).state == writer_state::published);
    checkpoint const last{folder.path / "step-9"};
    checkpoint const earlier{folder.path / "step-5"};
    CHECK_FALSE(finished_run(folder.path, step_id{9}, last));
    auto const report = [&](final_record const& end) { folder.write("report.json", to_json(end, {}).dump()); };
    final_record end{.exit_code = 7, .message = "so", .steps = step_id{9}, .digest = last.manifest().digest(), .digest_known = true};
    report(end);
    CHECK(finished_run(folder.path, step_id{9}, last).value().record.exit_code == 7);
    CHECK(finished_run(folder.path, step_id{9}, earlier));  // the last state was not to be saved
    CHECK_FALSE(finished_run(folder.path, step_id{10}, last));
    CHECK_FALSE(finished_run(folder.path, step_id{8}, earlier));
    auto const good = json::parse(folder.read("report.json"));
    for (auto const* key : {"exit_code", "message", "steps", "digest", "recoveries", "steps_skipped"}) {  // whatever is wrong is no end
        auto bad = good;
        bad[key] = json::object();
        folder.write("report.json", bad.dump());
        INFO(key);
        CHECK_FALSE(finished_run(folder.path, step_id{9}, last));
    }
    end.exit_code = 5;
    report(end);
    CHECK_FALSE(finished_run(folder.path, step_id{9}, earlier));
    end.exit_code = 0;
    end.digest = {1, 2};
    report(end);
    CHECK_FALSE(finished_run(folder.path, step_id{9}, last));
    folder.write("report.json", "{");
    CHECK_FALSE(finished_run(folder.path, step_id{9}, last));
    CHECK_THROWS_AS(read_report((folder.path / "report.json").string()), exit_error);
}

TEST_CASE("earlier_run: a loss is a number, null or left out")
{
    auto const nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(to_json(evaluation_record{step_id{4}, nan}).dump() == R"({"kind":"evaluation","step":4,"loss":null})");
    step_record step{.step = step_id{3}, .attempt = {}, .loss = nan, .gradient_norm = nan, .duration = {1.0}, .skipped = true};
    CHECK(to_json(step)["loss"].is_null());
    CHECK(to_json(step)["gradient_norm"].is_null());
    CHECK_THAT(progress_line(step), ContainsSubstring("step 4  loss not finite  "));
    final_record end{.steps = step_id{9}, .loss = nan, .validation_loss = nan, .steps_skipped = 5, .evaluations_not_finite = 2};
    auto const table = final_table(end, {});
    CHECK_THAT(table, ContainsSubstring("  loss                not finite\n  validation loss     not finite (unigram"));
    CHECK_THAT(table, ContainsSubstring("  skipped             5 of 9 steps: a loss or gradient was not finite\n"));
    CHECK_THAT(table, ContainsSubstring("  evaluations         2 were not finite\n"));
    CHECK(to_json(end, {})["validation_loss"].is_null());
    end.loss.reset();
    CHECK_FALSE(to_json(end, {}).contains("loss"));
    CHECK_THAT(final_table(end, {}), ContainsSubstring("  loss                not known\n"));
}
