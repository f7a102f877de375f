// SPDX-License-Identifier: Apache-2.0
// Families with a Llama's layers under Hugging Face's names, transposed and split; weights in shards and in other types.
#include <algorithm>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "executor/checkpoint/huggingface/export.hpp"
#include "executor/checkpoint/huggingface/import.hpp"
#include "executor/checkpoint/huggingface/model_json.hpp"
#include "executor/checkpoint/huggingface/weight_files.hpp"
#include "rheo/tensor/bfloat16.hpp"
#include "rheo/tensor/float16.hpp"
#include "unit/executor/checkpoint/written_model.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;

namespace {

namespace fs = std::filesystem;

/// Twelve columns in three heads that share one head of keys and values.
run_config llama(bool tied = false)
{
    run_config config;
    config.family = model_family::llama;
    config.model = {.vocabulary = 19, .context = 6, .width = 12, .heads = 3, .blocks = 2, .tied = tied};
    config.llama = {.kv_heads = 1, .mlp_width = 7, .rope_base = 500000};
    return config;
}

std::map<std::string, std::vector<float>> weights_in(fs::path const& folder)
{
    weight_files const files{folder};
    std::map<std::string, std::vector<float>> all;
    for (auto const& file : files.files()) {
        for (auto const& entry : file.header().entries) {
            all[entry.name] = file.read(entry);
        }
    }
    return all;
}

/// The values of a tensor that is there, in this shape.
std::vector<float> values_of(weight_files const& files, std::string const& name, std::vector<std::int64_t> const& shape)
{
    INFO(name);
    auto const at = files.find(name);
    REQUIRE(at);
    CHECK(at.entry->shape == shape);
    return weight_files::read(at);
}

std::vector<std::string> names_in(fs::path const& folder)
{
    std::vector<std::string> names;
    for (auto const& entry : fs::directory_iterator{folder}) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

void check_same_parameters(checkpoint const& a, checkpoint const& b)
{
    REQUIRE(a.manifest().tensors.size() == b.manifest().tensors.size());
    for (auto const& tensor : a.manifest().tensors) {
        if (tensor.is_parameter) {
            INFO(tensor.name);
            CHECK(b.read(tensor.name, tensor_role::parameter) == a.read(tensor.name, tensor_role::parameter));
        }
    }
}

}  // namespace

TEST_CASE("huggingface: a Llama is transposed and split")
{
    for (bool const tied : {false, true}) {
        temporary_folder const folder;
        auto const from = written_model::write(folder, llama(tied));
        export_huggingface(from, folder.path / "out");
        weight_files const files{folder.path / "out"};
        auto const has = [&](std::string const& name, std::vector<std::int64_t> const& shape) { return values_of(files, name, shape); };
        auto const ours = [&](char const* name) { return from.read(name, tensor_role::parameter); };
        auto const qkv = ours("model.layers.1.self_attn.qkv_proj.weight");  // [12, 12 + 4 + 4]
        auto const q = has("model.layers.1.self_attn.q_proj.weight", {12, 12});
        auto const k = has("model.layers.1.self_attn.k_proj.weight", {4, 12});
        auto const v = has("model.layers.1.self_attn.v_proj.weight", {4, 12});
        auto const gates = ours("model.layers.0.mlp.gate_up_proj.weight");  // [12, 7 + 7]
        auto const gate = has("model.layers.0.mlp.gate_proj.weight", {7, 12});
        auto const up = has("model.layers.0.mlp.up_proj.weight", {7, 12});
        auto const down = has("model.layers.0.mlp.down_proj.weight", {12, 7});
        for (std::size_t in = 0; in < 12; ++in) {
            for (std::size_t out = 0; out < 12; ++out) {
                CHECK(q[out * 12 + in] == qkv[in * 20 + out]);
            }
            for (std::size_t out = 0; out < 4; ++out) {
                CHECK(k[out * 12 + in] == qkv[in * 20 + 12 + out]);
                CHECK(v[out * 12 + in] == qkv[in * 20 + 16 + out]);
            }
            for (std::size_t out = 0; out < 7; ++out) {
                CHECK(gate[out * 12 + in] == gates[in * 14 + out]);
                CHECK(up[out * 12 + in] == gates[in * 14 + 7 + out]);
                CHECK(down[in * 7 + out] == ours("model.layers.0.mlp.down_proj.weight")[out * 12 + in]);
            }
        }
        CHECK(has("model.embed_tokens.weight", {19, 12}) == ours("model.embed_tokens.weight"));
        CHECK(has("model.norm.weight", {12}) == ours("model.norm.weight"));
        CHECK(has("model.layers.1.input_layernorm.weight", {12}) == ours("model.layers.1.input_layernorm.weight"));
        CHECK(has("model.layers.0.post_attention_layernorm.weight", {12}) == ours("model.layers.0.post_attention_layernorm.weight"));
        has("model.layers.0.self_attn.o_proj.weight", {12, 12});
        CHECK(static_cast<bool>(files.find("lm_head.weight")) == !tied);
        CHECK(files.files().front().header().entries.size() == 2 + 9 * 2 + (tied ? 0U : 1U));

        auto const config = nlohmann::json::parse(folder.read("out/config.json"));
        CHECK(config["architectures"] == nlohmann::json{"LlamaForCausalLM"});
        CHECK(config["model_type"] == "llama");
        CHECK(config["vocab_size"] == 19);
        CHECK(config["max_position_embeddings"] == 6);
        CHECK(config["hidden_size"] == 12);
        CHECK(config["intermediate_size"] == 7);
        CHECK(config["num_hidden_layers"] == 2);
        CHECK(config["num_attention_heads"] == 3);
        CHECK(config["num_key_value_heads"] == 1);
        CHECK(config["rope_theta"] == 500000.0);
        CHECK(config["tie_word_embeddings"] == tied);
        auto const made = import_huggingface(folder.path / "out", folder.path / "run");
        check_same_parameters(from, checkpoint{made.checkpoint});
        auto const trained = read_config_file(made.config.string(), {}, find_schedule_or_name).config;
        CHECK(trained.family == model_family::llama);
        CHECK(trained.model == llama(tied).model);
        CHECK(trained.llama == llama(tied).llama);
    }
}

TEST_CASE("huggingface: shards with an index, as full as asked")
{
    temporary_folder const folder;
    auto const from = written_model::write(folder, llama());
    export_huggingface(from, folder.path / "out", {.shard = bytes{2000}});
    auto const names = names_in(folder.path / "out");
    REQUIRE(names.size() > 5);
    auto const count = names.size() - 2;
    CHECK(names.front() == "config.json");
    CHECK(names[1] == shard_file_name(0, count));
    CHECK(names[count] == shard_file_name(count - 1, count));
    CHECK(names.back() == "model.safetensors.index.json");
    auto const index = nlohmann::json::parse(folder.read("out/model.safetensors.index.json"));
    std::int64_t total = 0;
    std::size_t tensors = 0;
    for (std::size_t f = 0; f < count; ++f) {
        safetensors_file const file{folder.path / "out" / names[f + 1]};
        auto const& header = file.header();
        CHECK((header.file_bytes - header.data_begin <= 2000 || header.entries.size() == 1));
        total += header.file_bytes - header.data_begin;
        tensors += header.entries.size();
        for (auto const& entry : header.entries) {
            CHECK(index["weight_map"][entry.name] == names[f + 1]);
        }
    }
    CHECK(index["metadata"]["total_size"] == total);
    CHECK(index["weight_map"].size() == tensors);
    check_same_parameters(from, checkpoint{import_huggingface(folder.path / "out", folder.path / "run").checkpoint});

    auto const in_shards = weights_in(folder.path / "out");
    export_huggingface(from, folder.path / "out");  // again, in one: what would be read in its place is gone
    CHECK(names_in(folder.path / "out") == std::vector<std::string>{"config.json", "model.safetensors"});
    CHECK(weights_in(folder.path / "out") == in_shards);
    folder.write("out/model-final.safetensors", "of the user");
    folder.write("out/tokenizer.json", "{}");
    export_huggingface(from, folder.path / "out", {.shard = bytes{2000}});
    auto const after = names_in(folder.path / "out");
    CHECK(std::count(after.begin(), after.end(), "model.safetensors") == 0);
    CHECK(std::count(after.begin(), after.end(), "model-final.safetensors") + std::count(after.begin(), after.end(), "tokenizer.json") == 2);
}

TEST_CASE("huggingface: an index that does not fit its files")
{
    temporary_folder const folder;
    export_huggingface(written_model::write(folder, llama()), folder.path / "out", {.shard = bytes{2000}});
    auto const good = nlohmann::json::parse(folder.read("out/model.safetensors.index.json"));
    auto const refused = [&](auto change, char const* message) {
        auto index = good;
        change(index);
        folder.write("out/model.safetensors.index.json", index.dump());
        CHECK_THROWS_WITH(import_huggingface(folder.path / "out", folder.path / "run"), ContainsSubstring(message));
        CHECK_FALSE(fs::exists(folder.path / "run"));
    };
    auto const other = good["weight_map"]["lm_head.weight"];
    refused([&](auto& index) { index["weight_map"]["model.embed_tokens.weight"] = other; }, "has no 'model.embed_tokens.weight', which '");
    refused([](auto& index) { index["weight_map"]["model.norm.weight"] = "../x.safetensors"; }, "expected a file beside the index");
    refused([](auto& index) { index["weight_map"]["model.norm.weight"] = 3; }, "in a file whose name is no text");
    refused([](auto& index) { index["weight_map"]["model.norm.weight"] = "none.safetensors"; }, "none.safetensors' cannot be opened");
    refused([](auto& index) { index["weight_map"] = nlohmann::json::array(); }, "'weight_map' that is no object");
    refused([](auto& index) { index.erase("weight_map"); }, "has no 'weight_map'");
    refused(
        [&](auto& index) {
            fs::copy_file(folder.path / "out" / other.template get<std::string>(), folder.path / "out" / "copy.safetensors",
                          fs::copy_options::overwrite_existing);
            index["weight_map"]["lm_head.weight"] = "copy.safetensors";
        },
        "which another file of '");
    fs::remove(folder.path / "out" / "model.safetensors.index.json");
    CHECK_THROWS_WITH(import_huggingface(folder.path / "out", folder.path / "run"), ContainsSubstring("model.safetensors' cannot be opened"));
}

TEST_CASE("huggingface: weights are rounded to BF16 and F16 and read")
{
    temporary_folder const folder;
    auto const from = written_model::write(folder, llama());
    auto const compare = [&](char const* dtype, auto round) {
        auto const out = folder.path / dtype;
        export_huggingface(from, out, {.dtype = dtype});
        checkpoint const back{import_huggingface(out, folder.path / "run" / dtype).checkpoint};
        for (auto const& tensor : from.manifest().tensors) {
            if (tensor.is_parameter) {
                auto expected = from.read(tensor.name, tensor_role::parameter);
                std::transform(expected.begin(), expected.end(), expected.begin(), round);
                CHECK(back.read(tensor.name, tensor_role::parameter) == expected);
            }
        }
        return nlohmann::json::parse(folder.read(std::string{dtype} + "/config.json"))["torch_dtype"];
    };
    CHECK(compare("BF16", [](float x) { return float{bfloat16{x}}; }) == "bfloat16");
    CHECK(compare("F16", [](float x) { return float{float16{x}}; }) == "float16");
    CHECK(compare("F32", [](float x) { return x; }) == "float32");

    // 1e5 is beyond a half's largest.
    std::vector<safetensors_entry> entries;
    std::string data;
    for (auto& [name, values] : weights_in(folder.path / "F32")) {
        auto changed = values;
        changed[3] = name == "model.norm.weight" ? 1e5F : changed[3];
        entries.push_back({name, "F32", weight_files{folder.path / "F32"}.find(name).entry->shape, 0, 0});
        data.append(reinterpret_cast<char const*>(changed.data()), changed.size() * sizeof(float));
    }
    folder.write("F32/model.safetensors", format_safetensors(entries) + data);
    checkpoint const large{import_huggingface(folder.path / "F32", folder.path / "run" / "large").checkpoint};
    CHECK_THROWS_WITH(export_huggingface(large, folder.path / "no", {.dtype = "F16"}),
                      ContainsSubstring("'model.norm.weight' has the value 100000, which F16 cannot hold; write F32 or BF16"));
    export_huggingface(large, folder.path / "yes", {.dtype = "BF16"});
}

TEST_CASE("huggingface: a large model is imported part by part")
{
    temporary_folder const folder;
    auto config = llama();
    config.model.vocabulary = 70'000;  // more than 16 bits tell apart
    config.model.width = 6;
    auto const from = written_model::write(folder, config);
    export_huggingface(from, folder.path / "out");
    auto const whole = import_huggingface(folder.path / "out", folder.path / "one");
    auto const parts = import_huggingface(folder.path / "out", folder.path / "many", bytes{1000});
    CHECK(names_in(whole.checkpoint).size() == 3);
    CHECK(names_in(parts.checkpoint).size() == 2 * 3 + 1);
    checkpoint const many{parts.checkpoint};
    many.verify();
    checkpoint const one{whole.checkpoint};
    CHECK(many.manifest().digest() == one.manifest().digest());
    check_same_parameters(from, many);
    CHECK(read_config_file(parts.config.string(), {}, find_schedule_or_name).config.model.vocabulary == 70'000);
    fs::remove_all(folder.path / "many" / "step-0");
    CHECK_THROWS_WITH(import_huggingface(folder.path / "out", folder.path / "many"), ContainsSubstring("many/config.toml' is there already"));
}

TEST_CASE("huggingface: names without model., constants beside them")
{
    temporary_folder const folder;
    auto const from = written_model::write(folder, llama(true));
    export_huggingface(from, folder.path / "out");
    weight_files const files{folder.path / "out"};
    std::vector<safetensors_entry> entries;
    std::string data;
    for (auto const& entry : files.files().front().header().entries) {
        auto const values = files.files().front().read(entry);
        entries.push_back({entry.name.substr(6), "F32", entry.shape, 0, 0});
        data.append(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float));
    }
    entries.push_back({"layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, 0, 0});
    data.append(4, '\0');
    folder.write("base/model.safetensors", format_safetensors(entries) + data);
    folder.write("base/config.json", folder.read("out/config.json"));
    check_same_parameters(from, checkpoint{import_huggingface(folder.path / "base", folder.path / "run").checkpoint});
    entries[4].dtype = "I32";
    folder.write("base/model.safetensors", format_safetensors(entries) + data);
    CHECK_THROWS_WITH(import_huggingface(folder.path / "base", folder.path / "run2"), ContainsSubstring("in I32; F32, F16 and BF16 can be read"));
}

TEST_CASE("huggingface: Qwen's biases and norms, heads of any width")
{
    for (auto const family : {model_family::qwen2, model_family::qwen3}) {
        auto config = llama();
        config.family = family;
        config.llama.head_dim = 6;  // three heads of six columns, of twelve
        config.model.norm_epsilon_e9 = 1000;
        temporary_folder const folder;
        auto const from = written_model::write(folder, config);
        export_huggingface(from, folder.path / "out");
        weight_files const files{folder.path / "out"};
        auto const has = [&](std::string const& name, std::vector<std::int64_t> const& shape) { return values_of(files, name, shape); };
        has("model.layers.0.self_attn.q_proj.weight", {18, 12});
        has("model.layers.0.self_attn.v_proj.weight", {6, 12});
        has("model.layers.0.self_attn.o_proj.weight", {12, 18});
        if (family == model_family::qwen2) {
            auto const bias = from.read("model.layers.1.self_attn.qkv_proj.bias", tensor_role::parameter);
            CHECK(has("model.layers.1.self_attn.q_proj.bias", {18}) == std::vector<float>(bias.begin(), bias.begin() + 18));
            CHECK(has("model.layers.1.self_attn.k_proj.bias", {6}) == std::vector<float>(bias.begin() + 18, bias.begin() + 24));
            CHECK(has("model.layers.1.self_attn.v_proj.bias", {6}) == std::vector<float>(bias.begin() + 24, bias.end()));
            CHECK_FALSE(files.find("model.layers.1.self_attn.o_proj.bias"));
        } else {
            CHECK(has("model.layers.1.self_attn.q_norm.weight", {6}) == from.read("model.layers.1.self_attn.q_norm.weight", tensor_role::parameter));
            CHECK(has("model.layers.1.self_attn.k_norm.weight", {6}) == from.read("model.layers.1.self_attn.k_norm.weight", tensor_role::parameter));
        }
        auto const json = nlohmann::json::parse(folder.read("out/config.json"));
        CHECK(json["model_type"] == name_of(family));
        CHECK(json["architectures"][0] == (family == model_family::qwen2 ? "Qwen2ForCausalLM" : "Qwen3ForCausalLM"));
        CHECK(json["head_dim"] == 6);
        CHECK(json["rms_norm_eps"] == 1e-6);
        auto const made = import_huggingface(folder.path / "out", folder.path / "run");
        check_same_parameters(from, checkpoint{made.checkpoint});
        auto const trained = read_config_file(made.config.string(), {}, find_schedule_or_name).config;
        CHECK(trained.family == family);
        CHECK(trained.model == config.model);
        CHECK(trained.llama == config.llama);
    }
}

TEST_CASE("huggingface: a Llama that is computed otherwise is rejected")
{
    auto config = llama();
    auto const good = nlohmann::json::parse(format_huggingface_config({config.family, config.model, config.llama}));
    auto const changed = [&](nlohmann::json const& patch) {
        auto json = good;
        json.merge_patch(patch);
        return json.dump();
    };
    auto const refused = [&](nlohmann::json const& patch, char const* message) {
        CHECK_THROWS_WITH(parse_huggingface_config(changed(patch), "config.json"), ContainsSubstring("'config.json' ") && ContainsSubstring(message));
    };
    refused({{"hidden_act", "gelu"}}, "has another 'hidden_act' than silu; such a model is computed otherwise");
    refused({{"attention_bias", true}}, "has another 'attention_bias' than false");
    refused({{"mlp_bias", true}}, "has another 'mlp_bias' than false");
    refused({{"attention_dropout", 0.1}}, "has another 'attention_dropout' than 0");
    refused({{"rope_theta", 0.5}}, "has rope_theta 0.5; here it is a whole number from 1 to 2^30");
    refused({{"rope_theta", 10000.5}}, "has rope_theta 10000.5");
    refused({{"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}}, "has rotary positions of the type 'dynamic'; default, linear and llama3 can be taken");
    refused({{"rope_scaling", {{"type", "linear"}}}}, "has rotary positions of the type 'linear' without 'factor'");
    refused({{"rope_scaling", {{"type", "linear"}, {"factor", 0.5}}}}, "must have a factor of at least 1");
    refused({{"rope_scaling",
              {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 1}, {"original_max_position_embeddings", 8192}}}},
            "must have a low_freq_factor above 0 and a high_freq_factor above that");
    refused({{"rope_scaling", 3}}, "has rotary positions that are no object");
    refused({{"rope_parameters", 3}}, "has rotary positions that are no object");
    refused({{"rope_parameters", {{"full_attention", {{"rope_theta", 7}}}}}}, "has rotary positions for each type of layer");
    refused({{"rope_parameters", {{"rope_theta", 7}, {"partial_rotary_factor", 0.5}}}}, "has another 'partial_rotary_factor' than 1");
    refused({{"partial_rotary_factor", 0.5}}, "has another 'partial_rotary_factor' than 1");
    refused({{"rms_norm_eps", 0.5}}, "has rms_norm_eps 0.5; here it is a multiple of 1e-09");
    refused({{"head_dim", 5}}, "model.head_dim = 5 must be even");
    refused({{"model_type", "qwen3"}, {"attention_bias", true}}, "has another 'attention_bias' than false");
    refused({{"model_type", "qwen2"}, {"use_sliding_window", true}, {"sliding_window", 5}}, "attends to the last 5 of 6 tokens");
    refused({{"rope_scaling", {{"rope_type", "yarn"}}}}, "has rotary positions of the type 'yarn'");
    refused({{"num_key_value_heads", 2}}, "model.kv_heads = 2 must divide model.heads = 3");
    refused({{"model_type", "mistral"}, {"sliding_window", 5}}, "attends to the last 5 of 6 tokens");
    refused({{"model_type", "mistral"}, {"max_position_embeddings", 8192}}, "attends to the last 4096 of 8192 tokens");  // of the class, where it is left out
    refused({{"model_type", "mistral"}, {"num_key_value_heads", nullptr}}, "model.kv_heads = 8 must divide model.heads = 3");
    refused({{"layer_types", {"full_attention", "sliding_attention"}}, {"sliding_window", 5}}, "attends to the last 5 of 6 tokens");
    refused({{"layer_types", {"linear_attention"}}}, "has a layer of the type \"linear_attention\"");

    auto const read = [&](nlohmann::json const& patch) { return parse_huggingface_config(changed(patch), "c"); };
    huggingface_model const expected{config.family, config.model, config.llama};
    CHECK(read(nlohmann::json::object()) == expected);
    CHECK(read({{"rope_theta", nullptr}, {"rope_scaling", nullptr}, {"rope_parameters", {{"rope_theta", 500000.0}, {"rope_type", "default"}}}}) == expected);
    CHECK(read({{"sliding_window", 5}}) == expected);  // a Llama has none
    CHECK(read({{"rms_norm_eps", nullptr}}).shape.norm_epsilon_e9 == 1000);
    CHECK(read({{"head_dim", 4}}).llama.head_dim == 0);
    CHECK(read({{"head_dim", 6}}).llama.head_dim == 6);
    CHECK(read({{"model_type", "qwen3"}, {"head_dim", nullptr}}).llama.head_dim == 128);
    CHECK(read({{"rope_scaling", {{"type", "linear"}, {"factor", 2.5}}}}).llama.scaling ==
          rope_scaling{.kind = rope_scaling_kind::linear, .factor_per_mille = 2500});
    CHECK(read({{"rope_parameters",
                 {{"rope_theta", 7},
                  {"rope_type", "llama3"},
                  {"factor", 8},
                  {"low_freq_factor", 1},
                  {"high_freq_factor", 4},
                  {"original_max_position_embeddings", 8192}}}})
              .llama.scaling == rope_scaling{rope_scaling_kind::llama3, 8000, 1000, 4000, 8192});
    CHECK(read({{"model_type", "mistral"}, {"sliding_window", 6}}).family == model_family::mistral);
    CHECK(read({{"num_key_value_heads", nullptr}}).llama.kv_heads == 3);
    CHECK(read({{"tie_word_embeddings", nullptr}}).shape.tied == false);
    auto with_nulls = good;  // which a patch takes out
    with_nulls.update({{"model_type", "mistral"}, {"max_position_embeddings", 8192}, {"sliding_window", nullptr}, {"num_key_value_heads", nullptr}});
    CHECK(parse_huggingface_config(with_nulls.dump(), "c").llama.kv_heads == 3);
}
