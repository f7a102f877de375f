// SPDX-License-Identifier: Apache-2.0
// Disks that are full, folders that may not be written, files that are torn, changed or of others: each is a sentence with the file's name,
// and the newest checkpoint that is right is found.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/config/strict_json.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
namespace fs = std::filesystem;

namespace {

/// Runs `work` in a process of its own, so that its limits and rights end with it; its sentence comes back through a pipe.
template <class Work>
std::string elsewhere(Work work)
{
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    auto const child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::string const message = work();
        auto const put = ::write(ends[1], message.data(), message.size());
        ::_exit(put == static_cast<ssize_t>(message.size()) ? 0 : 1);
    }
    ::close(ends[1]);
    std::string message(4096, '\0');
    auto const got = ::read(ends[0], message.data(), message.size());
    ::close(ends[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    message.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return message;
}

std::string state_and_message(small_job::written const& end) { return (end.state == writer_state::failed ? "failed: " : "not failed: ") + end.message; }

/// The file with one byte changed, or cut.
void change(fs::path const& file, std::size_t where)
{
    std::fstream stream{file, std::ios::in | std::ios::out | std::ios::binary};
    stream.seekg(static_cast<std::streamoff>(where));
    auto const byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(static_cast<std::streamoff>(where));
    stream.put(byte);
    REQUIRE(stream.good());
}

/// Step 1 is right, step 2 is not: it is skipped with a sentence that names the file, and step 1 is taken.
std::string only_step_1(fs::path const& run, std::string const& file)
{
    auto const found = find_newest_checkpoint(run);
    REQUIRE(found.newest);
    CHECK(found.newest->step() == step_id{1});
    CHECK(small_job::same(*found.newest, *small_job::state_after(step_id{1})));
    REQUIRE(found.skipped.size() == 1);
    CHECK_THAT(found.skipped.front(), ContainsSubstring((run / "step-2" / file).string()));
    return found.skipped.front();
}

void write_two(fs::path const& run)
{
    REQUIRE(small_job::write(run, step_id{1}, 1).state == writer_state::published);
    REQUIRE(small_job::write(run, step_id{2}, 2).state == writer_state::published);
}

}  // namespace

TEST_CASE("faults: full disk: error, nothing left, previous kept")
{
    temporary_folder const folder;
    auto const run = folder.path / "run";
    fs::create_directory(run);
    REQUIRE(small_job::write(run, step_id{1}, 2).state == writer_state::published);
    // By the limit of a process for the size of files: the writing thread sees what a full disk shows, at any place.
    for (rlim_t const limit : {0, 1, 100, 1000, 2000, 3000, 4000, 6000}) {
        auto const message = elsewhere([&] {
            rlimit const bound{limit, limit};
            ::setrlimit(RLIMIT_FSIZE, &bound);
            return state_and_message(small_job::write(run, step_id{2}, 2, 1));
        });
        INFO(limit);
        CHECK_THAT(message, ContainsSubstring("failed: '" + (run / ".step-2.1").string() + "/"));
        CHECK_THAT(message, ContainsSubstring("cannot be written: File too large"));
        CHECK(checkpoint_steps(run) == std::vector{step_id{1}});
        CHECK(std::distance(fs::directory_iterator{run}, {}) == 1);
        CHECK(small_job::same(find_newest_checkpoint(run).newest.value(), *small_job::state_after(step_id{1})));
    }
}

TEST_CASE("faults: a small disk that is really full")
{
    temporary_folder const folder;
    auto const run = folder.path / "run";
    fs::create_directory(run);
    if (::mount("none", run.c_str(), "tmpfs", 0, "size=96k") != 0) {
        WARN("skipped: mounting a small disk needs root and the right to mount: " << std::strerror(errno));
        return;
    }
    int written = 0;
    std::string message;
    for (int step = 1; step <= 9 && message.empty(); ++step) {
        auto const end = small_job::write(run, step_id{step}, 1);
        message = end.state == writer_state::failed ? end.message : "";
        written += end.state == writer_state::published ? 1 : 0;
    }
    CHECK(written > 0);
    CHECK_THAT(message, ContainsSubstring("cannot be written: No space left on device"));
    auto const found = find_newest_checkpoint(run);
    CHECK(found.skipped.empty());
    CHECK(found.newest.value().step() == step_id{written});
    ::umount(run.c_str());
}

TEST_CASE("faults: a folder that may not be written or read")
{
    temporary_folder const folder;
    auto const run = folder.path / "run";
    fs::create_directory(run);
    write_two(run);
    fs::permissions(folder.path, fs::perms::all);
    fs::permissions(run, fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec | fs::perms::group_read | fs::perms::group_exec);
    if (::geteuid() != 0) {
        fs::permissions(run, fs::perms::owner_read | fs::perms::owner_exec);
    }
    auto const as_nobody = [] { return ::geteuid() != 0 || ::seteuid(65534) == 0; };
    auto const message = elsewhere([&] { return as_nobody() ? state_and_message(small_job::write(run, step_id{3}, 1)) : "no right"; });
    CHECK_THAT(message, ContainsSubstring("failed: '" + (run / ".step-3.1").string() + "' cannot be made: Permission denied"));
    fs::permissions(run / "step-2" / "state-0.safetensors", fs::perms::none);
    auto const found = elsewhere([&] {
        auto const newest = as_nobody() ? find_newest_checkpoint(run) : found_checkpoint{};
        return newest.newest && newest.newest->step() == step_id{1} && newest.skipped.size() == 1 ? newest.skipped.front() : "no";
    });
    CHECK_THAT(found, ContainsSubstring((run / "step-2" / "state-0.safetensors").string() + "' cannot be opened: Permission denied"));
    fs::permissions(run, fs::perms::owner_all);

    checkpoint_writer writer{folder.path / "nowhere"};
    writer.begin(take_part(*small_job::state_after(step_id{1}), small_job::dealt(1), rank_id{0}, step_id{1}, generation_id{1}));
    CHECK(writer.wait() == writer_state::failed);
    CHECK_THAT(writer.message(), ContainsSubstring("nowhere/.step-1.1' cannot be made: No such file or directory"));
}

TEST_CASE("faults: a flipped bit anywhere is seen")
{
    temporary_folder const run;
    write_two(run.path);
    for (auto const* name : {"manifest.json", "model-0.safetensors", "state-1.safetensors"}) {
        auto const file = run.path / "step-2" / name;
        auto const size = fs::file_size(file);
        for (std::size_t where = 0; where < size; where += 1 + size / 60) {
            change(file, where);
            auto const blank =
                std::string{name} == "manifest.json" && small_job::same(find_newest_checkpoint(run.path).newest.value(), *small_job::state_after(step_id{2}));
            if (!blank) {  // a blank between two tokens of the manifest: nothing of it changed
                only_step_1(run.path, name);
            }
            change(file, where);
        }
        CHECK(find_newest_checkpoint(run.path).skipped.empty());
    }
}

TEST_CASE("faults: torn, grown, missing file or folder is rejected")
{
    temporary_folder const run;
    write_two(run.path);
    for (auto const* name : {"manifest.json", "model-1.safetensors", "state-0.safetensors"}) {
        auto const file = run.path / "step-2" / name;
        auto const saved = run.path / "saved";
        fs::copy_file(file, saved);
        auto const size = fs::file_size(file);
        for (std::uintmax_t left = 0; left + 1 < size; left += 1 + size / 40) {  // the last byte of the manifest is only the end of its line
            fs::resize_file(file, left);
            only_step_1(run.path, name);
            fs::copy_file(saved, file, fs::copy_options::overwrite_existing);
        }
        fs::resize_file(file, size + 4);
        only_step_1(run.path, name);
        fs::remove(file);
        CHECK_THAT(only_step_1(run.path, name), ContainsSubstring("cannot be opened: No such file or directory"));
        fs::create_directory(file);
        CHECK_THAT(only_step_1(run.path, name), ContainsSubstring("cannot be read: Is a directory"));
        fs::remove(file);
        fs::rename(saved, file);
    }
    CHECK(find_newest_checkpoint(run.path).skipped.empty());
}

TEST_CASE("faults: a file of another run, and a folder of another step")
{
    temporary_folder const run;
    temporary_folder const other;
    write_two(run.path);
    REQUIRE(small_job::write(other.path, step_id{2}, 2, 0, 2).state == writer_state::published);
    auto const file = run.path / "step-2" / "model-0.safetensors";
    fs::copy_file(other.path / "step-2" / "model-0.safetensors", file, fs::copy_options::overwrite_existing);
    CHECK_THAT(only_step_1(run.path, "model-0.safetensors"), ContainsSubstring("has other values of '"));
    fs::copy_file(other.path / "step-2" / "state-0.safetensors", file, fs::copy_options::overwrite_existing);
    only_step_1(run.path, "model-0.safetensors");
    fs::remove_all(run.path / "step-2");
    fs::copy(run.path / "step-1", run.path / "step-2", fs::copy_options::recursive);
    CHECK_THAT(only_step_1(run.path, "manifest.json"), ContainsSubstring("is of step 1, but its folder is of step 2"));
}

TEST_CASE("faults: wrong schema or manifest is rejected")
{
    temporary_folder const run;
    REQUIRE(small_job::write(run.path, step_id{1}, 1).state == writer_state::published);
    auto const text = run.read("step-1/manifest.json");
    auto const good = nlohmann::json::parse(text)["checkpoint"];
    CHECK(format_manifest(parse_manifest(text, "m")) == text);
    auto const refused = [](auto const& value) -> std::string {
        try {
            (void)parse_manifest(seal("checkpoint", value), "m.json");
            return "taken";
        } catch (exit_error const& error) {
            return error.what();
        }
    };
    CHECK(refused(good) == "taken");
    auto bad = good;
    bad["schema"] = 3;
    CHECK_THAT(refused(bad), StartsWith("'m.json' has schema 3; this version of rheo (") && EndsWith(") reads schemas 1 to 2"));
    for (auto const& [key, value] : good.items()) {
        bad = good;
        bad.erase(key);
        INFO(key);
        CHECK(refused(bad) != "taken");
        for (nlohmann::json const& other :
             {nlohmann::json(), nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json::array({1}), nlohmann::json::object()}) {
            bad[key] = other;
            CHECK(refused(bad) != "taken");
        }
    }
    bad = good;
    bad["files"][0]["name"] = "../../secret";
    CHECK_THAT(refused(bad), ContainsSubstring("no name of a file in its folder"));
    bad = good;
    bad["files"].push_back(bad["files"][0]);
    CHECK_THAT(refused(bad), ContainsSubstring("which is twice there"));
    bad = good;
    bad["files"][0]["entries"].erase(0);
    CHECK_THAT(refused(bad), ContainsSubstring("does not have each element of"));
    bad = good;
    bad["files"][0]["entries"].push_back(bad["files"][0]["entries"][0]);
    CHECK_THAT(refused(bad), ContainsSubstring("does not have each element of"));
    bad = good;
    bad["files"][0]["entries"][0]["box"][1] = 1000000;
    CHECK_THAT(refused(bad), ContainsSubstring("does not have each element of"));
    bad = good;
    bad["files"][0]["entries"][0]["box"] = {0, std::int64_t{1} << 40, 0, std::int64_t{1} << 40};  // the product of its extents overflows
    CHECK_THAT(refused(bad), ContainsSubstring("does not have each element of"));
    bad = good;
    bad["tensors"][0]["scale_log2"] = largest_scale_log2 + 1;  // no exact sum takes it
    CHECK_THAT(refused(bad), ContainsSubstring("'scale_log2' that is not a whole number from -200 to 200"));
    bad = good;
    bad["tensors"][0]["rows"] = 9223372036854775807;
    CHECK_THAT(refused(bad), ContainsSubstring("'rows' that is not a whole number"));
    bad = good;
    bad["tensors"].push_back(bad["tensors"][0]);
    CHECK_THAT(refused(bad), ContainsSubstring("twice"));
    bad = good;
    bad["state_digest"] = std::string(32, '0');
    CHECK_THAT(refused(bad), ContainsSubstring("not the sum of its entries"));
    bad = good;
    bad["step"] = 1e10;
    CHECK(refused(bad) != "taken");
    std::string const deep(200000, '[');
    CHECK_THROWS_WITH(parse_manifest(deep, "m.json"), ContainsSubstring("is nested deeper than"));
    CHECK_THROWS_WITH(parse_manifest("{\"a\": 1, \"a\": 1}", "m.json"), ContainsSubstring("has the key 'a' twice"));
    CHECK_THROWS_WITH(parse_manifest("{\"a\": 1e999}", "m.json"), ContainsSubstring("is not JSON"));
    CHECK_THROWS_WITH(parse_manifest("", "m.json"), ContainsSubstring("'m.json' is not JSON"));
}

TEST_CASE("faults: checkpoint of another model names the tensor")
{
    temporary_folder const run;
    REQUIRE(small_job::write(run.path, step_id{1}, 1).state == writer_state::published);
    checkpoint const from{run.path / "step-1"};
    auto shape = small_job::shape;
    shape.blocks = 3;
    CHECK_THAT(from.load_error(state_of(gpt_model(shape))), ContainsSubstring("it has no tensor 'h.2.ln_1.weight'"));
    shape.blocks = 1;
    CHECK_THAT(from.load_error(state_of(gpt_model(shape))), ContainsSubstring("this one has no tensor 'h.1.ln_1.weight'"));
    shape = small_job::shape;
    shape.vocabulary = 20;
    CHECK_THAT(from.load_error(state_of(gpt_model(shape))), ContainsSubstring("its 'wte.weight' is 19 x 8, and this model's 20 x 8"));
    CHECK_THROWS_AS(from.read("nothing"), exit_error);
    CHECK_THROWS_AS(from.read("loss"), exit_error);
}
