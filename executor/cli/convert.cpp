// SPDX-License-Identifier: Apache-2.0
// `rheo convert`: a checkpoint in another layout, or in PyTorch's form and back.

#include "executor/cli/commands.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/convert/convert.hpp"
#include "executor/checkpoint/convert/distributed_checkpoint.hpp"
#include "executor/checkpoint/convert/file_layout.hpp"
#include "executor/cli/amount_checks.hpp"
#include "executor/cli/reshard/reshard_input.hpp"
#include "executor/cli/size_text.hpp"
#include "executor/config/config.hpp"
#include "executor/config/files/layout_file.hpp"
#include "executor/config/toml.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

namespace fs = std::filesystem;

/// What `--like` names.
state_manifest manifest_of(fs::path const& path)
{
    std::error_code error;
    if (fs::exists(path / "manifest.json", error)) {
        checkpoint const like{path};
        state_manifest state{like.manifest(), like.manifest().digest()};
        state.about.files.clear();
        return state;
    }
    if (auto state = read_state_manifest(path)) {
        return *std::move(state);
    }
    throw exit_error{exit_code::bad_data, fmt::format("--like: '{}' has neither 'manifest.json' nor '{}'", path.string(), state_file_name)};
}

/// The checkpoint of rheo that a path means, its values not verified; nothing when there is none.
std::optional<checkpoint> opened_checkpoint(fs::path const& path)
{
    std::error_code error;
    if (fs::exists(path / "manifest.json", error)) {
        return checkpoint{path};
    }
    auto const steps = checkpoint_steps(path);
    return steps.empty() ? std::nullopt : std::optional{checkpoint{checkpoint_folder(path, steps.back())}};
}

/// What is to be converted; the rest is filled in later.
conversion read_source(convert_options const& options)
{
    conversion request;
    request.form = options.format == "dcp" ? stored_form::distributed : stored_form::checkpoint;
    if (auto const from = opened_checkpoint(options.from)) {
        if (!options.like.empty()) {
            throw exit_error{exit_code::usage,
                             fmt::format("--like is for checkpoints of PyTorch; '{}' says its step and config itself", from->folder().string())};
        }
        request.from = stored_in(*from);
        return request;
    }
    if (!looks_distributed(options.from)) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}' is no checkpoint: it has no manifest.json, no folder 'step-<n>', and no safetensors files", options.from)};
    }
    auto const keys = read_distributed_checkpoint(options.from);
    auto const about = options.like.empty() ? read_state_manifest(options.from) : std::optional{manifest_of(options.like)};
    if (about) {
        request.from = named_like(keys, about->about);
        request.said = about->digest;
    } else if (request.form == stored_form::distributed) {
        request.from = keys;
    } else {
        throw exit_error{exit_code::usage, fmt::format("'{}' has no '{}', and PyTorch's form has no step, config and scales; name a checkpoint that has them "
                                                       "with --like, or write --format dcp",
                                                       options.from, state_file_name)};
    }
    return request;
}

array_layout layout_for(convert_options const& options, stored_state const& state)
{
    auto const mesh = degrees_in("--layout", options.layout);
    if (!mesh) {
        return fit_layout(read_layout_file(options.layout), state, options.layout);
    }
    if (!state.about) {
        throw exit_error{exit_code::usage,
                         fmt::format("--layout {}: nothing says which model '{}' is of; give the layout as a file", options.layout, state.folder.string())};
    }
    auto const name = fmt::format("the config in '{}'", state.folder.string());
    try {
        auto const config = read_config(state.about->config, name, {}, find_schedule_or_name).config;
        return fit_layout(mesh_layout_of(model_of(config), *mesh, "--layout"), state, fmt::format("--layout {} of the model in {}", options.layout, name));
    } catch (exit_error const& error) {
        throw exit_error{error.code, fmt::format("{}; where a model is not what its config says, give the layout as a file", error.what())};
    }
}

}  // namespace

int convert_checkpoint(convert_options const& options)
{
    auto request = read_source(options);
    request.layout = layout_for(options, request.from);
    request.memory = bytes_of_mebibytes(options.memory_mib).value_or(bytes{});
    request.out = options.out;
    auto const done = convert(request);
    if (options.json) {
        nlohmann::ordered_json report{
            {"schema", 1},         {"out", options.out},       {"format", options.format},         {"layout", options.layout},      {"files", done.files},
            {"boxes", done.boxes}, {"bytes", done.size.count}, {"digest", to_string(done.digest)}, {"same_digest", done.is_as_said}};
        report["step"] = request.from.about ? nlohmann::ordered_json(request.from.about->step.value) : nlohmann::ordered_json();
        fmt::print("{}\n", report.dump(2));
        return 0;
    }
    fmt::print("{}: {} in layout {}, {} boxes in {} files, {}\n", options.out,
               request.from.about ? fmt::format("step {} of '{}'", request.from.about->step.value, request.from.folder.string())
                                  : fmt::format("'{}'", request.from.folder.string()),
               options.layout, done.boxes, done.files, size_text(done.size));
    if (!done.is_as_said) {
        fmt::print("the values are others than those of step {}: it has no fingerprint, and any run may begin with it\n", request.from.about->step.value);
    }
    fmt::print("digest of the state {}\n", to_string(done.digest));
    return 0;
}

}  // namespace rheo::cli
