// SPDX-License-Identifier: Apache-2.0
// The memory-bound kernels: the bytes that must move, against a copy.
#include "families.hpp"

#include <string>

#include "device_memory.hpp"
#include "kernels/adamw/adamw.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/cuda/policy.hpp"
#include "kernels/digest/digest.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/pack/pack.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"
#include "results.hpp"

namespace bench {

namespace {

/// Rows of a width that make `passes` over them move as many MiB as asked for.
template <class T>
std::int64_t rows_for(options const& o, std::int64_t width, double passes)
{
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(o.mib * 1048576 / (passes * static_cast<double>(width) * sizeof(T)) + 0.999));
}

template <class T>
void norms(results& t, char const* type, std::int64_t width, std::int64_t fixed_rows)
{
    constexpr auto policy = cuda::policy_storing<T>;
    auto const rows = fixed_rows > 0 ? fixed_rows : rows_for<T>(t.asked(), width, 2);
    auto const n = rows * width;
    double const b = static_cast<double>(n) * sizeof(T);
    auto const x = numbers<T>(n), dy = numbers<T>(n), gamma = numbers<T>(width), beta = numbers<T>(width);
    memory<T> const y{n}, sum{n}, branch{n};
    memory<float> const mean{rows}, rstd{rows};
    exact_memory const to_gamma{width}, to_beta{width};
    memory<char> const bytes{cuda::layer_norm_backward_weight_workspace_bytes(rows, width)};
    auto const scratch = workspace_of(bytes);
    t.row("rms_norm_forward", type, rows, width, 2 * b, [&] {
        cuda::rms_norm_forward<policy>({}, {.rows = rows, .width = width, .input = x.data(), .gamma = gamma.data(), .output = y.data(), .rstd = rstd.data()});
    });
    t.row("rms_norm_backward_input", type, rows, width, 3 * b, [&] {
        cuda::rms_norm_backward_input<policy>({}, {.rows = rows,
                                                   .width = width,
                                                   .input = x.data(),
                                                   .gamma = gamma.data(),
                                                   .rstd = rstd.data(),
                                                   .output_gradient = dy.data(),
                                                   .input_gradient = y.data()});
    });
    t.row("rms_norm_backward_weight", type, rows, width, 2 * b, [&] {
        cuda::rms_norm_backward_weight<policy>(
            {}, scratch,
            {.rows = rows, .width = width, .input = x.data(), .rstd = rstd.data(), .output_gradient = dy.data(), .gamma_gradient = to_gamma.target()});
    });
    t.row("layer_norm_forward", type, rows, width, 2 * b, [&] {
        cuda::layer_norm_forward<policy>({}, {.rows = rows,
                                              .width = width,
                                              .input = x.data(),
                                              .gamma = gamma.data(),
                                              .beta = beta.data(),
                                              .output = y.data(),
                                              .mean = mean.data(),
                                              .rstd = rstd.data()});
    });
    auto const input = [&] {
        cuda::layer_norm_backward_input<policy>({}, {.rows = rows,
                                                     .width = width,
                                                     .input = x.data(),
                                                     .gamma = gamma.data(),
                                                     .mean = mean.data(),
                                                     .rstd = rstd.data(),
                                                     .output_gradient = dy.data(),
                                                     .input_gradient = y.data()});
    };
    auto const weight = [&] {
        cuda::layer_norm_backward_weight<policy>({}, scratch,
                                                 {.rows = rows,
                                                  .width = width,
                                                  .input = x.data(),
                                                  .mean = mean.data(),
                                                  .rstd = rstd.data(),
                                                  .output_gradient = dy.data(),
                                                  .gamma_gradient = to_gamma.target(),
                                                  .beta_gradient = to_beta.target()});
    };
    t.row("layer_norm_backward_input", type, rows, width, 3 * b, input);
    t.row("layer_norm_backward_weight", type, rows, width, 2 * b, weight);
    t.row("layer_norm_backward, apart", type, rows, width, 3 * b, [&] {
        input();
        weight();
    });
    t.row("layer_norm_backward", type, rows, width, 3 * b, [&] {
        cuda::layer_norm_backward(cuda::stream{}, scratch,
                                  layer_norm_backward_input_arguments<policy>{.rows = rows,
                                                                              .width = width,
                                                                              .input = x.data(),
                                                                              .gamma = gamma.data(),
                                                                              .mean = mean.data(),
                                                                              .rstd = rstd.data(),
                                                                              .output_gradient = dy.data(),
                                                                              .input_gradient = y.data()},
                                  to_gamma.target(), to_beta.target());
    });
    t.row("rms_norm_backward", type, rows, width, 3 * b, [&] {
        cuda::rms_norm_backward(cuda::stream{}, scratch,
                                rms_norm_backward_input_arguments<policy>{.rows = rows,
                                                                          .width = width,
                                                                          .input = x.data(),
                                                                          .gamma = gamma.data(),
                                                                          .rstd = rstd.data(),
                                                                          .output_gradient = dy.data(),
                                                                          .input_gradient = y.data()},
                                to_gamma.target());
    });
    t.row("residual_norm_forward", type, rows, width, 4 * b, [&] {
        cuda::residual_norm_forward<policy>({}, {.rows = rows,
                                                 .width = width,
                                                 .stream = x.data(),
                                                 .branch = dy.data(),
                                                 .gamma = gamma.data(),
                                                 .beta = beta.data(),
                                                 .residual = sum.data(),
                                                 .output = y.data(),
                                                 .mean = mean.data(),
                                                 .rstd = rstd.data()});
    });
    t.row("residual_norm_backward", type, rows, width, 4 * b, [&] {
        cuda::residual_norm_backward<policy>({}, {.rows = rows,
                                                  .width = width,
                                                  .residual = x.data(),
                                                  .gamma = gamma.data(),
                                                  .mean = mean.data(),
                                                  .rstd = rstd.data(),
                                                  .output_gradient = dy.data(),
                                                  .stream_gradient = y.data(),
                                                  .branch_gradient = branch.data()});
    });
    t.row("residual_rms_norm_forward", type, rows, width, 4 * b, [&] {
        cuda::residual_rms_norm_forward<policy>({}, {.rows = rows,
                                                     .width = width,
                                                     .stream = x.data(),
                                                     .branch = dy.data(),
                                                     .gamma = gamma.data(),
                                                     .residual = sum.data(),
                                                     .output = y.data(),
                                                     .rstd = rstd.data()});
    });
    t.row("residual_rms_norm_backward", type, rows, width, 4 * b, [&] {
        cuda::residual_rms_norm_backward<policy>({}, {.rows = rows,
                                                      .width = width,
                                                      .residual = x.data(),
                                                      .gamma = gamma.data(),
                                                      .rstd = rstd.data(),
                                                      .output_gradient = dy.data(),
                                                      .stream_gradient = y.data(),
                                                      .branch_gradient = branch.data()});
    });
}

template <class T>
void elements(results& t, char const* type)
{
    constexpr auto policy = cuda::policy_storing<T>;
    std::int64_t const width = 4096;
    auto const rows = rows_for<T>(t.asked(), width, 2);
    auto const n = rows * width;
    double const b = static_cast<double>(n) * sizeof(T);
    auto const x = numbers<T>(2 * n), dy = numbers<T>(n);
    memory<T> const y{2 * n};
    t.row("residual_add_forward", type, rows, width, 3 * b,
          [&] { cuda::residual_add_forward<policy>({}, {.rows = rows, .width = width, .stream = x.data(), .branch = dy.data(), .output = y.data()}); });
    t.row("gelu_forward", type, rows, width, 2 * b, [&] { cuda::gelu_forward<policy>({}, {.count = n, .input = x.data(), .output = y.data()}); });
    t.row("gelu_backward", type, rows, width, 3 * b,
          [&] { cuda::gelu_backward<policy>({}, {.count = n, .input = x.data(), .output_gradient = dy.data(), .input_gradient = y.data()}); });
    t.row("swiglu_forward", type, rows, width, 3 * b,
          [&] { cuda::swiglu_forward<policy>({}, {.rows = rows, .width = width, .input = x.data(), .output = y.data()}); });
    t.row("swiglu_backward", type, rows, width, 5 * b, [&] {
        cuda::swiglu_backward<policy>({}, {.rows = rows, .width = width, .input = x.data(), .output_gradient = dy.data(), .input_gradient = y.data()});
    });
    std::int64_t const length = 1024;
    auto const turns = numbers<float>(length * 128);
    t.row("rope", type, rows, width, 2 * b * 24 / 32, [&] {  // in place, 24 of 32 heads
        cuda::rope<policy>(
            {}, {.rows = rows, .length = length, .turned = 24, .kept = 8, .head_width = 128, .table = turns.data(), .input = y.data(), .output = y.data()});
    });

    std::int64_t const vocabulary = 50304;
    auto const tokens = rows_for<T>(t.asked(), vocabulary, 2);
    auto const logits = numbers<T>(tokens * vocabulary);
    memory<std::int32_t> const targets{tokens, std::vector<std::int32_t>{7, 50000, 123}};
    memory<loss_sum> const loss{std::vector<loss_sum>(1)};
    t.row("cross_entropy_fused", type, tokens, vocabulary, 2.0 * static_cast<double>(tokens * vocabulary) * sizeof(T), [&] {
        cuda::cross_entropy_fused<policy>({},
                                          {.rows = tokens, .vocabulary = vocabulary, .logits = logits.data(), .targets = targets.data(), .loss = loss.data()});
    });

    std::int64_t const vocabulary_rows = std::min<std::int64_t>(rows, 32000);
    std::vector<std::int32_t> ids;
    std::mt19937 random{1};
    for (std::int64_t r = 0; r < rows; ++r) {
        ids.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary_rows)));
    }
    auto const order = order_of(ids, vocabulary_rows);
    memory<std::int32_t> const on_device{ids}, order_rows{order.rows}, first{order.first}, segments{order.tokens};
    exact_memory const to_tokens{vocabulary_rows * width};
    double const distinct = static_cast<double>(std::ssize(order.tokens) * width);
    t.row("embedding_forward", type, rows, width, 2 * b, [&] {
        cuda::embedding_forward<policy>({}, {.batch = 1,
                                             .length = rows,
                                             .width = width,
                                             .vocabulary = vocabulary_rows,
                                             .tokens = on_device.data(),
                                             .token_table = dy.data(),
                                             .position_table = nullptr,
                                             .output = y.data()});
    });
    t.row("embedding_backward_weight", type, rows, width, b + 16 * distinct, [&] {
        cuda::embedding_backward_weight<policy>(
            {}, {.segments = std::ssize(order.tokens), .rows = order_rows.data(), .first = first.data(), .tokens = segments.data()},
            {.batch = 1,
             .length = rows,
             .width = width,
             .vocabulary = vocabulary_rows,
             .tokens = on_device.data(),
             .output_gradient = dy.data(),
             .token_gradient = to_tokens.target()});
    });
}

