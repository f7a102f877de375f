// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/llama_json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "executor/checkpoint/huggingface/json_members.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;

constexpr int most_factor = 1'000'000;       ///< in thousandths
constexpr std::int64_t usual_window = 4096;  ///< of a class with windows whose config.json leaves them out

struct rotary_positions {
    int base;
    rope_scaling scaling;
};

rope_scaling scaling_of(json const& given)
{
    if (!given.is_object()) {
        throw json_error{"has rotary positions that are no object with a 'rope_type'"};
    }
    if (std::any_of(given.begin(), given.end(), [](json const& value) { return value.is_object(); })) {
        throw json_error{"has rotary positions for each type of layer; such a model is computed otherwise"};
    }
    must_be(given, "partial_rotary_factor", 1.0);
    auto const kind = optional_member(given, "rope_type", optional_member(given, "type", std::string{"default"}));
    auto const factor = [&](char const* key) {
        if (!given.contains(key)) {
            throw json_error{fmt::format("has rotary positions of the type '{}' without '{}'", kind, key)};
        }
        return parts_member(given, key, 0, 1e3, 1, most_factor);
    };
    if (kind == "default") {
        return {};
    }
    rope_scaling scaling{.factor_per_mille = kind == "linear" || kind == "llama3" ? factor("factor") : 0};
    if (kind == "linear") {
        scaling.kind = rope_scaling_kind::linear;
    } else if (kind == "llama3") {
        scaling.kind = rope_scaling_kind::llama3;
        scaling.low_freq_factor_per_mille = factor("low_freq_factor");
        scaling.high_freq_factor_per_mille = factor("high_freq_factor");
        scaling.original_context = number_member(given, "original_max_position_embeddings", 1, 1 << 20);
    } else {
        throw json_error{fmt::format("has rotary positions of the type '{}'; default, linear and llama3 can be taken", kind)};
    }
    return scaling;
}

/// From members of today's files (`rope_parameters`) or of older ones (`rope_theta`, `rope_scaling`).
rotary_positions rotary_positions_of(json const& config)
{
    auto const found = config.find("rope_parameters");
    bool const nested = found != config.end() && !found->is_null();
    auto const base = optional_member(nested ? *found : config, "rope_theta", 10000.0);
    if (!(base >= 1 && base <= (1 << 30)) || base != std::floor(base)) {
        throw json_error{fmt::format("has rope_theta {}; here it is a whole number from 1 to 2^30", base)};
    }
    auto const scaling = nested ? found : config.find("rope_scaling");
    return {static_cast<int>(base), scaling == config.end() || scaling->is_null() ? rope_scaling{} : scaling_of(*scaling)};
}

nlohmann::ordered_json scaling_member(rope_scaling const& s)
{
    auto const factor = [](int per_mille) { return per_mille / 1000.0; };
    switch (s.kind) {
    case rope_scaling_kind::none: break;
    case rope_scaling_kind::linear: return {{"rope_type", "linear"}, {"factor", factor(s.factor_per_mille)}};
    case rope_scaling_kind::llama3:
        return {{"rope_type", "llama3"},
                {"factor", factor(s.factor_per_mille)},
                {"low_freq_factor", factor(s.low_freq_factor_per_mille)},
                {"high_freq_factor", factor(s.high_freq_factor_per_mille)},
                {"original_max_position_embeddings", s.original_context}};
    }
    return nullptr;
}

std::string_view class_of(model_family family)
{
    switch (family) {
    case model_family::mistral: return "MistralForCausalLM";
    case model_family::qwen2: return "Qwen2ForCausalLM";
    case model_family::qwen3: return "Qwen3ForCausalLM";
    default: return "LlamaForCausalLM";
    }
}

