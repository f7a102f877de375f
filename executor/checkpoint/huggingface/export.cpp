// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/export.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_config.hpp"
#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/float_values.hpp"
#include "executor/checkpoint/huggingface/model_json.hpp"
#include "executor/checkpoint/huggingface/special_tokens.hpp"
#include "executor/checkpoint/huggingface/tensors.hpp"
#include "executor/checkpoint/huggingface/weight_files.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/model/state.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

/// A tensor that is written, and the parameter that has its values.
struct written_tensor {
    tensor_info const* parameter;
    huggingface_tensor as;
    std::int64_t bytes;
};

using file_contents = std::vector<written_tensor>;

/// All tensors in the order of the parameters, dealt to files that are as full as the form allows.
std::vector<file_contents> deal(collection const& state, run_config const& config, export_form const& form)
{
    std::vector<file_contents> files(1);
    std::int64_t filled = 0;
    for (auto const& tensor : state.tensors) {
        if (!tensor.is_parameter) {
            continue;
        }
        for (auto& as : huggingface_tensors(tensor, config)) {
            auto const size = elements(as.box) * safetensors_element_bytes(form.dtype);
            if (!files.back().empty() && filled + size > form.shard.count) {
                files.emplace_back();
                filled = 0;
            }
            filled += size;
            files.back().push_back({&tensor, std::move(as), size});
        }
    }
    return files;
}

class weights_writer {
public:
    weights_writer(checkpoint const& from, fs::path folder, std::string dtype) : from_{&from}, folder_{std::move(folder)}, dtype_{std::move(dtype)} {}

    void write(std::string const& name, file_contents const& tensors)
    {
        std::vector<safetensors_entry> entries;
        for (auto const& tensor : tensors) {
            entries.push_back({tensor.as.name, dtype_, tensor.as.shape, 0, 0});
        }
        output_file file{folder_ / name};
        file.write(format_safetensors(entries));
        for (auto const& tensor : tensors) {
            auto const values = values_in_file(tensor.as, tensor.parameter->shape, values_of(*tensor.parameter));
            file.write(std::span<std::byte const>{narrow(dtype_, values, tensor.as.name)});
        }
        file.sync_and_close();
    }

private:
    /// Of the parameter at hand, which is read once for all tensors that are boxes of it.
    std::vector<float> const& values_of(tensor_info const& parameter)
    {
        if (parameter_ != &parameter) {
            values_ = from_->read(parameter.name, tensor_role::parameter);
            parameter_ = &parameter;
        }
        return values_;
    }

    checkpoint const* from_;
    fs::path folder_;
    std::string dtype_;
    tensor_info const* parameter_ = nullptr;
    std::vector<float> values_;
};

std::string format_index(std::vector<file_contents> const& files)
{
    nlohmann::ordered_json map;
    std::int64_t total = 0;
    for (std::size_t f = 0; f < files.size(); ++f) {
        for (auto const& tensor : files[f]) {
            map[tensor.as.name] = shard_file_name(f, files.size());
            total += tensor.bytes;
        }
    }
    return nlohmann::ordered_json{{"metadata", {{"total_size", total}}}, {"weight_map", map}}.dump(2) + "\n";
}

std::string config_json(run_config const& config, export_form const& form, nlohmann::ordered_json const& ids)
{
    auto const text = format_huggingface_config({config.family, config.model, config.llama}, form.dtype);
    auto whole = nlohmann::ordered_json::parse(text);
    whole.update(ids);
    return whole.dump(2) + "\n";
}

void write_file(fs::path const& path, std::string const& text)
{
    output_file file{path};
    file.write(text);
    file.sync_and_close();
}

/// Weights of an earlier export that a reader would take for those of this one.
void remove_others(fs::path const& folder, std::set<std::string> const& written)
{
    std::vector<fs::path> old;
    std::error_code error;
    for (fs::directory_iterator entry{folder, error}; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        auto const name = entry->path().filename().string();
        if (is_weights_file_name(name) && !written.contains(name)) {
            old.push_back(entry->path());
        }
    }
    for (auto const& path : old) {
        if (!fs::remove(path, error) && error) {
            throw exit_error{exit_code::environment, fmt::format("'{}' of an earlier export cannot be removed, and would be read as a part of this one: {}",
                                                                 path.string(), error.message())};
        }
    }
}

}  // namespace

void export_huggingface(checkpoint const& from, fs::path const& folder, export_form const& form)
{
    auto const config = config_of(from);
    auto const state = state_of(whole_model_of(config));
    if (auto const why = from.load_error(state); !why.empty()) {
        throw exit_error{exit_code::bad_data, why + "; a model of one's own has no class in transformers"};
    }
    auto const tokens = kept_special_tokens(from.folder().parent_path());
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    make_folder(folder);
    auto const files = deal(state, config, form);
    weights_writer writer{from, folder, form.dtype};
    std::set<std::string> written;
    for (std::size_t f = 0; f < files.size(); ++f) {
        auto const name = files.size() == 1 ? std::string{weights_file_name} : shard_file_name(f, files.size());
        writer.write(name, files[f]);
        written.insert(name);
    }
    if (files.size() > 1) {
        write_file(folder / index_file_name, format_index(files));
        written.insert(std::string{index_file_name});
    }
    write_file(folder / "config.json", config_json(config, form, tokens.ids));
    if (!tokens.generation.is_null()) {
        write_file(folder / "generation_config.json", tokens.generation.dump(2) + "\n");
    }
    remove_others(folder, written);
    sync_folder(folder);
}

}  // namespace rheo::inline v0
