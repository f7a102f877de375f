// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/llama_json.hpp"

#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "executor/checkpoint/huggingface/json_members.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;

constexpr double norm_epsilon = 1e-5;  ///< of the norm's definition

/// Which rotary positions, from members of today's files (`rope_parameters`) or of older ones (`rope_theta`, `rope_scaling`).
int rope_base_of(json const& config)
{
    auto const found = config.find("rope_parameters");
    bool const nested = found != config.end() && found->is_object();
    auto const base = optional_member(nested ? *found : config, "rope_theta", 10000.0);
    if (!(base >= 1 && base <= (1 << 30)) || base != std::floor(base)) {
        throw json_error{fmt::format("has rope_theta {}; here it is a whole number from 1 to 2^30", base)};
    }
    auto const scaling = nested ? found : config.find("rope_scaling");
    if (scaling != config.end() && !scaling->is_null()) {
        if (!scaling->is_object()) {
            throw json_error{"has rotary positions that are no object with a 'rope_type'"};
        }
        auto const kind = optional_member(*scaling, "rope_type", optional_member(*scaling, "type", std::string{"default"}));
        if (kind != "default") {
            throw json_error{fmt::format("has rotary positions of the type '{}'; here they are not scaled", kind)};
        }
    }
    return static_cast<int>(base);
}

/// A window as long as the longest sequence cuts nothing off.
void check_window(json const& config, model_family family, int context)
{
    bool slides = family == model_family::mistral;
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
    auto const window = optional_member(config, "sliding_window", std::int64_t{context});
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
    huggingface_model model{.family = family,
                            .shape = {.vocabulary = number_member(config, "vocab_size", 2, most_vocabulary),
                                      .context = number_member(config, "max_position_embeddings", 1, 1 << 20),
                                      .width = number_member(config, "hidden_size", 1, 1 << 16),
                                      .heads = number_member(config, "num_attention_heads", 1, 1 << 10),
                                      .blocks = number_member(config, "num_hidden_layers", 0, 1 << 10),
                                      .dropout_per_mille = 0,
                                      .tied = optional_member(config, "tie_word_embeddings", false)},
                            .llama = {}};
    auto const& shape = model.shape;
    auto const keys = config.find("num_key_value_heads");
    bool const as_many = keys == config.end() || keys->is_null();
    model.llama.kv_heads = as_many ? (family == model_family::mistral ? 8 : shape.heads) : number_member(config, "num_key_value_heads", 1, 1 << 10);
    model.llama.mlp_width = number_member(config, "intermediate_size", 1, 1 << 18);
    model.llama.rope_base = rope_base_of(config);
    if (auto const head = optional_member(config, "head_dim", std::int64_t{shape.width / shape.heads}); head * shape.heads != shape.width) {
        throw json_error{fmt::format("has head_dim {}; here it is hidden_size / num_attention_heads", head)};
    }
    if (auto const epsilon = optional_member(config, "rms_norm_eps", 1e-6); std::abs(epsilon - norm_epsilon) > 1e-12) {
        throw json_error{fmt::format("has rms_norm_eps {}; here it is {}", epsilon, norm_epsilon)};
    }
    check_window(config, family, shape.context);
    return model;
}

nlohmann::ordered_json llama_members(huggingface_model const& model)
{
    auto const& s = model.shape;
    auto const whole = llama_shape_of(config_of(model));
    nlohmann::ordered_json members{{"architectures", {model.family == model_family::mistral ? "MistralForCausalLM" : "LlamaForCausalLM"}},
                                   {"model_type", name_of(model.family)},
                                   {"hidden_act", "silu"},
                                   {"vocab_size", s.vocabulary},
                                   {"max_position_embeddings", s.context},
                                   {"hidden_size", s.width},
                                   {"intermediate_size", whole.mlp_width},
                                   {"num_hidden_layers", s.blocks},
                                   {"num_attention_heads", s.heads},
                                   {"num_key_value_heads", whole.kv_heads},
                                   {"head_dim", s.width / s.heads},
                                   {"rms_norm_eps", norm_epsilon},
                                   {"rope_theta", static_cast<double>(whole.rope_base)},
                                   {"rope_scaling", nullptr},
                                   {"attention_dropout", 0.0}};
    if (model.family == model_family::mistral) {
        members["sliding_window"] = nullptr;
    } else {
        members["attention_bias"] = false;
        members["mlp_bias"] = false;
    }
    return members;
}

}  // namespace rheo::inline v0
