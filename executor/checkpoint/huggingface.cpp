// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/checkpoint_publish.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/config/toml.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

constexpr std::int64_t most_config_bytes = 1 << 20;
constexpr std::string_view prefix = "transformer.";
constexpr std::string_view untied_weight = "lm_head.weight";
constexpr double norm_epsilon = 1e-5;  ///< of the layer norm's definition

bool is_vector(std::string_view name) { return name.ends_with(".bias") || name.starts_with("ln_") || name.find(".ln_") != std::string_view::npos; }

/// A member that may be left out or null, then it is `otherwise`.
template <class Value>
Value optional_member(json const& object, char const* key, Value otherwise)
{
    auto const found = object.find(key);
    if (found == object.end() || found->is_null()) {
        return otherwise;
    }
    try {
        return found->template get<Value>();
    } catch (json::exception const&) {
        throw json_error{fmt::format("has a '{}' of a kind that was not expected", key)};
    }
}

/// Refuses models that are computed otherwise than ours.
void check_kind(json const& config, gpt_shape const& shape)
{
    auto const must_be = [&](char const* key, auto value) {
        if (optional_member(config, key, value) != value) {
            throw json_error{fmt::format("has another '{}' than {}; such a model is computed otherwise", key, value)};
        }
    };
    if (text_member(config, "model_type") != "gpt2") {
        throw json_error{fmt::format("is of the model type '{}'; only 'gpt2' can be taken", text_member(config, "model_type"))};
    }
    must_be("activation_function", std::string{"gelu_new"});
    must_be("scale_attn_weights", true);
    must_be("scale_attn_by_inverse_layer_idx", false);
    must_be("add_cross_attention", false);
    must_be("n_inner", std::int64_t{4} * shape.width);
    if (auto const epsilon = optional_member(config, "layer_norm_epsilon", norm_epsilon); std::abs(epsilon - norm_epsilon) > 1e-12) {
        throw json_error{fmt::format("has layer_norm_epsilon {}; here it is {}", epsilon, norm_epsilon)};
    }
}

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

template <class Read>
auto with_name(std::string const& name, Read read)
{
    try {
        return read();
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", name, error.what())};
    }
}

/// The entry of a parameter, under the name with or without the prefix, of the right shape.
safetensors_entry const& entry_of(safetensors_file const& file, tensor_info const& tensor, std::string const& name)
{
    auto const* entry = file.find(huggingface_name(tensor.name));
    entry = entry == nullptr ? file.find(tensor.name) : entry;
    if (entry == nullptr) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has no '{}', which the model of its config.json has", name, huggingface_name(tensor.name))};
    }
    if (entry->shape != huggingface_shape(tensor.name, tensor.shape)) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has '{}' in shape [{}]; the model of its config.json has it in [{}]", name, entry->name,
                                                          fmt::join(entry->shape, ", "), fmt::join(huggingface_shape(tensor.name, tensor.shape), ", "))};
    }
    return *entry;
}

/// What weights alone say about a run: the model. Everything else is for the run that begins with them.
std::string config_of_model(gpt_shape const& shape)
{
    run_config config;
    config.model = shape;
    auto const whole_config = to_toml(config);
    auto text = whole_config.substr(0, whole_config.find("\n[", whole_config.find("[model]")));
    if (config.train.microbatch.tokens > shape.context) {  // a config must be possible as a whole
        text += fmt::format("\n[train]\nmicrobatch.tokens = {}\n", shape.context);
    }
    return text;
}

/// Masks that old versions stored as if they were parameters.
bool is_mask(std::string_view name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"); }

/// What the file has beyond the model: a tied classifier may be there if it is the table; anything else is not understood.
void check_others(safetensors_file const& file, std::set<std::string> const& known, std::vector<float> const& table, std::string const& name)
{
    for (auto const& entry : file.header().entries) {
        if (known.contains(entry.name) || is_mask(entry.name)) {
            continue;
        }
        if (entry.name != untied_weight) {
            throw exit_error{exit_code::bad_data, fmt::format("'{}' has '{}', which the model of its config.json does not have", name, entry.name)};
        }
        if (auto const weight = file.read(entry);
            weight.size() != table.size() || std::memcmp(weight.data(), table.data(), table.size() * sizeof(float)) != 0) {
            throw exit_error{exit_code::bad_data,
                             fmt::format("'{}' has a 'lm_head.weight' that is not the token table, but its config.json says that they are tied", name)};
        }
    }
}

}  // namespace

std::vector<std::int64_t> huggingface_shape(std::string_view name, tensor_shape shape)
{
    return is_vector(name) && shape.rows == 1 ? std::vector{shape.columns} : std::vector{shape.rows, shape.columns};
}

std::string huggingface_name(std::string_view name) { return name == untied_weight ? std::string{name} : std::string{prefix} + std::string{name}; }

std::string format_huggingface_config(gpt_shape const& s)
{
    auto const dropout = s.dropout_per_mille / 1000.0;
    nlohmann::ordered_json const config{{"architectures", {"GPT2LMHeadModel"}},
                                        {"model_type", "gpt2"},
                                        {"activation_function", "gelu_new"},
                                        {"vocab_size", s.vocabulary},
                                        {"n_positions", s.context},
                                        {"n_ctx", s.context},
                                        {"n_embd", s.width},
                                        {"n_head", s.heads},
                                        {"n_layer", s.blocks},
                                        {"n_inner", nullptr},
                                        {"layer_norm_epsilon", norm_epsilon},
                                        {"attn_pdrop", dropout},
                                        {"embd_pdrop", dropout},
                                        {"resid_pdrop", dropout},
                                        {"initializer_range", 0.02},
                                        {"scale_attn_weights", true},
                                        {"tie_word_embeddings", s.tied},
                                        {"bos_token_id", nullptr},
                                        {"eos_token_id", nullptr},
                                        {"torch_dtype", "float32"}};
    return config.dump(2) + "\n";
}

