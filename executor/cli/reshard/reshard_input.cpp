// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/reshard/reshard_input.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/amount_checks.hpp"
#include "executor/config/config.hpp"
#include "executor/config/files/layout_file.hpp"
#include "executor/config/toml.hpp"
#include "rheo/model/model.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/nearest_name.hpp"

namespace rheo::cli {

namespace {

constexpr int most_ranks = 1 << 16;

struct preset {
    std::string_view name;
    int blocks;
    int width;
    int heads;
};

/// Brown et al., "Language Models are Few-Shot Learners" (2020), table 2.1, with heads that divide the width as Megatron-LM has them.
constexpr std::array presets{preset{"gpt3-125m", 12, 768, 12},  preset{"gpt3-350m", 24, 1024, 16}, preset{"gpt3-760m", 24, 1536, 16},
                             preset{"gpt3-1.3b", 24, 2048, 16}, preset{"gpt3-2.7b", 32, 2560, 32}, preset{"gpt3-6.7b", 32, 4096, 32},
                             preset{"gpt3-13b", 40, 5120, 40},  preset{"gpt3-175b", 96, 12288, 96}};

/// Heads of the model's attention: tensor parallel ranks have whole ones.
int heads_in(model_description const& model)
{
    for (auto const& layer : model.layers) {
        for (auto const& o : layer.ops) {
            if (o.kind == op_kind::attention) {
                return o.heads;
            }
        }
    }
    return 1;
}

struct named_model {
    std::string name;
    model_description model;
};

gpt_shape shape_of_preset(std::string const& name)
{
    std::vector<std::string_view> names;
    for (auto const& p : presets) {
        if (p.name == name) {
            return {.vocabulary = 50257, .context = 2048, .width = p.width, .heads = p.heads, .blocks = p.blocks};
        }
        names.push_back(p.name);
    }
    throw exit_error{exit_code::usage, fmt::format("--model: {} is neither a file nor a model; the nearest model is {}", in_quotes(name),
                                                   nearest_name(name.substr(0, 40), names))};
}

named_model model_named(reshard_command_options const& options)
{
    auto const& name = options.model;
    if (std::filesystem::is_regular_file(name)) {
        auto read = read_config_file(name);
        if (options.layers > 0) {
            read.config.model.blocks = options.layers;
        }
        if (auto const fault = check_model(read.config)) {
            throw exit_error{exit_code::usage, read.message(*fault)};
        }
        return {name, model_of(read.config)};
    }
    auto shape = shape_of_preset(name);
    if (options.layers > 0) {
        shape.blocks = options.layers;
    }
    return {name, gpt_model(shape)};
}

int lowest_free_rank(array_layout const& layout)
{
    int most = 0;
    for (auto const& place : layout.places) {
        for (auto const rank : place.ranks) {
            most = std::max(most, rank.value + 1);
        }
    }
    return most;
}

}  // namespace

std::optional<mesh_shape> degrees_in(std::string const& option, std::string const& text)
{
    std::array<int, 3> numbers{};
    auto const* at = text.data();
    auto const* const end = at + text.size();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        auto const [next, error] = std::from_chars(at, end, numbers[i]);
        bool const last = i + 1 == numbers.size();
        if (error != std::errc{} || (last ? next != end : next == end || *next != ',')) {
            return std::nullopt;
        }
        at = last ? next : next + 1;
    }
    auto const& [t, p, d] = numbers;
    if (t < 1 || p < 1 || d < 1 || std::int64_t{t} * p > most_ranks || std::int64_t{t} * p * d > most_ranks) {
        throw exit_error{exit_code::usage,
                         fmt::format("{} {}: degrees are at least 1, and their product, the number of ranks, at most {}", option, text, most_ranks)};
    }
    return mesh_shape{t, p, d};
}

array_layout mesh_layout_of(model_description const& model, mesh_shape mesh, std::string const& option)
{
    auto const layers = static_cast<int>(model.layers.size());
    auto const refuse = [&](int count, char const* noun, char const* than) {
        return exit_error{exit_code::usage,
                          fmt::format("{} {},{},{}: the model has {} {}, fewer than {}", option, mesh.tensor, mesh.pipeline, mesh.data, count, noun, than)};
    };
    if (mesh.pipeline > layers - 2) {
        throw refuse(layers - 2, "blocks", "stages");
    }
    if (auto const heads = heads_in(model); mesh.tensor > heads) {
        throw refuse(heads, "heads", "tensor parallel ranks");
    }
    try {
        return mesh_layout(mesh_tensors(model), mesh, even_cuts(layers, mesh.pipeline));
    } catch (precondition_error const& error) {
        throw exit_error{exit_code::usage, fmt::format("{} {},{},{}: {}", option, mesh.tensor, mesh.pipeline, mesh.data, error.what())};
    }
}

reshard_input read_reshard(reshard_command_options const& options)
{
    auto const from = degrees_in("--from", options.from);
    auto const to = degrees_in("--to", options.to);
    if (from.has_value() != to.has_value()) {
        throw exit_error{exit_code::usage, fmt::format("--from {} --to {}: either both are degrees like 4,2,1 or both are files", options.from, options.to)};
    }
    reshard_input result;
    auto& request = result.request;
    std::string about;
    if (from) {
        auto const chosen = model_named(options);
        request.from = mesh_layout_of(chosen.model, *from, "--from");
        request.to = mesh_layout_of(chosen.model, *to, "--to");
        about = fmt::format("{}, {} blocks: ", chosen.name, chosen.model.layers.size() - 2);
    } else {
        if (options.layers > 0) {
            throw exit_error{exit_code::usage, "--layers is for degrees like 4,2,1; files name their tensors themselves"};
        }
        request.from = read_layout_file(options.from);
        request.to = read_layout_file(options.to);
    }
    auto const before = lowest_free_rank(request.from);
    auto const after = lowest_free_rank(request.to);
    result.title = fmt::format("{}{} on {} ranks to {} on {} ranks", about, options.from, before, options.to, after);
    if (std::max(before, after) > most_ranks) {
        throw exit_error{exit_code::usage,
                         fmt::format("the layouts name rank {}; this command plans for at most {} ranks", std::max(before, after) - 1, most_ranks)};
    }
    for (int r = 0; r < std::max(before, after); ++r) {
        request.node_of.push_back(node_id{r / options.node_size});
    }
    request.ranks = options.roles == "pinned" ? rank_choice::pinned : options.roles == "any" ? rank_choice::any : rank_choice::whole_nodes;
    request.round_budget = bytes_of_mebibytes(options.round_mib);
    request.memory_limit = bytes_of_mebibytes(options.memory_mib);
    return result;
}

}  // namespace rheo::cli
