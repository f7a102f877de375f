// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/weights.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/float_values.hpp"
#include "executor/checkpoint/huggingface/model_json.hpp"
#include "rheo/model/state.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::int64_t most_config_bytes = 1 << 20;
constexpr std::string_view untied_weight = "lm_head.weight";

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

std::vector<huggingface_weights::sources> sources_of(weight_files const& files, collection const& state, run_config const& config)
{
    std::vector<huggingface_weights::sources> all;
    for (tensor_id t{0}; at(t) < state.tensors.size(); ++t) {
        if (!state.tensors[at(t)].is_parameter) {
            continue;
        }
        auto& from = all.emplace_back(huggingface_weights::sources{t, {}});
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
void check_others(weight_files const& files, std::vector<huggingface_weights::sources> const& all)
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

run_config config_in(std::filesystem::path const& folder)
{
    auto const name = (folder / "config.json").string();
    return config_of(parse_huggingface_config(read_file(name, most_config_bytes), name));
}

}  // namespace

huggingface_weights::huggingface_weights(std::filesystem::path const& folder)
    : config_{config_in(folder)}, state_{state_of(whole_model_of(config_))}, files_{folder}, sources_{sources_of(files_, state_, config_)}
{
    check_others(files_, sources_);
}

std::vector<tensor_id> huggingface_weights::parameters() const
{
    std::vector<tensor_id> all;
    for (auto const& from : sources_) {
        all.push_back(from.parameter);
    }
    return all;
}

std::vector<float> huggingface_weights::values(tensor_id parameter) const
{
    auto const from = std::find_if(sources_.begin(), sources_.end(), [&](auto const& s) { return s.parameter == parameter; });
    auto const shape = state_.tensors[at(parameter)].shape;
    std::vector<float> values(static_cast<std::size_t>(elements(shape)));
    for (auto const& [part, place] : from->parts) {
        put_values(part, shape, weight_files::read(place), values);
    }
    return values;
}

}  // namespace rheo::inline v0
