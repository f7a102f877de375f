// SPDX-License-Identifier: Apache-2.0
// Weights go out under Hugging Face's names and shapes and come back with the same bits.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <tuple>
#include <utility>

#include <sys/wait.h>
#include <nlohmann/json.hpp>

#include "executor/checkpoint/huggingface/export.hpp"
#include "executor/checkpoint/huggingface/import.hpp"
#include "executor/checkpoint/huggingface/model_json.hpp"
#include "executor/config/toml.hpp"
#include "executor/host/backend.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"
#include "unit/executor/checkpoint/written_model.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;

namespace {

struct outcome {
    int exit_code;
    std::string out;
    std::string err;
};

/// Runs `rheo`, which stands next to this test's executable, in a folder.
outcome rheo_program(temporary_folder const& folder, std::string const& arguments)
{
    auto const program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rheo";
    REQUIRE(std::filesystem::exists(program));
    auto const command = "cd '" + folder.path.string() + "' && env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK -u PMI_RANK timeout 60 '" + program.string() + "' " +
                         arguments + " >out 2>err </dev/null";
    int const status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("out"), folder.read("err")};
}

}  // namespace

TEST_CASE("huggingface: names and shapes match GPT2LMHeadModel")
{
    for (bool const tied : {true, false}) {
        temporary_folder const folder;
        auto shape = small_job::shape;
        shape.tied = tied;
        shape.dropout_per_mille = 100;
        auto const from = written_model::write(folder, shape);
        export_huggingface(from, folder.path / "a" / "b");
        safetensors_file const file{folder.path / "a" / "b" / "model.safetensors"};
        auto const has = [&](char const* name, std::vector<std::int64_t> const& extents) {
            INFO(name);
            REQUIRE(file.find(name) != nullptr);
            CHECK(file.find(name)->shape == extents);
        };
        has("transformer.wte.weight", {19, 8});
        has("transformer.wpe.weight", {6, 8});
        has("transformer.h.1.ln_1.bias", {8});
        has("transformer.h.0.attn.c_attn.weight", {8, 24});
        has("transformer.h.0.attn.c_attn.bias", {24});
        has("transformer.h.1.mlp.c_fc.weight", {8, 32});
        has("transformer.h.1.mlp.c_proj.weight", {32, 8});
        has("transformer.ln_f.weight", {8});
        CHECK((file.find("lm_head.weight") != nullptr) == !tied);
        CHECK(file.header().entries.size() == 2 + 12 * 2 + 2 + (tied ? 0U : 1U));
        auto const config = nlohmann::json::parse(folder.read("a/b/config.json"));
        CHECK(config["model_type"] == "gpt2");
        CHECK(config["vocab_size"] == 19);
        CHECK(config["n_positions"] == 6);
        CHECK(config["n_embd"] == 8);
        CHECK(config["n_head"] == 2);
        CHECK(config["n_layer"] == 2);
        CHECK(config["tie_word_embeddings"] == tied);
        CHECK(config["attn_pdrop"] == 0.1);
        CHECK(config["bos_token_id"].is_null());
        CHECK(config["eos_token_id"].is_null());
        CHECK(parse_huggingface_config(config.dump(), "c") == huggingface_model{.shape = shape});

        temporary_folder const run;
        auto const made = import_huggingface(folder.path / "a" / "b", run.path / "new");
        CHECK(made.checkpoint == run.path / "new" / "step-0");
        CHECK(made.config == run.path / "new" / "config.toml");
        auto const trained = read_config_file(made.config.string(), {}, find_schedule_or_name).config;
        CHECK(trained.model == shape);
        CHECK(trained.train.microbatch.tokens == shape.context);
        CHECK(trained.run.folder == (run.path / "new").string());
        auto const found = find_newest_checkpoint(run.path / "new");
        REQUIRE(found.newest);
        CHECK(found.newest->manifest().fingerprint.empty());
        CHECK(read_config(found.newest->manifest().config, "c").config.model == shape);
        auto const info = state_of(gpt_model(shape));
        host_backend backend{1};
        resident_state state{info, backend};
        std::fill(state.scales.begin(), state.scales.end(), -5);
        found.newest->read_scales(state, 1);
        CHECK(std::all_of(state.scales.begin(), state.scales.end(), [](int scale) { return scale == -5; }));  // none came
        for (auto const& tensor : from.manifest().tensors) {
            if (tensor.is_parameter) {
                CHECK(found.newest->read(tensor.name, tensor_role::parameter) == from.read(tensor.name, tensor_role::parameter));
                CHECK(found.newest->read(tensor.name, tensor_role::second_moment) == std::vector<float>(static_cast<std::size_t>(elements(tensor.shape))));
            }
        }
        CHECK_THROWS_WITH(import_huggingface(folder.path / "a" / "b", run.path / "new"), ContainsSubstring("step-0' is there already"));
    }
}

