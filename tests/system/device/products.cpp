// SPDX-License-Identifier: Apache-2.0
// The table of products' algorithms: it is whole before anything is computed, whatever is computed then, and a text that another rank reads.
#include "executor/cuda/product_table.hpp"

#include <algorithm>

#include "executor/train/opened_backend.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/llama.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "unit/executor/stage/stage_steps.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

/// Runs a step in several ways on a backend that has chosen before. @returns what it had chosen then, and has now
std::pair<std::string, std::string> tables(model_description const& model, stored_numbers dtype, sum_integers sums, int slices)
{
    run_config config;
    config.run.device = compute_device::cuda;
    config.run.attention = attention_kernel::warp;
    config.train.dtype = dtype;
    config.train.sums = sums;
    auto const device = open_backend(config, model);
    auto const before = device->choose_algorithms(model.layers, {batch.sequences, batch.tokens, slices});
    auto const step = random_step(small, 1);
    auto const layers = static_cast<int>(model.layers.size());
    for (auto const how : {backwards::whole, backwards::split, backwards::recomputed}) {
        run_step(model, step, {.cuts = {0, 1, layers}, .how = how, .slices = slices, .backend = device.get()});
    }
    return {before, device->choose_algorithms({}, {})};
}

}  // namespace

TEST_CASE("products: the table for a model has all of its products")
{
    auto const llama = llama_model({.vocabulary = small.vocabulary, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 1, .mlp_width = 32});
    for (auto const& model : {gpt_model(small), fused(gpt_model(small)), fused(llama)}) {
        for (auto const dtype : {stored_numbers::float32, stored_numbers::brain_float16}) {
            auto const [before, after] = tables(model, dtype, sum_integers::int64, 1);
            CHECK(before == after);
            CHECK(!before.starts_with("0 "));
        }
    }
    auto const [before, after] = tables(fused(gpt_model(small)), stored_numbers::brain_float16, sum_integers::int32, 3);
    CHECK(before == after);
}

TEST_CASE("products: table round-trips; anything else is rejected")
{
    using cuda::product_shape;
    std::vector<cuda::product_choice> table;
    for (int bits = 0; bits < 1024; ++bits) {
        auto const bit = [&](int place) { return (bits >> place & 1) != 0; };
        table.push_back({{.rows = 1 + bits,
                          .columns = std::int64_t{1} << 40,
                          .terms = 3,
                          .left_transposed = bit(0),
                          .right_transposed = bit(1),
                          .element = bit(2) ? dtype::f32 : dtype::bf16,
                          .result = bit(3) ? dtype::f32 : dtype::bf16,
                          .has_bias = bit(4),
                          .adds = bit(5),
                          .gelu = bit(6),
                          .gelu_slope = bit(7),
                          .left_unaligned = bit(8),
                          .right_unaligned = bit(9)},
                         {~std::uint64_t{0}, static_cast<std::uint64_t>(bits)}});
    }
    auto const text = cuda::to_text(table);
    CHECK(cuda::table_from(text) == table);
    CHECK(cuda::table_from(cuda::to_text({})).empty());
    for (auto const& bad : {text.substr(0, text.size() - 1), text + " 0", text + "x", "1025" + text.substr(4), std::string{}, std::string{"2 products"}}) {
        CHECK_THROWS_AS(cuda::table_from(bad), exit_error);
    }
}

TEST_CASE("products: a panel, not a weight, is the workspace of all")
{
    using cuda::products;
    using cuda::workspace;
    microbatch_shape const shape{1, 4096};
    auto const llama = llama_model({.vocabulary = 32000, .context = 4096, .width = 4096, .heads = 32, .kv_heads = 32, .blocks = 2, .mlp_width = 11008});
    CHECK(cuda::workspace_of_products(llama.layers, shape) == workspace::counter_bytes + products::workspace_bytes + (16 << 20));
    for (auto const& product : cuda::products_of(llama.layers, shape, dtype::bf16)) {  // gradients of weights alone stay in float
        CHECK((product.result == dtype::bf16 || product.rows * product.columns * 4 <= 16 << 20));
    }
    auto const tiny = gpt_model(small);
    std::int64_t largest = 0;
    for (auto const& product : cuda::products_of(tiny.layers, {2, 4}, dtype::f32)) {
        largest = std::max(largest, product.left_transposed ? product.rows * product.columns * 4 : 0);
    }
    CHECK(cuda::workspace_of_products(tiny.layers, {2, 4}) == workspace::counter_bytes + products::workspace_bytes + largest);
    CHECK(cuda::workspace_of_products({}, shape) == 0);
}