/// A window as long as the longest sequence cuts nothing off.
void check_window(json const& config, model_family family, int context)
{
    bool slides = family == model_family::mistral || optional_member(config, "use_sliding_window", false);
    if (auto const layers = config.find("layer_types"); layers != config.end() && !layers->is_null()) {
        if (!layers->is_array()) {
            throw json_error{"has 'layer_types' that are no list"};
        }
        slides = false;
        for (auto const& layer : *layers) {
            if (layer != "full_attention" && layer != "sliding_attention") {
                throw json_error{fmt::format("has a layer of the type {}; layers have full attention", format_json(layer))};
            }
            slides = slides || layer == "sliding_attention";
        }
    }
    auto const window = config.contains("sliding_window") ? optional_member(config, "sliding_window", std::int64_t{context}) : usual_window;
    if (slides && window < context) {
        throw json_error{
            fmt::format("attends to the last {} of {} tokens; all of them are attended to here, which is the same model where max_position_embeddings is {}",
                        window, context, window)};
    }
}

}  // namespace

huggingface_model read_llama(json const& config, model_family family)
{
    must_be(config, "hidden_act", std::string{"silu"});
    must_be(config, "attention_bias", false);
    must_be(config, "mlp_bias", false);
    must_be(config, "attention_dropout", 0.0);
    must_be(config, "partial_rotary_factor", 1.0);
    huggingface_model model{.family = family,
                            .shape = {.vocabulary = number_member(config, "vocab_size", 2, most_vocabulary),
                                      .context = number_member(config, "max_position_embeddings", 1, 1 << 20),
                                      .width = number_member(config, "hidden_size", 1, 1 << 16),
                                      .heads = number_member(config, "num_attention_heads", 1, 1 << 10),
                                      .blocks = number_member(config, "num_hidden_layers", 0, 1 << 10),
                                      .dropout_per_mille = 0,
                                      .tied = optional_member(config, "tie_word_embeddings", false),
                                      .norm_epsilon_e9 = parts_member(config, "rms_norm_eps", 1e-6, 1e9, 1, most_epsilon_e9)},
                            .llama = {}};
    auto const& shape = model.shape;
    auto const lacks = [&](char const* key) { return !config.contains(key) || config[key].is_null(); };
    if (!config.contains("num_key_value_heads")) {  // the class has a number of its own; null is as many as heads
        model.llama.kv_heads = family == model_family::llama ? shape.heads : family == model_family::mistral ? 8 : 32;
    } else {
        model.llama.kv_heads = lacks("num_key_value_heads") ? shape.heads : number_member(config, "num_key_value_heads", 1, 1 << 10);
    }
    model.llama.mlp_width = number_member(config, "intermediate_size", 1, 1 << 18);
    if (!lacks("head_dim") || family == model_family::qwen3) {
        auto const width = lacks("head_dim") ? 128 : number_member(config, "head_dim", 1, 1 << 10);
        model.llama.head_dim = width * shape.heads == shape.width ? 0 : width;
    }
    auto const [base, scaling] = rotary_positions_of(config);
    model.llama.rope_base = base;
    model.llama.scaling = scaling;
    check_window(config, family, shape.context);
    return model;
}

nlohmann::ordered_json llama_members(huggingface_model const& model)
{
    auto const& s = model.shape;
    auto const whole = llama_shape_of(config_of(model));
    nlohmann::ordered_json members{{"architectures", {class_of(model.family)}},
                                   {"model_type", name_of(model.family)},
                                   {"hidden_act", "silu"},
                                   {"vocab_size", s.vocabulary},
                                   {"max_position_embeddings", s.context},
                                   {"hidden_size", s.width},
                                   {"intermediate_size", whole.mlp_width},
                                   {"num_hidden_layers", s.blocks},
                                   {"num_attention_heads", s.heads},
                                   {"num_key_value_heads", whole.kv_heads},
                                   {"head_dim", head_dim_of(whole)},
                                   {"rms_norm_eps", s.norm_epsilon_e9 / 1e9},
                                   {"rope_theta", static_cast<double>(whole.rope_base)},
                                   {"rope_scaling", scaling_member(whole.scaling)},
                                   {"attention_dropout", 0.0}};
    switch (model.family) {
    case model_family::mistral: members["sliding_window"] = nullptr; break;
    case model_family::qwen3: members["attention_bias"] = false; [[fallthrough]];
    case model_family::qwen2: members["use_sliding_window"] = false; break;
    default: members["attention_bias"] = false; members["mlp_bias"] = false;
    }
    return members;
}

}  // namespace rheo::inline v0