TEST_CASE("huggingface: imports weights without prefix, tied head")
{
    temporary_folder const folder;
    auto const from = written_model::write(folder, small_job::shape);
    export_huggingface(from, folder.path / "out");
    safetensors_file const file{folder.path / "out" / "model.safetensors"};
    std::vector<safetensors_entry> entries;
    std::string data;
    auto const add = [&](std::string const& name, std::vector<std::int64_t> const& shape, std::vector<float> const& values) {
        entries.push_back({name, "F32", shape, 0, 0});
        data.append(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float));
    };
    for (auto const& e : file.header().entries) {
        add(e.name.substr(e.name.find('.') + 1), e.shape, file.read(e));
    }
    add("h.0.attn.bias", {1, 1, 2, 2}, {1, 0, 1, 1});
    auto table = file.read(*file.find("transformer.wte.weight"));
    auto const before = std::pair{entries, data};
    add("lm_head.weight", {19, 8}, table);
    folder.write("in/config.json", folder.read("out/config.json"));
    folder.write("in/model.safetensors", format_safetensors(entries) + data);
    auto const made = import_huggingface(folder.path / "in", folder.path / "run");
    CHECK(checkpoint{made.checkpoint}.read("wte.weight", tensor_role::parameter) == table);

    std::tie(entries, data) = before;
    table[5] += 1;
    add("lm_head.weight", {19, 8}, table);
    folder.write("in/model.safetensors", format_safetensors(entries) + data);
    CHECK_THROWS_WITH(import_huggingface(folder.path / "in", folder.path / "run2"), ContainsSubstring("that is not the token table"));
    std::tie(entries, data) = before;
    add("h.7.ln_1.bias", {1}, {0});
    folder.write("in/model.safetensors", format_safetensors(entries) + data);
    CHECK_THROWS_WITH(import_huggingface(folder.path / "in", folder.path / "run2"),
                      ContainsSubstring("has 'h.7.ln_1.bias', which the model of its config.json does not have"));
    auto config = nlohmann::json::parse(folder.read("out/config.json"));
    config["n_layer"] = 3;
    folder.write("in/config.json", config.dump());
    CHECK_THROWS_WITH(import_huggingface(folder.path / "in", folder.path / "run2"), ContainsSubstring("has no 'transformer.h.2.ln_1.weight'"));
    config["n_layer"] = 2;
    config["n_positions"] = 7;
    folder.write("in/config.json", config.dump());
    CHECK_THROWS_WITH(import_huggingface(folder.path / "in", folder.path / "run2"),
                      ContainsSubstring("in shape [6, 8]; the model of its config.json has it in [7, 8]"));
    CHECK_FALSE(std::filesystem::exists(folder.path / "run2"));
}

TEST_CASE("huggingface: config.json of another model is rejected")
{
    auto const good = nlohmann::json::parse(format_huggingface_config({.shape = small_job::shape}));
    auto const refused = [&](char const* key, nlohmann::json const& value, std::string const& message) {
        auto bad = good;
        bad[key] = value;
        CHECK_THROWS_WITH(parse_huggingface_config(bad.dump(), "config.json"), ContainsSubstring("'config.json' ") && ContainsSubstring(message));
    };
    refused("model_type", "bert", "is of the model type 'bert'; gpt2, llama, mistral, qwen2, qwen3 can be taken");
    refused("quantization_config", nlohmann::json::object(), "has a 'quantization_config'");
    refused("vocab_size", (1 << 24) + 1, "'vocab_size' that is not a whole number from 2 to 16777216");
    refused("activation_function", "relu", "has another 'activation_function' than gelu_new");
    refused("n_inner", 33, "has another 'n_inner' than 32");
    refused("scale_attn_by_inverse_layer_idx", true, "computed otherwise");
    refused("layer_norm_epsilon", 1.5e-9, "has layer_norm_epsilon 1.5e-09; here it is a multiple of 1e-09 from 1e-09 to 0.001");
    refused("attn_pdrop", 0.1, "all three dropouts must be the same");
    refused("n_head", 3, "model.width");
    refused("n_head", 0, "'n_head' that is not a whole number from 1");
    refused("n_layer", 1e9, "'n_layer' that is not a whole number");
    refused("vocab_size", nullptr, "'vocab_size' that is not a whole number");
    refused("n_inner", "x", "of a kind that was not expected");
    auto finer = good;
    finer["layer_norm_epsilon"] = 1e-6;
    CHECK(parse_huggingface_config(finer.dump(), "c").shape.norm_epsilon_e9 == 1000);
    CHECK_THROWS_WITH(parse_huggingface_config("{", "config.json"), ContainsSubstring("is not JSON"));
    auto silent = good;  // what may be left out
    for (auto const* key : {"n_inner", "layer_norm_epsilon", "scale_attn_weights", "tie_word_embeddings", "activation_function"}) {
        silent.erase(key);
    }
    CHECK(parse_huggingface_config(silent.dump(), "c") == huggingface_model{.shape = small_job::shape});
}

