// SPDX-License-Identifier: Apache-2.0
// Conversions that cannot be: each is one sentence with its exit code, and leaves nothing behind. One that is killed leaves nothing that reads as a checkpoint.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/convert/convert.hpp"
#include "executor/checkpoint/convert/distributed_checkpoint.hpp"
#include "executor/checkpoint/convert/file_layout.hpp"
#include "executor/config/files/layout_file.hpp"
#include "executor/config/toml.hpp"
#include "rheo/reshard/mesh.hpp"
#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

constexpr step_id step{5};

/// `run/step-5`, whose config says its model.
void write_job(temporary_folder const& folder)
{
    fs::create_directory(folder.path / "run");
    REQUIRE(small_job::write(folder.path / "run", step, 2).state == writer_state::published);
    auto const path = checkpoint_folder(folder.path / "run", step) / "manifest.json";
    auto manifest = parse_manifest(folder.read("run/step-5/manifest.json"), "manifest.json");
    run_config config;
    config.model = small_job::shape;
    config.train.microbatch.tokens = small_job::shape.context;
    manifest.config = to_toml(config);
    std::ofstream{path, std::ios::binary} << format_manifest(manifest);
}

std::string digest_of_job() { return to_string(small_job::digest(*small_job::state_after(step))); }

/// The sentence with which the command ends.
std::string refused(temporary_folder const& folder, std::string const& arguments, int code)
{
    auto const files = [&] {
        std::string list;
        for (auto const& entry : fs::recursive_directory_iterator{folder.path}) {
            list += entry.path().string() + "\n";
        }
        return list;
    };
    folder.write("out", "");
    folder.write("err", "");
    auto const before = files();
    auto const shown = run_rheo(folder, "convert " + arguments);
    CAPTURE(arguments, shown.err);
    CHECK(shown.exit_code == code);
    CHECK(shown.out.empty());
    CHECK(files() == before);
    return shown.err;
}

/// Changes one byte of a file.
void flip(fs::path const& file, std::streamoff from_end)
{
    std::fstream stream{file, std::ios::in | std::ios::out | std::ios::binary};
    stream.seekg(-from_end, std::ios::end);
    auto const byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(-from_end, std::ios::end);
    stream.put(byte);
}

}  // namespace

TEST_CASE("convert_faults: the command takes a run's newest state")
{
    temporary_folder const folder;
    write_job(folder);
    auto shown = run_rheo(folder, "convert run new/step-5 --layout 2,2,1");
    CAPTURE(shown.err);
    CHECK(shown.exit_code == 0);
    CHECK_THAT(shown.out,
               ContainsSubstring("new/step-5: step 5 of 'run/step-5' in layout 2,2,1") && ContainsSubstring("digest of the state " + digest_of_job()));
    CHECK(small_job::same(checkpoint{folder.path / "new" / "step-5"}, *small_job::state_after(step)));
    shown = run_rheo(folder, "convert new/step-5 dcp/ --layout 1,1,3 --format dcp --memory 0.01 --json");
    REQUIRE(shown.exit_code == 0);
    auto const is = nlohmann::json::parse(shown.out);
    CHECK(is["digest"] == digest_of_job());
    CHECK(is["same_digest"] == true);
    CHECK(is["files"] == 3);
    CHECK(is["step"] == 5);
}

TEST_CASE("convert_faults: shards without rheo.json need --like")
{
    temporary_folder const folder;
    write_job(folder);
    REQUIRE(run_rheo(folder, "convert run dcp --layout 1,2,1 --format dcp").exit_code == 0);
    fs::remove(folder.path / "dcp" / "rheo.json");
    CHECK_THAT(refused(folder, "dcp new --layout 2,1,1", 2), ContainsSubstring("'dcp' has no 'rheo.json'") && ContainsSubstring("--like"));
    auto shown = run_rheo(folder, "convert dcp same --layout 2,1,1 --like run/step-5");
    CHECK(shown.exit_code == 0);
    CHECK_THAT(shown.out, ContainsSubstring(digest_of_job()) && !ContainsSubstring("fingerprint"));
    flip(folder.path / "dcp" / "shard-00001-model-00001-of-00001.safetensors", 1);
    shown = run_rheo(folder, "convert dcp other --layout 2,1,1 --like run/step-5");
    CHECK(shown.exit_code == 0);
    CHECK_THAT(shown.out, ContainsSubstring("the values are others than those of step 5: it has no fingerprint"));
    checkpoint const other{folder.path / "other"};
    CHECK(other.manifest().fingerprint.empty());
    checkpoint const same{folder.path / "same"};
    CHECK_FALSE(same.manifest().fingerprint.empty());
}

