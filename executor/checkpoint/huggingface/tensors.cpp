// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/tensors.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "executor/checkpoint/huggingface.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

/// A group of columns, under a name of its own.
struct column_group {
    std::string_view name;
    std::int64_t width;
};

/// The groups of what is one matrix here; one group with the parameter's own name otherwise.
std::vector<column_group> groups_of(std::string_view name, std::int64_t columns, run_config const& config)
{
    auto const shape = llama_shape_of(config);
    std::int64_t const head = head_dim_of(shape);
    if (name == "self_attn.qkv_proj") {
        return {{"self_attn.q_proj", head * shape.heads}, {"self_attn.k_proj", head * shape.kv_heads}, {"self_attn.v_proj", head * shape.kv_heads}};
    }
    if (name == "mlp.gate_up_proj") {
        return {{"mlp.gate_proj", columns / 2}, {"mlp.up_proj", columns / 2}};
    }
    return {{name, columns}};
}

/// Calls work(element in the file, element of the parameter) for all elements of the box, in squares that fit the caches both ways.
template <class Work>
void for_each_element(huggingface_tensor const& tensor, tensor_shape parameter, Work const& work)
{
    auto const& box = tensor.box;
    auto const rows = box.row_end - box.row_begin;
    auto const columns = box.column_end - box.column_begin;
    constexpr std::int64_t side = 32;
    for (std::int64_t r0 = 0; r0 < rows; r0 += side) {
        for (std::int64_t c0 = 0; c0 < columns; c0 += side) {
            for (auto r = r0; r < std::min(rows, r0 + side); ++r) {
                for (auto c = c0; c < std::min(columns, c0 + side); ++c) {
                    work(static_cast<std::size_t>(tensor.transposed ? c * rows + r : r * columns + c),
                         static_cast<std::size_t>((box.row_begin + r) * parameter.columns + box.column_begin + c));
                }
            }
        }
    }
}

}  // namespace

std::vector<huggingface_tensor> huggingface_tensors(tensor_info const& parameter, run_config const& config)
{
    auto const& shape = parameter.shape;
    if (config.family == model_family::gpt2) {
        return {{huggingface_name(parameter.name), huggingface_shape(parameter.name, shape), whole(shape), false}};
    }
    std::string_view const name{parameter.name};
    auto const dot = name.rfind('.');
    auto const module = name.substr(0, dot);
    auto const own = std::min(module.find("self_attn."), module.find("mlp."));
    if (own == std::string_view::npos) {  // tables, which are not transposed, and norms
        return {{parameter.name, shape.rows == 1 ? std::vector{shape.columns} : std::vector{shape.rows, shape.columns}, whole(shape), false}};
    }
    bool const is_matrix = name.ends_with("_proj.weight");
    std::vector<huggingface_tensor> tensors;
    std::int64_t first = 0;
    for (auto const& [group, width] : groups_of(module.substr(own), shape.columns, config)) {
        tensors.push_back({std::string{module.substr(0, own)}.append(group).append(name.substr(dot)),
                           is_matrix ? std::vector{width, shape.rows} : std::vector{width},
                           {0, shape.rows, first, first + width},
                           is_matrix});
        first += width;
    }
    expects(first == shape.columns, "the groups of a parameter's columns are all of them");
    return tensors;
}

std::vector<float> values_in_file(huggingface_tensor const& tensor, tensor_shape parameter, std::span<float const> values)
{
    std::vector<float> in_file(static_cast<std::size_t>(elements(tensor.box)));
    for_each_element(tensor, parameter, [&](std::size_t there, std::size_t here) { in_file[there] = values[here]; });
    return in_file;
}

void put_values(huggingface_tensor const& tensor, tensor_shape parameter, std::span<float const> from_file, std::span<float> values)
{
    expects(std::ssize(from_file) == elements(tensor.box), "a tensor of a file has as many values as its box");
    for_each_element(tensor, parameter, [&](std::size_t there, std::size_t here) { values[here] = from_file[there]; });
}

}  // namespace rheo::inline v0