TEST_CASE("huggingface: special tokens come back with an export")
{
    temporary_folder const folder;
    temporary_folder const run;
    export_huggingface(written_model::write(run, small_job::shape), folder.path / "saved");
    auto config = nlohmann::json::parse(folder.read("saved/config.json"));
    CHECK_FALSE(std::filesystem::exists(folder.path / "saved/generation_config.json"));
    config["bos_token_id"] = 1;
    config["eos_token_id"] = {2, 3};
    folder.write("saved/config.json", config.dump());
    folder.write("saved/generation_config.json", R"({"do_sample":true,"temperature":0.6,"eos_token_id":[2,3]})");
    import_huggingface(folder.path / "saved", folder.path / "run");
    export_huggingface(checkpoint{folder.path / "run/step-0"}, folder.path / "exported");
    CHECK(nlohmann::json::parse(folder.read("exported/config.json")) == config);
    CHECK(nlohmann::ordered_json::parse(folder.read("exported/generation_config.json")).dump() ==
          R"({"do_sample":true,"temperature":0.6,"eos_token_id":[2,3]})");

    config["eos_token_id"] = "</s>";
    folder.write("saved/config.json", config.dump());
    CHECK_THROWS_WITH(import_huggingface(folder.path / "saved", folder.path / "other"),
                      ContainsSubstring("has a 'eos_token_id' that is neither a token, a list of tokens, nor null"));
    CHECK_FALSE(std::filesystem::exists(folder.path / "other"));
}

TEST_CASE("huggingface: export and import commands round-trip")
{
    temporary_folder const folder;
    {
        temporary_folder const run;
        auto const from = written_model::write(run, small_job::shape);
        std::filesystem::copy(run.path, folder.path / "run", std::filesystem::copy_options::recursive);
    }
    auto result = rheo_program(folder, "export run weights");
    CHECK(result.err.empty());
    CHECK(result.exit_code == 0);
    CHECK(result.out == "weights: the weights of step 4 of 'run/step-4'\n");
    CHECK(rheo_program(folder, "export run/step-4 weights").exit_code == 0);
    result = rheo_program(folder, "import weights again");
    CHECK(result.err.empty());
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.out, ContainsSubstring("again/step-0: step 0 with these weights\nagain/config.toml: trains on from it"));
    result = rheo_program(folder, "import weights again");
    CHECK(result.exit_code == 4);
    CHECK(result.err == "rheo: 'again/step-0' is there already: an import begins a run folder of its own\n");
    result = rheo_program(folder, "export weights elsewhere");
    CHECK(result.exit_code == 4);
    CHECK(result.err == "rheo: 'weights' is neither a checkpoint nor a run folder with a usable one\n");
    result = rheo_program(folder, "import nowhere again2");
    CHECK(result.exit_code == 4);
    CHECK(result.err == "rheo: 'nowhere/config.json' cannot be opened: No such file or directory\n");
    CHECK(rheo_program(folder, "export run weights/config.json").exit_code == 5);
    result = rheo_program(folder, "export run shards --dtype bf16 --shard-size 0.001");
    CHECK(result.err.empty());
    CHECK(std::filesystem::exists(folder.path / "shards" / "model.safetensors.index.json"));
    CHECK(rheo_program(folder, "import shards fourth").exit_code == 0);
    result = rheo_program(folder, "export run weights --dtype int8");
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring("--dtype"));
}