template <class T>
void update(results& t, char const* type)
{
    constexpr auto policy = cuda::policy_storing<T>;
    auto const n = static_cast<std::int64_t>(t.asked().mib * 1048576 / 28) / 8 * 8 + 8;
    double const count = static_cast<double>(n);
    auto const master = numbers<float>(n), first = numbers<float>(n), gradient = numbers<float>(n);
    memory<float> const second{n, std::vector<float>(4096, 0.1F)};
    auto const stored = numbers<T>(n);
    memory<T> const parameter{n};
    exact_memory const sums{n};
    auto const blocks = first_blocks(std::vector<std::int64_t>{n});
    memory<std::int64_t> const first_block{blocks};
    memory<adamw_tensor<policy>> const tensors{std::vector<adamw_tensor<policy>>{{.count = n,
                                                                                  .master = master.data(),
                                                                                  .first_moment = first.data(),
                                                                                  .second_moment = second.data(),
                                                                                  .gradient = gradient.data(),
                                                                                  .parameter = parameter.data(),
                                                                                  .weight_decay = 0.1F}}};
    memory<adamw_factors<float>> const factors{std::vector<adamw_factors<float>>{{.multiplier = 1e-3F,
                                                                                  .beta1 = 0.9F,
                                                                                  .one_less_beta1 = 0.1F,
                                                                                  .beta2 = 0.95F,
                                                                                  .one_less_beta2 = 0.05F,
                                                                                  .correction1 = 1,
                                                                                  .correction2 = 1,
                                                                                  .epsilon = 1e-8F,
                                                                                  .rate = 1e-4F}}};
    t.row("adamw_list", type, 1, n, (28.0 + sizeof(T)) * count, [&] {
        cuda::adamw_list<policy>(
            {}, {.tensor_count = 1, .tensors = tensors.data(), .first_block = first_block.data(), .blocks = blocks.back(), .factors = factors.data()});
    });
    t.row("exact_accumulate", type, 1, n, (16.0 + sizeof(T)) * count, [&] {
        if constexpr (sizeof(T) == 4) {
            cuda::exact_accumulate({}, {.count = n, .gradient = stored.data(), .target = sums.target()});
        } else {
            cuda::exact_accumulate_bf16({}, {.count = n, .gradient = stored.data(), .target = sums.target()});
        }
    });
}