TEST_CASE("convert_faults: a refusal is a sentence, leaving nothing")
{
    temporary_folder const folder;
    write_job(folder);
    fs::create_directories(folder.path / "empty");
    folder.write("text", "no folder");
    CHECK_THAT(refused(folder, "empty new --layout 1,1,1", 4), ContainsSubstring("'empty' is no checkpoint: it has no manifest.json, no folder 'step-<n>'"));
    CHECK_THAT(refused(folder, "nowhere new --layout 1,1,1", 4), ContainsSubstring("'nowhere' is no checkpoint"));
    CHECK_THAT(refused(folder, "text new --layout 1,1,1", 4), ContainsSubstring("'text'"));
    CHECK_THAT(refused(folder, "run run/step-5 --layout 1,1,1", 2), ContainsSubstring("'run/step-5' is there already"));
    CHECK_THAT(refused(folder, "run new/step-6 --layout 1,1,1", 2), ContainsSubstring("'new/step-6' is the name of step 6, but the state is of step 5"));
    CHECK_THAT(refused(folder, "run new --layout 3,1,1", 2), ContainsSubstring("the model has 2 heads, fewer than tensor parallel ranks"));
    CHECK_THAT(refused(folder, "run new --layout 1,1,1 --memory 0.00005", 2),
               ContainsSubstring("the memory limit is 52 bytes, but the longest row that is copied has 128"));
    CHECK_THAT(refused(folder, "run new --layout 1,1,1 --like run/step-5", 2), ContainsSubstring("--like is for checkpoints of PyTorch"));
    CHECK_THAT(refused(folder, "run new --layout nothing.json", 4), ContainsSubstring("nothing.json: this layout cannot be read"));
    folder.write("pickled/.metadata", "");
    CHECK_THAT(refused(folder, "pickled new --layout 1,1,1", 4), ContainsSubstring("pickled form") && ContainsSubstring("HuggingFaceStorageWriter"));
}

TEST_CASE("convert_faults: a layout that does not fit is named")
{
    temporary_folder const folder;
    write_job(folder);
    auto const whole_job = mesh_layout(mesh_tensors(gpt_model(small_job::shape)), {}, even_cuts(4, 1));
    auto const refuse = [&](auto change) {
        auto layout = whole_job;
        change(layout);
        folder.write("layout.json", format_layout(layout));
        return refused(folder, "run new --layout layout.json", 2);
    };
    CHECK_THAT(refuse([](auto& l) { l.tensors[2].name = "other"; }), ContainsSubstring("layout.json: tensor \"other\" is not in 'run/step-5'"));
    CHECK_THAT(refuse([](auto& l) {
                   l.tensors.pop_back();
                   std::erase_if(l.places[0].parts, [&](auto const& part) { return at(part.tensor) >= l.tensors.size(); });
               }),
               ContainsSubstring("of 'run/step-5' has no place in it"));
    CHECK_THAT(refuse([](auto& l) {
                   l.tensors[0].shape[0] = 7;
                   l.places[0].parts[0].box[0].end = 7;
                   l.tensors[0].padded.reset();
               }),
               ContainsSubstring("tensor \"wte.weight\" is [0:7, 0:8], but 'run/step-5' has it as [0:19, 0:8]"));
    CHECK_THAT(refuse([](auto& l) { l.tensors[0].element = {dtype::f32}; }),
               ContainsSubstring("tensor \"wte.weight\" [0:19, 0:8]: no rank has these elements"));
    CHECK_THAT(refuse([](auto& l) { l.tensors[0].element[1] = dtype::bf16; }), ContainsSubstring("has a first_moment of 2 bytes per element"));
    auto overlapping = whole_job;
    overlapping.places[0].parts.push_back(overlapping.places[0].parts[0]);
    folder.write("layout.json", format_layout(overlapping));
    CHECK_THAT(refused(folder, "run new --layout layout.json", 4), ContainsSubstring("rank 0, tensor \"wte.weight\"") && ContainsSubstring("overlaps"));
}

TEST_CASE("convert_faults: a damaged file is named, with exit code 4")
{
    temporary_folder const folder;
    write_job(folder);
    auto const broken = [&](char const* file, auto change) {
        auto const path = folder.path / "run" / "step-5" / file;
        auto const good = folder.read(std::string{"run/step-5/"} + file);
        change(path);
        auto message = refused(folder, "run new --layout 2,1,1 --memory 0.001", 4);
        folder.write(std::string{"run/step-5/"} + file, good);
        return message;
    };
    CHECK_THAT(broken("manifest.json", [](auto const& path) { flip(path, 100); }), ContainsSubstring("'run/step-5/manifest.json'"));
    CHECK_THAT(broken("model-1.safetensors", [](auto const& path) { flip(path, 5); }),
               ContainsSubstring("'run/step-5/model-1.safetensors' has other values of '") && ContainsSubstring("than its manifest says"));
    CHECK_THAT(broken("state-0.safetensors", [](auto const& path) { fs::resize_file(path, fs::file_size(path) - 4); }),
               ContainsSubstring("'run/step-5/state-0.safetensors'"));
    CHECK_THAT(broken("state-1.safetensors", [](auto const& path) { fs::remove(path); }),
               ContainsSubstring("'run/step-5/state-1.safetensors' cannot be opened"));
}

