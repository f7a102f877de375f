// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/import.hpp"

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/checkpoint_publish.hpp"
#include "executor/checkpoint/float_values.hpp"
#include "executor/checkpoint/huggingface/model_json.hpp"
#include "executor/checkpoint/huggingface/tensors.hpp"
#include "executor/checkpoint/huggingface/weight_files.hpp"
#include "executor/config/toml.hpp"
#include "executor/config/toml_value.hpp"
#include "rheo/model/state.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_config_bytes = 1 << 20;
constexpr std::string_view untied_weight = "lm_head.weight";

/// Where the values of a parameter come from.
struct sources {
    tensor_id parameter;
    std::vector<std::pair<huggingface_tensor, weight_files::place>> parts;
};

/// The name as a class without its head writes it: GPT2Model leaves out "transformer.", LlamaModel "model.".
std::string without_prefix(std::string const& name) { return name == untied_weight ? name : name.substr(name.find('.') + 1); }

weight_files::place place_of(weight_files const& files, huggingface_tensor const& tensor)
{
    auto place = files.find(tensor.name);
    place = place ? place : files.find(without_prefix(tensor.name));
    if (!place) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has no '{}', which the model of its config.json has", files.name(), tensor.name)};
    }
    if (place.entry->shape != tensor.shape) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}' has '{}' in shape [{}]; the model of its config.json has it in [{}]", place.file->path().string(), place.entry->name,
                                     fmt::join(place.entry->shape, ", "), fmt::join(tensor.shape, ", "))};
    }
    if (!is_float_dtype(place.entry->dtype)) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}' has '{}' in {}; F32, F16 and BF16 can be read", place.file->path().string(), place.entry->name, place.entry->dtype)};
    }
    return place;
}

std::vector<sources> sources_of(weight_files const& files, collection const& state, run_config const& config)
{
    std::vector<sources> all;
    for (tensor_id t{0}; at(t) < state.tensors.size(); ++t) {
        if (!state.tensors[at(t)].is_parameter) {
            continue;
        }
        auto& from = all.emplace_back(sources{t, {}});
        for (auto& tensor : huggingface_tensors(state.tensors[at(t)], config)) {
            auto const place = place_of(files, tensor);
            from.parts.emplace_back(std::move(tensor), place);
        }
    }
    return all;
}

/// What old versions stored as if it were a parameter: masks, and the angles of rotary positions.
bool is_constant(std::string_view name)
{
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".rotary_emb.inv_freq");
}

/// What the files have beyond the model: a tied classifier may be there if it is the table; anything else is not understood.
void check_others(weight_files const& files, std::vector<sources> const& all)
{
    std::set<std::string_view> known;
    for (auto const& from : all) {
        for (auto const& [tensor, place] : from.parts) {
            known.insert(place.entry->name);
        }
    }
    for (auto const& file : files.files()) {
        for (auto const& entry : file.header().entries) {
            if (known.contains(entry.name) || is_constant(entry.name)) {
                continue;
            }
            if (entry.name != untied_weight) {
                throw exit_error{exit_code::bad_data,
                                 fmt::format("'{}' has '{}', which the model of its config.json does not have", file.path().string(), entry.name)};
            }
            auto const weight = file.read(entry);
            auto const table = weight_files::read(all.front().parts.front().second);
            if (weight.size() != table.size() || std::memcmp(weight.data(), table.data(), table.size() * sizeof(float)) != 0) {
                throw exit_error{
                    exit_code::bad_data,
                    fmt::format("'{}' has a 'lm_head.weight' that is not the token table, but its config.json says that they are tied", file.path().string())};
            }
        }
    }
}

/// What weights alone say about a run: the model. Everything else is for the run that begins with them.
std::string model_table(run_config const& config)
{
    auto const whole = to_toml(config);
    auto const begin = whole.find("[model]");
    return whole.substr(begin, whole.find("\n[", begin) - begin);
}

/// A config must be possible as a whole.
std::string config_of_model(run_config const& config)
{
    return fmt::format("schema = 1\n\n{}\n[train]\nmicrobatch.tokens = {}\n", model_table(config), config.train.microbatch.tokens);
}

/// What trains on at once; the rest is as everywhere.
std::string config_to_train(run_config const& config, fs::path const& from, fs::path const& run_folder)
{
    return fmt::format(
        "# {} of {}, to be trained on: rheo train {}\n"
        "schema = 1\n\n{}\n"
        "[data]\n"
        "paths = []                        # token files (.bin) of the model's own tokenizer. Empty = the C++ standard library headers, byte by byte.\n\n"
        "[train]\n"
        "microbatch.tokens = {}\n\n"
        "[optimizer]\n"
        "learning_rate = 2e-5              # for weights that are trained already\n"
        "final_learning_rate = 2e-6\n\n"
        "[run]\n"
        "folder = {}\n",
        name_of(config.family), toml_value(from.string()), toml_value((run_folder / "config.toml").string()), model_table(config),
        config.train.microbatch.tokens, toml_value(run_folder.string()));
}

void check_free(fs::path const& path)
{
    std::error_code error;
    if (fs::exists(path, error)) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' is there already: an import begins a run folder of its own", path.string())};
    }
}

tensor_snapshot snapshot_of(sources const& from, tensor_info const& tensor)
{
    std::vector<float> values(static_cast<std::size_t>(elements(tensor.shape)));
    for (auto const& [part, place] : from.parts) {
        put_values(part, tensor.shape, weight_files::read(place), values);
    }
    std::vector<float> const zeros(values.size());
    return {from.parameter, tensor.name, tensor.shape, whole(tensor.shape), {std::move(values), zeros, zeros}};
}

}  // namespace

imported_run import_huggingface(fs::path const& folder, fs::path const& run_folder, bytes part_bytes)
{
    imported_run const made{checkpoint_folder(run_folder, step_id{0}), run_folder / "config.toml"};
    if (auto const steps = checkpoint_steps(run_folder); !steps.empty()) {
        check_free(checkpoint_folder(run_folder, steps.back()));
    }
    check_free(made.config);
    auto const config_name = (folder / "config.json").string();
    auto const config = config_of(parse_huggingface_config(read_file(config_name, most_config_bytes), config_name));
    auto const state = state_of(whole_model_of(config));
    weight_files const files{folder};
    auto const all = sources_of(files, state, config);
    check_others(files, all);

    std::error_code error;
    fs::create_directories(run_folder, error);
    make_folder(run_folder);
    auto const nothing = [](checkpoint_point) {};
    std::vector<rank_id> parts;
    try {
        checkpoint_part part{rank_id{0}, step_id{0}, generation_id{0}, {}};
        bytes filled;
        for (auto const& from : all) {
            auto const& tensor = state.tensors[at(from.parameter)];
            part.tensors.push_back(snapshot_of(from, tensor));
            filled += bytes{elements(tensor.shape) * static_cast<std::int64_t>(sizeof(float))};
            if (filled >= part_bytes || &from == &all.back()) {
                write_part(run_folder, part, nothing, [] {});
                parts.push_back(part.rank);
                part.rank = rank_id{part.rank.value + 1};
                part.tensors.clear();
                filled = {};
            }
        }
        publish_parts(run_folder, {step_id{0}, generation_id{0}, parts, tensors_for_manifest(state), {}, config_of_model(config), {}, 0}, nothing);
        output_file written{made.config};
        written.write(config_to_train(config, folder, run_folder));
        written.sync_and_close();
        sync_folder(run_folder);
    } catch (...) {
        remove_unfinished(run_folder, step_id{0}, generation_id{0});
        throw;
    }
    return made;
}

}  // namespace rheo::inline v0
