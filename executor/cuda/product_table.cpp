// SPDX-License-Identifier: Apache-2.0
#include "executor/cuda/product_table.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>

#include <fmt/format.h>

#include "executor/device/backend.hpp"
#include "executor/stage/pre_activation.hpp"
#include "kernels/linear/linear_products.hpp"
#include "rheo/model/sharding.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0::cuda {

namespace {

/// The shape's sizes, one word of what else it says, and the algorithm.
constexpr std::size_t words_of_choice = 12;
constexpr dtype elements[] = {dtype::bf16, dtype::f32};

std::uint64_t word_of(product_shape const& s)
{
    auto const bits = {s.gelu_slope, s.left_unaligned, s.right_unaligned,       s.left_transposed,     s.right_transposed, s.has_bias,
                       s.adds,       s.gelu,           s.element == dtype::f32, s.result == dtype::f32};
    std::uint64_t word = 0;
    for (bool const bit : bits) {
        word = word << 1 | (bit ? 1 : 0);
    }
    return word;
}

product_shape shape_from(std::span<std::uint64_t const> words)
{
    auto const bit = [&](int place) { return (words[3] >> place & 1) != 0; };
    return {.rows = static_cast<std::int64_t>(words[0]),
            .columns = static_cast<std::int64_t>(words[1]),
            .terms = static_cast<std::int64_t>(words[2]),
            .left_transposed = bit(6),
            .right_transposed = bit(5),
            .element = elements[bit(1) ? 1 : 0],
            .result = elements[bit(0) ? 1 : 0],
            .has_bias = bit(4),
            .adds = bit(3),
            .gelu = bit(2),
            .gelu_slope = bit(9),
            .left_unaligned = bit(8),
            .right_unaligned = bit(7)};
}

/// Whether a backward adds to the gradient of this slot: an operation above has read it, too, and gave its part.
bool is_read_above(shard_layer const& layer, std::size_t index, int slot)
{
    return std::any_of(layer.ops.begin() + static_cast<std::ptrdiff_t>(index) + 1, layer.ops.end(),
                       [&](shard_op const& o) { return o.kind == shard_op_kind::operation && (o.own.x[0] == slot || o.own.x[1] == slot); });
}

/// f(layer of a shard, index of its operation) for every linear operation.
template <class F>
void for_linears(std::span<layer_description const> layers, F f)
{
    for (auto const& whole : layers) {
        for (int j = 0; j < whole.shards; ++j) {
            auto const layer = sharded(whole, whole.shards, j);
            for (std::size_t i = 0; i < layer.ops.size(); ++i) {
                if (is_linear(layer.ops[i])) {
                    f(layer, i);
                }
            }
        }
    }
}

void add_products(shard_layer const& layer, std::size_t index, std::int64_t rows, dtype storage, std::set<product_shape>& all)
{
    auto const has = [&](int slot, slot_form form) { return layer.forms[static_cast<std::size_t>(slot)] == form; };
    auto const& o = layer.ops[index].own;
    auto const order = o.kind == op_kind::unembed ? weight_order::out_in : weight_order::in_out;
    all.insert(linear_forward_product(rows, o.in_width, o.out_width, order, storage, o.parameters[1] != no_parameter,
                                      o.kind == op_kind::linear_gelu && gelu_in_product(storage), has(o.z[0], slot_form::partial)));
    all.insert(linear_backward_input_product(rows, o.in_width, o.out_width, order, storage, is_read_above(layer, index, o.x[0]),
                                             has(o.x[0], slot_form::gathered), pre_activation_of(layer, index) != no_slot && gelu_in_product(storage)));
    auto const panels = linear_weight_panels(o.in_width, o.out_width, order);
    for_panels(panels, [&](weight_panel const& panel) { all.insert(linear_backward_weight_product(rows, panels, panel, storage)); });
}

}  // namespace

std::vector<product_shape> products_of(std::span<layer_description const> layers, microbatch_shape shape, dtype storage)
{
    std::set<product_shape> all;
    for_linears(layers, [&](shard_layer const& layer, std::size_t i) { add_products(layer, i, rheo::rows(shape), storage, all); });
    return {all.begin(), all.end()};
}

std::int64_t workspace_of_products(std::span<layer_description const> layers, microbatch_shape shape)
{
    std::int64_t most = 0;
    for_linears(layers, [&](shard_layer const& layer, std::size_t i) {
        auto const& o = layer.ops[i].own;
        most = std::max(most, linear_backward_weight_workspace_bytes(o.in_width, o.out_width));
        if (o.parameters[1] != no_parameter) {
            most = std::max(most, linear_backward_parameters_workspace_bytes(rheo::rows(shape), o.in_width, o.out_width));
        }
    });
    return most;
}

std::vector<attention_shape> attentions_of(std::span<layer_description const> layers, microbatch_shape shape)
{
    std::set<attention_shape> all;
    for (auto const& layer : layers) {
        for (auto const& o : layer.ops) {
            if (o.kind == op_kind::attention && (o.dropout_per_mille != 0 || shape.slices > 1)) {
                throw exit_error{exit_code::environment,
                                 fmt::format("run.attention is cudnn, which takes whole sequences and drops nothing, but layer {} has {}", layer.name,
                                             shape.slices > 1 ? fmt::format("{} slices of a sequence", shape.slices)
                                                              : fmt::format("dropout of {} in 1000", o.dropout_per_mille))};
            }
        }
        for (int j = 0; j < layer.shards; ++j) {
            for (auto const& op_of_shard : sharded(layer, layer.shards, j).ops) {
                if (auto const& o = op_of_shard.own; op_of_shard.kind == shard_op_kind::operation && o.kind == op_kind::attention) {
                    all.insert({shape.sequences, shape.tokens, o.heads, kv_heads_of(o), o.out_width / o.heads});
                }
            }
        }
    }
    return {all.begin(), all.end()};
}

std::string to_text(std::span<product_choice const> table)
{
    std::string words;
    for (auto const& [shape, algorithm] : table) {
        words += fmt::format(" {:x} {:x} {:x} {:x} {:x}", shape.rows, shape.columns, shape.terms, word_of(shape), fmt::join(algorithm, " "));
    }
    return fmt::format("{} products, {:016x}:{}", table.size(), hash_text(words), words);
}

std::vector<product_choice> table_from(std::string_view text)
{
    std::vector<std::uint64_t> words;
    auto const colon = text.find(':');
    auto rest = colon == text.npos ? std::string_view{} : text.substr(colon + 1);
    while (rest.starts_with(' ')) {
        std::uint64_t word = 0;
        auto const [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), word, 16);
        if (error != std::errc{}) {
            break;
        }
        words.push_back(word);
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    }
    std::vector<product_choice> table;
    for (std::size_t w = 0; w + words_of_choice <= words.size(); w += words_of_choice) {
        product_choice choice{shape_from(std::span{words}.subspan(w, 4)), {}};
        std::copy_n(words.begin() + static_cast<std::ptrdiff_t>(w) + 4, choice.algorithm.size(), choice.algorithm.begin());
        table.push_back(choice);
    }
    if (to_text(table) != text) {
        throw exit_error{exit_code::environment,
                         fmt::format("the table of products' algorithms is none: '{}' is where a word of it was expected", text.substr(0, 40))};
    }
    return table;
}

}  // namespace rheo::inline v0::cuda