TEST_CASE("convert_faults: shards that do not make a whole are named")
{
    temporary_folder const folder;
    write_job(folder);
    REQUIRE(run_rheo(folder, "convert run dcp --layout 2,1,1 --format dcp").exit_code == 0);
    std::string const first = "dcp/shard-00001-model-00001-of-00003.safetensors";
    auto const good = folder.read(first);
    auto const with_header = [&](std::string const& from, std::string const& to) {
        auto changed = good;
        auto const place = changed.find(from);
        REQUIRE(place != std::string::npos);
        REQUIRE(from.size() == to.size());
        changed.replace(place, from.size(), to);
        folder.write(first, changed);
        auto message = refused(folder, "dcp new --layout 1,1,1", 4);
        folder.write(first, good);
        return message;
    };
    CHECK_THAT(with_header("saved_offsets", "other_offsets"), ContainsSubstring(first) && ContainsSubstring("has no 'saved_offsets'"));
    CHECK_THAT(with_header(R"(wte.weight\":{\"saved_offsets\":[0,0])", R"(wte.weight\":{\"saved_offsets\":[9,0])"), ContainsSubstring("'wte.weight'"));
    CHECK_THAT(with_header(R"(wte.weight\":{\"saved_offsets\":[0,0])", R"(wte.weight\":{\"saved_offsets\":[0,9])"), ContainsSubstring("'wte.weight'"));
    CHECK_THAT(with_header(R"(wte.weight\":{\"saved_offsets\":[0,0])", R"(wte.weight\":{\"saved_offsets\":[00,])"), ContainsSubstring(first));
    fs::copy_file(folder.path / first, folder.path / "dcp" / "twice.safetensors");
    CHECK_THAT(refused(folder, "dcp new --layout 1,1,1", 4),
               ContainsSubstring("has elements of '") && ContainsSubstring("twice") && ContainsSubstring("twice.safetensors"));
    fs::remove(folder.path / "dcp" / "twice.safetensors");
    fs::remove(folder.path / first);
    CHECK_THAT(refused(folder, "dcp new --layout 1,1,1", 4), ContainsSubstring("'dcp'"));
    folder.write(first, good);
    CHECK(run_rheo(folder, "convert dcp new --layout 1,1,1").exit_code == 0);
}

TEST_CASE("convert_faults: a killed conversion leaves no checkpoint")
{
    temporary_folder const folder;
    write_job(folder);
    auto const from = stored_in(checkpoint{folder.path / "run" / "step-5"});
    std::int64_t largest = 0;
    for (auto const& file : from.files) {
        largest = std::max(largest, static_cast<std::int64_t>(fs::file_size(file)));
    }
    conversion const what{.from = from,
                          .layout = fit_layout(mesh_layout(mesh_tensors(gpt_model(small_job::shape)), {.tensor = 2}, even_cuts(4, 1)), from, "layout"),
                          .memory = bytes{256},
                          .out = folder.path / "new" / "step-5"};
    int killed = 0;
    for (std::int64_t limit = 0; killed < 1000; limit += 1 + largest / 16) {
        auto const child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {  // the system ends a process that writes beyond its limit, in the middle of a file
            struct rlimit const most{static_cast<rlim_t>(limit), static_cast<rlim_t>(limit)};
            std::signal(SIGXFSZ, SIG_DFL);
            bool const set = ::setrlimit(RLIMIT_FSIZE, &most) == 0;
            try {
                convert(what);
            } catch (std::exception const&) {
                ::_exit(2);
            }
            ::_exit(set ? 0 : 3);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        if (WIFEXITED(status)) {
            REQUIRE(WEXITSTATUS(status) == 0);
            break;
        }
        REQUIRE(WTERMSIG(status) == SIGXFSZ);
        ++killed;
        CHECK_FALSE(fs::exists(what.out));
        CHECK(checkpoint_steps(folder.path / "new").empty());
    }
    CHECK(killed > 5);
    CHECK(small_job::same(checkpoint{what.out}, *small_job::state_after(step)));
    drop_unfinished_checkpoints(folder.path / "new");  // as the next training there does
    CHECK(std::distance(fs::directory_iterator{folder.path / "new"}, fs::directory_iterator{}) == 1);
}
