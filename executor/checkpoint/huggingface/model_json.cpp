// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/model_json.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/checkpoint/huggingface/json_members.hpp"
#include "executor/checkpoint/huggingface/llama_json.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;

int dropout_of(json const& config)
{
    std::optional<double> common;
    for (auto const* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
        auto const value = optional_member(config, key, 0.1);  // the default of the format
        if (!(value >= 0 && value < 1) || common.value_or(value) != value) {
            throw json_error{fmt::format("has {} {}; all three dropouts must be the same fraction from 0 to below 1", key, value)};
        }
        common = value;
    }
    return static_cast<int>(std::lround(*common * 1000));
}

huggingface_model read_gpt2(json const& config)
{
    gpt_shape shape{.vocabulary = number_member(config, "vocab_size", 2, most_vocabulary),
                    .context = number_member(config, "n_positions", 1, 1 << 20),
                    .width = number_member(config, "n_embd", 1, 1 << 16),
                    .heads = number_member(config, "n_head", 1, 1 << 10),
                    .blocks = number_member(config, "n_layer", 0, 1 << 10),
                    .dropout_per_mille = 0,
                    .tied = optional_member(config, "tie_word_embeddings", true)};
    must_be(config, "activation_function", std::string{"gelu_new"});
    must_be(config, "scale_attn_weights", true);
    must_be(config, "scale_attn_by_inverse_layer_idx", false);
    must_be(config, "add_cross_attention", false);
    must_be(config, "n_inner", std::int64_t{4} * shape.width);
    shape.norm_epsilon_e9 = parts_member(config, "layer_norm_epsilon", 1e-5, 1e9, 1, most_epsilon_e9);
    shape.dropout_per_mille = dropout_of(config);
    return {.family = model_family::gpt2, .shape = shape, .llama = {}};
}

nlohmann::ordered_json gpt2_members(gpt_shape const& s)
{
    auto const dropout = s.dropout_per_mille / 1000.0;
    return {{"architectures", {"GPT2LMHeadModel"}},
            {"model_type", "gpt2"},
            {"activation_function", "gelu_new"},
            {"vocab_size", s.vocabulary},
            {"n_positions", s.context},
            {"n_ctx", s.context},
            {"n_embd", s.width},
            {"n_head", s.heads},
            {"n_layer", s.blocks},
            {"n_inner", nullptr},
            {"layer_norm_epsilon", s.norm_epsilon_e9 / 1e9},
            {"attn_pdrop", dropout},
            {"embd_pdrop", dropout},
            {"resid_pdrop", dropout},
            {"scale_attn_weights", true}};
}

model_family family_of(json const& config)
{
    auto const type = text_member(config, "model_type");
    auto const& known = words_of<model_family>;
    auto const found = std::find(known.begin(), known.end(), type);
    if (found == known.end()) {
        throw json_error{fmt::format("is of the model type '{}'; {} can be taken", type, fmt::join(known, ", "))};
    }
    return static_cast<model_family>(found - known.begin());
}

}  // namespace

run_config config_of(huggingface_model const& model)
{
    run_config config;
    config.family = model.family;
    config.model = model.shape;
    config.llama = model.llama;
    config.train.microbatch.tokens = std::min(config.train.microbatch.tokens, model.shape.context);
    return config;
}

std::string format_huggingface_config(huggingface_model const& model, std::string_view dtype)
{
    auto config = model.family == model_family::gpt2 ? gpt2_members(model.shape) : llama_members(model);
    config["initializer_range"] = 0.02;
    config["tie_word_embeddings"] = model.shape.tied;
    config["bos_token_id"] = nullptr;
    config["eos_token_id"] = nullptr;
    config["torch_dtype"] = dtype == "F16" ? "float16" : dtype == "BF16" ? "bfloat16" : "float32";
    return config.dump(2) + "\n";
}

huggingface_model parse_huggingface_config(std::string_view text, std::string const& name)
{
    try {
        auto const config = parse_strict(text, 32);
        auto const family = family_of(config);
        if (auto const found = config.find("quantization_config"); found != config.end() && !found->is_null()) {
            throw json_error{"has a 'quantization_config'; weights in F32, F16 or BF16 can be taken"};
        }
        auto const model = family == model_family::gpt2 ? read_gpt2(config) : read_llama(config, family);
        if (auto const fault = check_model(config_of(model))) {
            throw json_error{fmt::format("describes a model that cannot be: {}: {}", fault->key, fault->message)};
        }
        return model;
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", name, error.what())};
    }
}

}  // namespace rheo::inline v0
