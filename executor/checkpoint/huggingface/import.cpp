// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/import.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/checkpoint_publish.hpp"
#include "executor/checkpoint/huggingface/special_tokens.hpp"
#include "executor/checkpoint/huggingface/weights.hpp"
#include "executor/checkpoint/part_files.hpp"
#include "executor/config/toml.hpp"
#include "executor/config/toml_value.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

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

tensor_snapshot snapshot_of(huggingface_weights const& weights, tensor_id parameter)
{
    auto const& tensor = weights.state().tensors[at(parameter)];
    auto values = weights.values(parameter);
    std::vector<float> const zeros(values.size());
    return {parameter, tensor.name, tensor.shape, whole(tensor.shape), {std::move(values), zeros, zeros}};
}

}  // namespace

imported_run import_huggingface(fs::path const& folder, fs::path const& run_folder, bytes part_bytes)
{
    imported_run const made{checkpoint_folder(run_folder, step_id{0}), run_folder / "config.toml"};
    if (auto const steps = checkpoint_steps(run_folder); !steps.empty()) {
        check_free(checkpoint_folder(run_folder, steps.back()));
    }
    check_free(made.config);
    huggingface_weights const weights{folder};
    auto const tokens = special_tokens_in(folder);
    auto const& state = weights.state();
    auto const& config = weights.config();
    auto const all = weights.parameters();

    std::error_code error;
    fs::create_directories(run_folder, error);
    make_folder(run_folder);
    auto const nothing = [](checkpoint_point) {};
    std::vector<rank_id> parts;
    try {
        checkpoint_part part{rank_id{0}, step_id{0}, generation_id{0}, {}};
        bytes filled;
        for (auto const parameter : all) {
            part.tensors.push_back(snapshot_of(weights, parameter));
            filled += bytes{elements(state.tensors[at(parameter)].shape) * static_cast<std::int64_t>(sizeof(float))};
            if (filled >= part_bytes || parameter == all.back()) {
                write_part(unfinished_folder(run_folder, part.step, part.generation), part, {nothing, [] {}});
                parts.push_back(part.rank);
                part.rank = rank_id{part.rank.value + 1};
                part.tensors.clear();
                filled = {};
            }
        }
        publish_parts(run_folder, {step_id{0}, generation_id{0}, parts, tensors_for_manifest(state), {}, config_of_model(config), {}, 0}, nothing);
        keep(tokens, run_folder);
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
