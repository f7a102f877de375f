#pragma once
// SPDX-License-Identifier: Apache-2.0

// The products of models: forward, backward and gradients of weights in panels, whole and cut in shards, in both types.

#include <set>
#include <string>

#include "kernels/linear/linear_products.hpp"

namespace model_products {

using namespace rheo;

struct linear {
    std::int64_t rows;  ///< tokens of a microbatch
    std::int64_t in;
    std::int64_t out;
    weight_order order = weight_order::in_out;
    bool bias = false;
    bool gelu = false;
};

inline constexpr linear linears[] = {
    // GPT-2 124M, 16 x 1024 tokens; the classifier as published, and padded
    {16384, 768, 2304, weight_order::in_out, true},
    {16384, 768, 768, weight_order::in_out, true},
    {16384, 768, 3072, weight_order::in_out, true, true},
    {16384, 3072, 768, weight_order::in_out, true},
    {16384, 768, 50257, weight_order::out_in},
    {16384, 768, 50304, weight_order::out_in},
    // GPT-2 1558M
    {16384, 1600, 4800, weight_order::in_out, true},
    {16384, 1600, 1600, weight_order::in_out, true},
    {16384, 1600, 6400, weight_order::in_out, true, true},
    {16384, 6400, 1600, weight_order::in_out, true},
    {16384, 1600, 50257, weight_order::out_in},
    {16384, 1600, 50304, weight_order::out_in},
    // Llama 7B, 1 x 4096 tokens
    {4096, 4096, 12288},
    {4096, 4096, 4096},
    {4096, 4096, 22016},
    {4096, 11008, 4096},
    {4096, 4096, 32000, weight_order::out_in},
    // of the tests: one of everything, widths that are no multiple of a chunk
    {1, 8, 8, weight_order::in_out, true, true},
    {3, 17, 33, weight_order::out_in, true, true},
    {40, 64, 104, weight_order::in_out, true, true},
    {130, 72, 200, weight_order::out_in, true},
    {2, 3001, 4497},
};

inline void add(std::set<cuda::product_shape>& all, linear const& l, dtype storage)
{
    for (bool const partial : {false, true}) {
        all.insert(cuda::linear_forward_product(l.rows, l.in, l.out, l.order, storage, l.bias && !partial, l.gelu && !partial && cuda::gelu_in_product(storage),
                                                partial));
        for (bool const accumulates : {false, true}) {
            all.insert(cuda::linear_backward_input_product(l.rows, l.in, l.out, l.order, storage, accumulates, partial));
        }
    }
    auto const panels = cuda::linear_weight_panels(l.in, l.out, l.order);
    cuda::for_panels(panels, [&](cuda::weight_panel const& panel) { all.insert(cuda::linear_backward_weight_product(l.rows, panels, panel, storage)); });
}

/// Each once.
inline std::set<cuda::product_shape> shapes()
{
    std::set<cuda::product_shape> all;
    for (auto const storage : {dtype::bf16, dtype::f32}) {
        for (auto l : linears) {
            add(all, l, storage);
            if (l.in % 64 == 0 && l.out % 64 == 0) {  // in four shards, of either dimension
                add(all, {l.rows, l.in / 4, l.out, l.order}, storage);
                add(all, {l.rows, l.in, l.out / 4, l.order, l.bias, l.gelu}, storage);
            }
        }
    }
    return all;
}

inline std::string text_of(cuda::product_shape const& s)
{
    std::string text = std::to_string(s.rows) + " x " + std::to_string(s.columns) + " of " + std::to_string(s.terms) + " terms in " +
                       std::string{name_of(s.element)} + " into " + std::string{name_of(s.result)};
    for (auto const& [is, what] : {std::pair{s.left_transposed, "left transposed"},
                                   {s.right_transposed, "right transposed"},
                                   {s.has_bias, "bias"},
                                   {s.adds, "adds"},
                                   {s.gelu, "GELU"},
                                   {s.left_unaligned, "left not aligned"},
                                   {s.right_unaligned, "right not aligned"}}) {
        text += is ? std::string{", "} + what : std::string{};
    }
    return text;
}

}  // namespace model_products
