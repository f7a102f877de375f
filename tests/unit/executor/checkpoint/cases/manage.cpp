// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are listed, verified, pruned and copied: what is bad is found where it is, and nothing good is lost.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/checkpoint/manage/copy.hpp"
#include "executor/checkpoint/manage/list.hpp"
#include "executor/checkpoint/manage/prune.hpp"
#include "executor/checkpoint/manage/verify.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

void write_steps(fs::path const& run, std::vector<int> const& steps)
{
    fs::create_directories(run);
    for (auto const step : steps) {
        REQUIRE(small_job::write(run, step_id{step}, 2).state == writer_state::published);
    }
}

void flip(fs::path const& file, std::int64_t where)
{
    std::fstream stream{file, std::ios::in | std::ios::out | std::ios::binary};
    stream.seekg(where);
    auto const byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(where);
    stream.put(byte);
    REQUIRE(stream.good());
}

std::vector<std::int64_t> steps_in(fs::path const& run)
{
    std::vector<std::int64_t> steps;
    for (auto const step : checkpoint_steps(run)) {
        steps.push_back(step.value);
    }
    return steps;
}

std::string refusal(auto const& call)
{
    try {
        call();
    } catch (exit_error const& error) {
        return error.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("manage: a changed byte is found where it is")
{
    temporary_folder const folder;
    write_steps(folder.path, {3});
    auto const at = checkpoint_folder(folder.path, step_id{3});
    checkpoint const whole{at};
    for (int const threads : {1, 3}) {
        auto const result = verify_checkpoint(at, threads);
        CHECK(result.found.empty());
        CHECK(result.size.count > 0);
    }
    std::mt19937 draw{4};
    int headers = 0;
    for (int i = 0; i < 400; ++i) {
        auto const& about = whole.manifest().files[static_cast<std::size_t>(i) % whole.manifest().files.size()];
        auto const where = static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(about.bytes));
        flip(at / about.name, where);
        auto const bad = verify_checkpoint(at, 1 + i % 3).found;
        REQUIRE(bad.size() == 1);
        CHECK(bad[0].file == at / about.name);
        CHECK(bad[0].begin <= where);
        CHECK(where < bad[0].end);
        if (bad[0].what == "the header") {
            ++headers;
            CHECK(bad[0].begin == 0);
        } else {
            auto const name = bad[0].what.substr(bad[0].what.find('/') + 1);
            auto const tensor = std::find_if(whole.manifest().tensors.begin(), whole.manifest().tensors.end(), [&](auto const& t) { return t.name == name; });
            REQUIRE(tensor != whole.manifest().tensors.end());
            CHECK(bad[0].end - bad[0].begin == 4 * elements(tensor->shape));
        }
        flip(at / about.name, where);
    }
    CHECK(headers > 0);
    CHECK(verify_checkpoint(at).found.empty());
}

TEST_CASE("manage: files that are cut, longer or gone are found")
{
    temporary_folder const folder;
    write_steps(folder.path, {3});
    auto const at = checkpoint_folder(folder.path, step_id{3});
    checkpoint const whole{at};
    auto const& files = whole.manifest().files;
    REQUIRE(files.size() >= 4);
    fs::resize_file(at / files[0].name, static_cast<std::uintmax_t>(files[0].bytes - 5));
    fs::resize_file(at / files[1].name, static_cast<std::uintmax_t>(files[1].bytes + 7));
    fs::remove(at / files[2].name);
    auto const bad = verify_checkpoint(at, 2).found;
    REQUIRE(bad.size() == 3);
    CHECK(bad[0] == bad_bytes{at / files[0].name, files[0].bytes - 5, files[0].bytes,
                              "missing: the file has " + std::to_string(files[0].bytes - 5) + " bytes, the manifest says " + std::to_string(files[0].bytes)});
    CHECK(bad[1].begin == files[1].bytes);
    CHECK(bad[1].end == files[1].bytes + 7);
    CHECK(bad[2].begin == 0);
    CHECK(bad[2].end == files[2].bytes);
    CHECK_THAT(bad[2].what, ContainsSubstring("cannot be opened: No such file or directory"));
    auto contradicts = whole.manifest();
    contradicts.files[3].bytes = 10;
    folder.write("step-3/manifest.json", format_manifest(contradicts));
    fs::resize_file(at / files[3].name, 10);
    auto const last = verify_checkpoint(at).found.back();
    CHECK(last.end == 10);
    CHECK_THAT(last.what, ContainsSubstring("the manifest says 10 bytes, but what it lists in the file has"));
    fs::remove(at / "manifest.json");
    CHECK_THAT(refusal([&] { verify_checkpoint(at); }), ContainsSubstring("manifest.json' cannot be opened"));
}

TEST_CASE("manage: a run's checkpoints are listed with their place")
{
    temporary_folder const folder;
    write_steps(folder.path, {2, 10, 4});
    set_checkpoint_aside(folder.path, step_id{4});
    fs::create_directories(folder.path / ".step-12.7");
    folder.write(".step-12.7/model-0.safetensors", "half");
    folder.write("step-10/manifest.json", "{}");
    folder.write("step-x/manifest.json", "no checkpoint's name");
    auto const all = list_checkpoints(folder.path);
    REQUIRE(all.size() == 4);
    CHECK(all[0].folder == folder.path / "step-2");
    checkpoint const second{all[0].folder};
    CHECK(all[0].digest == second.manifest().digest());
    CHECK(all[0].problem.empty());
    CHECK(all[0].files == 4);
    CHECK_THAT(all[1].problem, ContainsSubstring("step-10/manifest.json"));
    CHECK_FALSE(all[1].digest);
    CHECK(all[2].place == checkpoint_place::set_aside);
    CHECK(all[2].step == step_id{4});
    CHECK(all[3].place == checkpoint_place::unfinished);
    CHECK(all[3].step == step_id{12});
    CHECK(all[3].size == bytes{4});
    CHECK_THAT(refusal([&] { list_checkpoints(folder.path / "gone"); }), ContainsSubstring("cannot be listed: No such file or directory"));
}

TEST_CASE("manage: prune keeps the newest that are good")
{
    temporary_folder const folder;
    write_steps(folder.path, {1, 2, 3, 4, 5});
    set_checkpoint_aside(folder.path, step_id{2});
    folder.write("step-3/manifest.json", "{}");
    fs::create_directories(folder.path / ".step-4.1");
    fs::create_directories(folder.path / ".step-9.1");
    auto const planned = prune_checkpoints(folder.path, 1, false, true);
    CHECK(planned.removed == std::vector{folder.path / "step-1", folder.path / "step-4"});
    CHECK(planned.kept.size() == 4);
    CHECK(steps_in(folder.path) == std::vector<std::int64_t>{1, 3, 4, 5});
    CHECK(prune_checkpoints(folder.path, 2, false, false).removed == std::vector{folder.path / "step-1"});
    CHECK(steps_in(folder.path) == std::vector<std::int64_t>{3, 4, 5});
    auto const rest = prune_checkpoints(folder.path, 1, true, false);
    CHECK(rest.removed.size() == 4);
    CHECK(rest.kept == std::vector{"'" + (folder.path / ".step-9.1").string() + "' is unfinished"});
    CHECK(steps_in(folder.path) == std::vector<std::int64_t>{5});
    CHECK_FALSE(fs::exists(folder.path / "before-1"));
    CHECK_FALSE(fs::exists(folder.path / ".step-4.1"));
    CHECK(prune_checkpoints(folder.path, 1, false, false).removed.empty());
    CHECK(small_job::same(checkpoint{folder.path / "step-5"}, *small_job::state_after(step_id{5})));
}

TEST_CASE("manage: prune removes nothing for a bad checkpoint")
{
    temporary_folder const folder;
    write_steps(folder.path, {1, 2});
    checkpoint const newest{folder.path / "step-2"};
    auto const& name = newest.manifest().files.back().name;
    auto const size = static_cast<std::int64_t>(fs::file_size(folder.path / "step-2" / name));
    flip(folder.path / "step-2" / name, size - 1);
    CHECK_THAT(refusal([&] { prune_checkpoints(folder.path, 1, true, false); }),
               ContainsSubstring("nothing is removed: '" + (folder.path / "step-2").string() + "', the newest, has bad bytes from") &&
                   ContainsSubstring("to " + std::to_string(size)));
    CHECK(steps_in(folder.path) == std::vector<std::int64_t>{1, 2});
    folder.write("step-1/manifest.json", "{}");
    folder.write("step-2/manifest.json", "{}");
    CHECK_THAT(refusal([&] { prune_checkpoints(folder.path, 1, true, false); }), ContainsSubstring("has no checkpoint that can be opened"));
    CHECK(steps_in(folder.path) == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("manage: a copy is whole or not there")
{
    temporary_folder const folder;
    auto const run = folder.path / "run";
    write_steps(run, {6});
    auto const to = folder.path / "new" / "run";
    auto const done = copy_checkpoint(run / "step-6", to, 2);
    CHECK(done.folder == to / "step-6");
    CHECK(small_job::same(checkpoint{done.folder}, *small_job::state_after(step_id{6})));
    CHECK(find_newest_checkpoint(to).newest->step() == step_id{6});
    CHECK_THAT(refusal([&] { copy_checkpoint(run / "step-6", to); }), ContainsSubstring("step-6' is there already"));
    checkpoint const source{run / "step-6"};
    auto const& name = source.manifest().files.front().name;
    flip(run / "step-6" / name, static_cast<std::int64_t>(fs::file_size(run / "step-6" / name)) - 2);
    auto const other = folder.path / "other";
    CHECK_THAT(refusal([&] { copy_checkpoint(run / "step-6", other); }), ContainsSubstring("is not copied: bytes") && ContainsSubstring(name));
    CHECK(fs::is_empty(other));
}

TEST_CASE("manage: the command says what it found and did")
{
    temporary_folder const folder;
    write_steps(folder.path / "run", {1, 2, 3});
    auto shown = run_rheo(folder, "checkpoint list run");
    CHECK(shown.exit_code == 0);
    CHECK_THAT(shown.out, ContainsSubstring("step-3") && ContainsSubstring("resumes here") && ContainsSubstring("run: 3 checkpoints,"));
    auto const listed = nlohmann::json::parse(run_rheo(folder, "checkpoint list run --json").out);
    CHECK(listed["checkpoints"].size() == 3);
    checkpoint const second{folder.path / "run/step-2"};
    CHECK(listed["checkpoints"][1]["digest"] == to_string(second.manifest().digest()));
    CHECK(run_rheo(folder, "checkpoint verify run").exit_code == 0);
    auto const& name = second.manifest().files.front().name;
    flip(folder.path / "run/step-2" / name, 3);
    shown = run_rheo(folder, "checkpoint verify run");
    CHECK(shown.exit_code == 4);
    CHECK_THAT(shown.out, ContainsSubstring("run/step-2/" + name + ": bytes 0 to ") && ContainsSubstring("are bad: the header"));
    auto const verified = nlohmann::json::parse(run_rheo(folder, "checkpoint verify run --step 2 --json").out);
    CHECK(verified["right"] == false);
    CHECK(verified["checkpoints"][0]["bad"][0]["file"] == name);
    CHECK(run_rheo(folder, "checkpoint copy run/step-3 other").exit_code == 0);
    CHECK(run_rheo(folder, "checkpoint verify other --step 3").exit_code == 0);
    shown = run_rheo(folder, "checkpoint prune run --keep 1");
    CHECK(shown.exit_code == 0);
    CHECK_THAT(shown.out, ContainsSubstring("run/step-1: removed") && ContainsSubstring("kept: ") && ContainsSubstring("1 checkpoint removed in all"));
    CHECK(steps_in(folder.path / "run") == std::vector<std::int64_t>{2, 3});
    auto const refused = [&](std::string const& arguments, int code) {
        auto const said = run_rheo(folder, "checkpoint " + arguments);
        CHECK(said.exit_code == code);
        CHECK(said.out.empty());
        return said.err;
    };
    CHECK_THAT(refused("prune run", 2), ContainsSubstring("needs --keep N"));
    CHECK_THAT(refused("copy run", 2), ContainsSubstring("needs the run folder that gets it"));
    CHECK_THAT(refused("verify run other", 2), ContainsSubstring("'other' is a second one"));
    CHECK_THAT(refused("verify run --step 9", 4), ContainsSubstring("'run' has no checkpoint of step 9"));
    CHECK_THAT(refused("list gone", 4), ContainsSubstring("cannot be listed"));
    CHECK_THAT(refused("list run/step-3", 2), ContainsSubstring("is a checkpoint"));
}