void whole_tensors(results& t)
{
    auto const n = static_cast<std::int64_t>(t.asked().mib * 1048576 / 4) / 64 * 64 + 64;
    double const count = static_cast<double>(n);
    auto const gradient = numbers<float>(n);
    memory<float> const to{n};
    exact_memory const sums{n / 2}, others{n / 2};
    memory<double> const block_sums{first_blocks(std::vector<std::int64_t>{n}).back()};
    t.row("sums_of_squares_by_block", "fp32", 1, n, 4 * count,
          [&] { cuda::sums_of_squares_by_block({}, {.count = n, .gradient = gradient.data()}, block_sums.data()); });
    digest_arguments const whole{.key = 1, .where = {.first = {0, 0, n}}, .values = gradient.data()};
    memory<state_digest> const digests{cuda::digest_blocks(whole)};
    t.row("digest", "fp32", 1, n, 4 * count, [&] { cuda::digest_by_block({}, whole, digests.data()); });
    t.row("exact_add", "i64", 1, n / 2, 12 * count, [&] { cuda::exact_add({}, {.count = n / 2, .source = sums.sums.data(), .target = others.sums.data()}); });
    t.row("exact_convert", "i64", 1, n / 2, 6 * count,
          [&] { cuda::exact_convert({}, {.count = n / 2, .sums = sums.sums.data(), .scale_log2 = 20, .gradient = to.data()}); });
    std::vector<pack_piece> const pieces{{.from = reinterpret_cast<std::byte const*>(gradient.data()),
                                          .to = reinterpret_cast<std::byte*>(to.data()),
                                          .rows = n / 64,
                                          .row_bytes = 128,
                                          .from_stride = 256,
                                          .to_stride = 128}};
    auto const piece_blocks = pack_blocks(pieces);
    memory<pack_piece> const list{pieces};
    memory<std::int64_t> const piece_first{piece_blocks};
    t.row("pack", "bytes", n / 64, 128, 4 * count,
          [&] { cuda::pack({}, {.piece_count = 1, .pieces = list.data(), .first_block = piece_first.data(), .blocks = piece_blocks.back()}); });
}

template <class T>
void of_type(results& t, char const* type)
{
    norms<T>(t, type, 4096, 0);
    norms<T>(t, type, 1600, 0);
    if (t.asked().mib >= 48) {  // 1024 rows of 12288 in bf16 and twice over: less is asked for only to see that it runs
        norms<T>(t, type, 12288, 1024);
    }
    elements<T>(t, type);
    update<T>(t, type);
}

}  // namespace

void memory_bound(results& t)
{
    of_type<bfloat16>(t, "bf16");
    of_type<float>(t, "fp32");
    whole_tensors(t);
}

}  // namespace bench
