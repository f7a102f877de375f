// SPDX-License-Identifier: Apache-2.0
// Which kernels a layer becomes: checked by the compiler, counted on the emulated device.
#include "kernels/cuda/launches.hpp"

#include <vector>

#include "grid.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/cuda/policy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/qk_norm/qk_norm.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/llama.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace rheo::cuda;

namespace {

constexpr gpt_shape gpt{.vocabulary = 64, .context = 16, .width = 32, .heads = 2, .dropout_per_mille = 100};
constexpr llama_shape llama{.vocabulary = 64, .context = 16, .width = 32, .heads = 4, .kv_heads = 2, .mlp_width = 48};

template <class... Names>
constexpr bool becomes(launch_list const& list, Names... names)
{
    std::string_view const expected[] = {names...};
    bool same = list.size() == sizeof...(names);
    for (std::size_t i = 0; same && i < list.size(); ++i) {
        same = list[i] == expected[i];
    }
    return same;
}

constexpr auto block = fused(block_layer(gpt));
constexpr auto llama_block = fused(llama_block_layer(llama));
constexpr llama_shape qwen3 = [] {
    auto shape = llama;
    shape.qk_norm = true;
    return shape;
}();
constexpr auto forward = launch_pass::forward;
constexpr auto backward = launch_pass::backward;

static_assert(becomes(launches_of(block, forward, bf16), "layer_norm", "product + bias", "attention", "product + bias", "residual_norm",
                      "product + bias + gelu", "product + bias", "residual_add"));
static_assert(becomes(launches_of(block, backward, bf16), "residual_add",                                                        //
                      "product of the input's gradient", "product of the weight's gradient", "exact sums + sums over the rows",  // the MLP's second product
                      "product of the input's gradient", "product of the weight's gradient", "exact sums + sums over the rows",  // and its first
                      "norm of the rows + sums over them",                                                                       //
                      "product of the input's gradient", "product of the weight's gradient", "exact sums + sums over the rows",  // behind attention
                      "attention: queries", "attention: keys and values",                                                        //
                      "product of the input's gradient", "product of the weight's gradient", "exact sums + sums over the rows",  // before it
                      "norm of the rows + sums over them"));
static_assert(launches_of(block, forward, bf16).size() <= 8 && launches_of(block, backward, bf16).size() <= 17);
static_assert(launches_of(block, forward, fp32).size() == 9 && launches_of(block, backward, fp32).size() == 18);
// one more forward for the turned positions and one for the gated product, whose two halves meet in no epilogue
static_assert(launches_of(llama_block, forward, bf16).size() == 10 && launches_of(llama_block, backward, bf16).size() == 19);
static_assert(launches_of(fused(llama_block_layer(qwen3)), forward, bf16).size() == 11 &&
              launches_of(fused(llama_block_layer(qwen3)), backward, bf16).size() == 22);
static_assert(launches_of(fused(classifier_layer(gpt)), forward, bf16).size() == 3 && launches_of(fused(classifier_layer(gpt)), backward, bf16).size() == 4);
static_assert(launches_of(fused(embedding_layer(gpt)), forward, bf16).size() == 1 && launches_of(fused(embedding_layer(gpt)), backward, bf16).size() == 2);
static_assert(launches_of(block_layer(gpt), forward, bf16).size() == 10, "unfused, each operation is a launch");

constexpr std::int64_t sequences = 2;
constexpr std::int64_t tokens = 8;
constexpr std::int64_t rows = sequences * tokens;

/// Memory for every argument of an operation, all of it zero but what is named.
template <class T>
struct memory {
    std::vector<T> x = std::vector<T>(rows * 256), y = x, z = x, w = std::vector<T>(64 * 128), g = x, h = x, k = x;
    std::vector<float> mean = std::vector<float>(8 * rows), rstd = mean, table = std::vector<float>(rows * 64);
    std::vector<std::int32_t> ids = std::vector<std::int32_t>(rows);
    std::vector<std::int64_t> sums = std::vector<std::int64_t>(64 * 128), more = sums;
    accumulator_state state{.scale_log2 = 20}, other = state;
    loss_sum loss{};
    std::vector<std::byte> bytes = std::vector<std::byte>(static_cast<std::size_t>(linear_backward_parameters_workspace_bytes(rows, 64, 128)) + 256);
    products by;