gpt_shape parse_huggingface_config(std::string_view text, std::string const& name)
{
    return with_name(name, [&] {
        auto const config = parse_strict(text, 32);
        auto const number = [&](char const* key, std::int64_t least, std::int64_t most) {
            return static_cast<int>(integer_member(config, key, {least, most}));
        };
        gpt_shape shape{.vocabulary = number("vocab_size", 2, 65536),
                        .context = number("n_positions", 1, 1 << 20),
                        .width = number("n_embd", 1, 1 << 16),
                        .heads = number("n_head", 1, 1 << 10),
                        .blocks = number("n_layer", 0, 1 << 10),
                        .dropout_per_mille = 0,
                        .tied = optional_member(config, "tie_word_embeddings", true)};
        check_kind(config, shape);
        shape.dropout_per_mille = dropout_of(config);
        run_config whole_config;
        whole_config.model = shape;
        whole_config.train.microbatch.tokens = std::min(whole_config.train.microbatch.tokens, shape.context);
        if (auto const fault = check_model(whole_config)) {
            throw json_error{fmt::format("describes a model that cannot be: {}: {}", fault->key, fault->message)};
        }
        return shape;
    });
}

void export_huggingface(checkpoint const& from, fs::path const& folder)
{
    auto const manifest_name = (from.folder() / "manifest.json").string();
    gpt_shape shape;
    try {
        auto const config = read_config(from.manifest().config, manifest_name + ", config", {}, find_schedule_or_name).config;
        if (config.family != model_family::gpt2) {
            throw exit_error{exit_code::bad_data,
                             fmt::format("{}: model.family is {}; only a GPT-2 has a form of Hugging Face's here", manifest_name, name_of(config.family))};
        }
        shape = config.model;
    } catch (exit_error const& error) {
        throw exit_error{exit_code::bad_data, error.what()};
    }
    auto const state = state_of(gpt_model(shape));
    if (auto const why = from.load_error(state); !why.empty()) {
        throw exit_error{exit_code::bad_data, why + "; only a GPT has a form of Hugging Face's"};
    }
    with_name(manifest_name, [&] {
        std::error_code error;
        fs::create_directories(folder, error);
        make_folder(folder);
        std::vector<safetensors_entry> entries;
        for (auto const& tensor : state.tensors) {
            if (tensor.is_parameter) {
                entries.push_back({huggingface_name(tensor.name), "F32", huggingface_shape(tensor.name, tensor.shape), 0, 0});
            }
        }
        output_file weights{folder / "model.safetensors"};
        weights.write(format_safetensors(entries));
        for (auto const& tensor : state.tensors) {
            if (tensor.is_parameter) {
                auto const values = from.read(tensor.name, tensor_role::parameter);
                weights.write(std::as_bytes(std::span{values}));
            }
        }
        weights.sync_and_close();
        output_file config{folder / "config.json"};
        config.write(format_huggingface_config(shape));
        config.sync_and_close();
        sync_folder(folder);
        return 0;
    });
}

fs::path import_huggingface(fs::path const& folder, fs::path const& run_folder)
{
    if (auto const steps = checkpoint_steps(run_folder); !steps.empty()) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}' is there already: an import begins a run folder of its own", checkpoint_folder(run_folder, steps.back()).string())};
    }
    auto const config_name = (folder / "config.json").string();
    auto const weights_name = (folder / "model.safetensors").string();
    return with_name(weights_name, [&] {
        auto const shape = parse_huggingface_config(read_file(config_name, most_config_bytes), config_name);
        auto const state = state_of(gpt_model(shape));
        safetensors_file const file{weights_name};
        checkpoint_part part{rank_id{0}, step_id{0}, generation_id{0}, {}};
        std::set<std::string> known;
        std::vector<float> table;
        for (tensor_id t{0}; at(t) < state.tensors.size(); ++t) {
            auto const& tensor = state.tensors[at(t)];
            if (!tensor.is_parameter) {
                continue;
            }
            auto const& entry = entry_of(file, tensor, weights_name);
            known.insert(entry.name);
            auto values = file.read(entry);
            if (t == tensor_id{0}) {
                table = values;
            }
            std::vector<float> const zeros(values.size());
            part.tensors.push_back({t, tensor.name, tensor.shape, whole(tensor.shape), {std::move(values), zeros, zeros}});
        }
        check_others(file, known, table, weights_name);
        std::error_code error;
        fs::create_directories(run_folder, error);
        make_folder(run_folder);
        auto const nothing = [](checkpoint_point) {};
        write_part(run_folder, part, nothing, [] {});
        publish_parts(run_folder, {step_id{0}, generation_id{0}, {rank_id{0}}, tensors_for_manifest(state), {}, config_of_model(shape), {}, 0}, nothing);
        return checkpoint_folder(run_folder, step_id{0});
    });
}

}  // namespace rheo::inline v0