    workspace scratch() { return {.memory = bytes.data() + (256 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 256), .bytes = std::ssize(bytes) - 256}; }
    gradient_sum_of<dtype::i64> first() { return {.sums = sums.data(), .state = &state, .contributions = 8}; }
    gradient_sum_of<dtype::i64> second(op const& o)
    {
        return o.parameters[1] == no_parameter ? gradient_sum_of<dtype::i64>{}
                                               : gradient_sum_of<dtype::i64>{.sums = more.data(), .state = &other, .contributions = 8};
    }
};

dropout drop_of(op const& o) { return {.probability = o.dropout_per_mille / 1000.0}; }

template <class T>
void run_forward(op const& o, memory<T>& m)
{
    constexpr auto policy = policy_storing<T>;
    stream const q{};
    bool const second = o.parameters[1] != no_parameter;
    auto const order = o.kind == op_kind::unembed ? weight_order::out_in : weight_order::in_out;
    std::int64_t const kept = o.kv_heads == 0 ? o.heads : o.kv_heads;
    switch (o.kind) {
    case op_kind::embedding:
        embedding_forward<policy>(q, {.batch = sequences,
                                      .length = tokens,
                                      .width = o.out_width,
                                      .vocabulary = o.in_width,
                                      .tokens = m.ids.data(),
                                      .token_table = m.x.data(),
                                      .position_table = second ? m.y.data() : nullptr,
                                      .drop = drop_of(o),
                                      .output = m.z.data()});
        break;
    case op_kind::layer_norm:
        layer_norm_forward<policy>(q, {.rows = rows,
                                       .width = o.in_width,
                                       .input = m.x.data(),
                                       .gamma = m.w.data(),
                                       .beta = m.w.data(),
                                       .output = m.y.data(),
                                       .mean = m.mean.data(),
                                       .rstd = m.rstd.data()});
        break;
    case op_kind::rms_norm:
        rms_norm_forward<policy>(q, {.rows = rows, .width = o.in_width, .input = m.x.data(), .gamma = m.w.data(), .output = m.y.data(), .rstd = m.rstd.data()});
        break;
    case op_kind::residual_norm:
        residual_norm_forward<policy>(q, {.rows = rows,
                                          .width = o.in_width,
                                          .stream = m.x.data(),
                                          .branch = m.y.data(),
                                          .drop = drop_of(o),
                                          .gamma = m.w.data(),
                                          .beta = m.w.data(),
                                          .residual = m.z.data(),
                                          .output = m.g.data(),
                                          .mean = m.mean.data(),
                                          .rstd = m.rstd.data()});
        break;
    case op_kind::residual_rms_norm:
        residual_rms_norm_forward<policy>(q, {.rows = rows,
                                              .width = o.in_width,
                                              .stream = m.x.data(),
                                              .branch = m.y.data(),
                                              .drop = drop_of(o),
                                              .gamma = m.w.data(),
                                              .residual = m.z.data(),
                                              .output = m.g.data(),
                                              .rstd = m.rstd.data()});
        break;
    case op_kind::residual_add:
        residual_add_forward<policy>(q,
                                     {.rows = rows, .width = o.in_width, .stream = m.x.data(), .branch = m.y.data(), .drop = drop_of(o), .output = m.z.data()});
        break;
    case op_kind::linear:
    case op_kind::linear_gelu:
    case op_kind::unembed:
        linear_forward<policy>(q, m.scratch(), m.by,
                               {.rows = rows,
                                .in = o.in_width,
                                .out = o.out_width,
                                .order = order,
                                .input = m.x.data(),
                                .weight = m.w.data(),
                                .bias = second ? m.w.data() : nullptr,
                                .output = m.y.data(),
                                .activated = o.kind == op_kind::linear_gelu ? m.z.data() : nullptr});
        break;
    case op_kind::gelu: gelu_forward<policy>(q, {.count = rows * o.in_width, .input = m.x.data(), .output = m.y.data()}); break;
    case op_kind::attention:
        attention_forward<policy>(q, {.batch = sequences,
                                      .length = tokens,
                                      .width = o.out_width,
                                      .heads = o.heads,
                                      .kv_heads = o.kv_heads,
                                      .qkv = m.x.data(),
                                      .drop = drop_of(o),
                                      .output = m.y.data(),
                                      .log_sum_exp = m.mean.data()});
        break;
    case op_kind::rope:
        rope<policy>(q, {.rows = rows,
                         .length = tokens,
                         .turned = o.heads + kept,
                         .kept = kept,
                         .head_width = head_width(o),
                         .table = m.table.data(),
                         .input = m.x.data(),
                         .output = m.y.data()});
        break;
    case op_kind::qk_norm:
        qk_norm_forward<policy>(q, {.rows = rows,
                                    .heads = o.heads,
                                    .kv_heads = kept,
                                    .head_width = head_width(o),
                                    .input = m.x.data(),
                                    .query_gamma = m.w.data(),
                                    .key_gamma = m.w.data(),
                                    .output = m.y.data(),
                                    .rstd = m.rstd.data()});
        break;
    case op_kind::swiglu: swiglu_forward<policy>(q, {.rows = rows, .width = o.out_width, .input = m.x.data(), .output = m.y.data()}); break;
    case op_kind::cross_entropy:
        cross_entropy_forward<policy>(
            q, {.rows = rows, .vocabulary = o.in_width, .logits = m.x.data(), .targets = m.ids.data(), .log_sum_exp = m.mean.data(), .loss = &m.loss});
        break;
    case op_kind::loss_gradient:
        cross_entropy_fused<policy>(q, {.rows = rows, .vocabulary = o.in_width, .logits = m.x.data(), .targets = m.ids.data(), .loss = &m.loss});
        break;
    }
}

template <class T>
void run_backward(op const& o, memory<T>& m)
{
    constexpr auto policy = policy_storing<T>;
    stream const q{};
    auto const order = o.kind == op_kind::unembed ? weight_order::out_in : weight_order::in_out;
    std::int64_t const kept = o.kv_heads == 0 ? o.heads : o.kv_heads;
    switch (o.kind) {
    case op_kind::embedding: {
        auto const sorted = order_of(m.ids, o.in_width);
        embedding_backward_weight<policy>(
            q, {.segments = std::ssize(sorted.tokens), .rows = sorted.rows.data(), .first = sorted.first.data(), .tokens = sorted.tokens.data()},
            {.batch = sequences,
             .length = tokens,
             .width = o.out_width,
             .vocabulary = o.in_width,
             .tokens = m.ids.data(),
             .output_gradient = m.x.data(),
             .drop = drop_of(o),
             .token_gradient = m.first(),
             .position_gradient = m.second(o)});
        break;
    }
    case op_kind::layer_norm:
        layer_norm_backward(q, m.scratch(),
                            layer_norm_backward_input_arguments<policy>{.rows = rows,
                                                                        .width = o.in_width,
                                                                        .input = m.x.data(),
                                                                        .gamma = m.w.data(),
                                                                        .mean = m.mean.data(),
                                                                        .rstd = m.rstd.data(),
                                                                        .output_gradient = m.y.data(),
                                                                        .input_gradient = m.z.data()},
                            m.first(), m.second(o));
        break;
    case op_kind::rms_norm:
        rms_norm_backward(q, m.scratch(),
                          rms_norm_backward_input_arguments<policy>{.rows = rows,
                                                                    .width = o.in_width,
                                                                    .input = m.x.data(),
                                                                    .gamma = m.w.data(),
                                                                    .rstd = m.rstd.data(),
                                                                    .output_gradient = m.y.data(),
                                                                    .input_gradient = m.z.data()},
                          m.first());
        break;
    case op_kind::residual_norm:
        residual_norm_backward(q, m.scratch(),
                               residual_norm_backward_arguments<policy>{.rows = rows,
                                                                        .width = o.in_width,
                                                                        .residual = m.x.data(),
                                                                        .gamma = m.w.data(),
                                                                        .mean = m.mean.data(),
                                                                        .rstd = m.rstd.data(),
                                                                        .output_gradient = m.y.data(),
                                                                        .drop = drop_of(o),
                                                                        .stream_gradient = m.z.data(),
                                                                        .branch_gradient = m.g.data()},
                               m.first(), m.second(o));
        break;
    case op_kind::residual_rms_norm:
        residual_rms_norm_backward(q, m.scratch(),
                                   residual_rms_norm_backward_arguments<policy>{.rows = rows,
                                                                                .width = o.in_width,
                                                                                .residual = m.x.data(),
                                                                                .gamma = m.w.data(),
                                                                                .rstd = m.rstd.data(),
                                                                                .output_gradient = m.y.data(),
                                                                                .drop = drop_of(o),
                                                                                .stream_gradient = m.z.data(),
                                                                                .branch_gradient = m.g.data()},
                                   m.first());
        break;
    case op_kind::residual_add:
        residual_add_backward<policy>(q, {.rows = rows, .width = o.in_width, .output_gradient = m.y.data(), .drop = drop_of(o), .branch_gradient = m.z.data()});
        break;
    case op_kind::linear_gelu:
        gelu_backward<policy>(q, {.count = rows * o.out_width, .input = m.x.data(), .output_gradient = m.y.data(), .input_gradient = m.z.data()});
        [[fallthrough]];
    case op_kind::linear:
    case op_kind::unembed:
        linear_backward_input<policy>(q, m.scratch(), m.by,
                                      {.rows = rows,
                                       .in = o.in_width,
                                       .out = o.out_width,
                                       .order = order,
                                       .weight = m.w.data(),
                                       .output_gradient = m.y.data(),
                                       .input_gradient = m.z.data()});
        linear_backward_parameters(q, m.scratch(), m.by,
                                   linear_backward_weight_arguments<policy>{.rows = rows,
                                                                            .in = o.in_width,
                                                                            .out = o.out_width,
                                                                            .order = order,
                                                                            .input = m.x.data(),
                                                                            .output_gradient = m.y.data(),
                                                                            .weight_gradient = m.first()},
                                   m.second(o));
        break;
    case op_kind::gelu:
        gelu_backward<policy>(q, {.count = rows * o.in_width, .input = m.x.data(), .output_gradient = m.y.data(), .input_gradient = m.z.data()});
        break;
    case op_kind::attention:
        attention_backward<policy>(q, m.scratch(),
                                   {.batch = sequences,
                                    .length = tokens,
                                    .width = o.out_width,
                                    .heads = o.heads,
                                    .kv_heads = o.kv_heads,
                                    .qkv = m.x.data(),
                                    .output = m.y.data(),
                                    .log_sum_exp = m.mean.data(),
                                    .output_gradient = m.g.data(),
                                    .drop = drop_of(o),
                                    .qkv_gradient = m.z.data()});
        break;
    case op_kind::qk_norm:
        qk_norm_backward_weight<policy>(q, m.scratch(),
                                        {.rows = rows,
                                         .heads = o.heads,
                                         .kv_heads = kept,
                                         .head_width = head_width(o),
                                         .input = m.x.data(),
                                         .rstd = m.rstd.data(),
                                         .output_gradient = m.y.data(),
                                         .query_gradient = m.first(),
                                         .key_gradient = m.second(o)});
        qk_norm_backward_input<policy>(q, {.rows = rows,
                                           .heads = o.heads,
                                           .kv_heads = kept,
                                           .head_width = head_width(o),
                                           .input = m.x.data(),
                                           .query_gamma = m.w.data(),
                                           .key_gamma = m.w.data(),
                                           .rstd = m.rstd.data(),
                                           .output_gradient = m.y.data(),
                                           .input_gradient = m.z.data()});
        break;
    case op_kind::rope:
        rope<policy>(q, {.rows = rows,
                         .length = tokens,
                         .turned = o.heads + kept,
                         .kept = kept,
                         .head_width = head_width(o),
                         .table = m.table.data(),
                         .input = m.x.data(),
                         .output = m.y.data(),
                         .back = true});
        break;
    case op_kind::swiglu:
        swiglu_backward<policy>(q, {.rows = rows, .width = o.out_width, .input = m.x.data(), .output_gradient = m.y.data(), .input_gradient = m.z.data()});
        break;
    case op_kind::cross_entropy:
        cross_entropy_backward<policy>(q, {.rows = rows,
                                           .vocabulary = o.in_width,
                                           .logits = m.x.data(),
                                           .targets = m.ids.data(),
                                           .log_sum_exp = m.mean.data(),
                                           .logits_gradient = m.z.data()});
        break;
    case op_kind::loss_gradient: break;
    }
}

}  // namespace

TEMPLATE_TEST_CASE("launches: kernels per operation equal the static count", "", float, bfloat16)
{
    memory<TestType> m;
    auto const launched = [](auto f) {
        auto const before = emulated::work().launches;
        f();
        return emulated::work().launches - before;
    };
    for (auto const& layer : {embedding_layer(gpt), block_layer(gpt), classifier_layer(gpt), llama_embedding_layer(llama), llama_block_layer(llama),
                              llama_block_layer(qwen3), llama_classifier_layer(llama)}) {
        for (auto const& some : {layer, fused(layer)}) {
            for (auto const& o : some.ops) {
                INFO(some.name << ": " << name_of(o.kind));
                CHECK(launched([&] { run_forward(o, m); }) == launches(o, forward, policy_storing<TestType>).size());
                CHECK(launched([&] { run_backward(o, m); }) == launches(o, backward, policy_storing<TestType>).size());
            }
        }
    }
}
