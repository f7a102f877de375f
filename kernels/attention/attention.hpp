#pragma once
// SPDX-License-Identifier: Apache-2.0

// Causal attention of many heads over packed q, k, v, as GPT-2 has them: a row of qkv is q of all heads, then k,
// then v. There may be fewer heads of k and v, each for a group of heads of q that follow one another (Ainslie et al.: "GQA", 2023). Probabilities are softmax(q k / sqrt(head width)) over j <= i, with dropout on them. Forward
// keeps the log of the sum of exponentials, from which backward recomputes them (Dao et al.:
// "FlashAttention", 2022, without its tiling of the softmax: a block of query rows sees all its keys).
//
// A sequence may be cut into slices of equal length that are done one after the other (Seq1F1B): the queries of a slice
// see the keys and values of the slices before it, which lie in memory of their own, and then its own. Backward goes
// from the last slice to the first; each adds to the key and value gradients of those before it, which they take over
// when it is their turn. The order of these sums is fixed by the slices, so the grid of slices is part of the numerics.
//
// A shard of a layer has some of the model's heads: a call with those heads alone, whose dropout counts by their numbers in the model.

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cuda/stream.hpp"
#include "kernels/cuda/workspace.hpp"
#include "kernels/dropout/dropout.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

inline constexpr int most_slices = 64;

/// One pointer per slice before the item's own.
template <class T>
struct earlier_slices {
    std::int64_t count = 0;
    std::array<T*, most_slices - 1> of{};
};

template <dtype_policy Policy = fp32>
struct attention_forward_arguments {
    std::int64_t batch;
    std::int64_t length;  ///< tokens of a sequence, or of each of its slices
    std::int64_t width;   ///< of the model, a multiple of heads
    std::int64_t heads;
    std::int64_t kv_heads = 0;                         ///< of keys and values, a divisor of heads; 0: heads
    storage_t<Policy> const* qkv;                      // [batch * length, width + 2 * kv_width], kv_width = width / heads * kv_heads
    earlier_slices<storage_t<Policy> const> before{};  // each of that shape
    std::int64_t whole = 0;                            ///< tokens of a sequence that is cut; 0: length
    dropout drop{};                  ///< element ((b * all_heads + first_head + h) * whole + i) * whole + j, of tokens i and j of the sequence
    std::int64_t first_head = 0;     ///< the number in the model of the first of the heads
    std::int64_t all_heads = 0;      ///< of the model; 0: heads
    storage_t<Policy>* output;       // [batch * length, width]
    compute_t<Policy>* log_sum_exp;  // [batch, heads, length]
};

template <dtype_policy Policy = fp32>
struct attention_backward_arguments {
    std::int64_t batch;
    std::int64_t length;
    std::int64_t width;
    std::int64_t heads;
    std::int64_t kv_heads = 0;
    storage_t<Policy> const* qkv;                      // [batch * length, width + 2 * kv_width]
    earlier_slices<storage_t<Policy> const> before{};  // each of that shape
    std::int64_t whole = 0;
    storage_t<Policy> const* output;           // [batch * length, width]
    compute_t<Policy> const* log_sum_exp;      // [batch, heads, length]
    storage_t<Policy> const* output_gradient;  // [batch * length, width]
    dropout drop{};
    std::int64_t first_head = 0;
    std::int64_t all_heads = 0;
    storage_t<Policy>* qkv_gradient;                       // [batch * length, width + 2 * kv_width]
    storage_t<Policy> const* kv_gradient_later = nullptr;  // [batch * length, 2 * kv_width], from the slices behind; null: there are none
    /// Each [batch * length, 2 * kv_width]: added to, or written when no slice lies behind.
    earlier_slices<storage_t<Policy>> kv_gradient_before{};
};

/// The number of head h of sequence b among those of the model: its dropout counts by it.
template <class Arguments>
constexpr std::int64_t head_in_model(Arguments const& a, std::int64_t b, std::int64_t h)
{
    return b * (a.all_heads == 0 ? a.heads : a.all_heads) + a.first_head + h;
}

/// Whether the heads are among those of the model.
template <class Arguments>
constexpr bool heads_in_model(Arguments const& a)
{
    return a.first_head >= 0 && (a.all_heads == 0 ? a.first_head == 0 : a.first_head + a.heads <= a.all_heads);
}

/// Where the parts of a row of qkv lie, of heads that are `head_width` wide.
struct qkv_row {
    std::int64_t head_width;
    std::int64_t group;     ///< heads of q for one of k and v
    std::int64_t width;     ///< of q
    std::int64_t kv_width;  ///< of k, and of v

    template <class Arguments>
    explicit constexpr qkv_row(Arguments const& a)
        : head_width{a.width / a.heads}, group{a.kv_heads == 0 ? 1 : a.heads / a.kv_heads}, width{a.width}, kv_width{a.width / group}
    {
    }

    constexpr std::int64_t floats() const { return width + 2 * kv_width; }
    constexpr std::int64_t query(std::int64_t head) const { return head * head_width; }
    constexpr std::int64_t key(std::int64_t head) const { return width + pair(head); }
    constexpr std::int64_t pair(std::int64_t head) const { return head / group * head_width; }  ///< of a key in a row of keys and values
};

namespace definition {

/// Token j of sequence b among the slices up to the item's own: its row of the qkv where it lies, at q.
template <dtype_policy Policy, class Arguments>
storage_t<Policy> const* attention_token(Arguments const& a, std::int64_t b, std::int64_t j)
{
    auto const* const slice = j / a.length < a.before.count ? a.before.of[static_cast<std::size_t>(j / a.length)] : a.qkv;
    return slice + (b * a.length + j % a.length) * qkv_row{a}.floats();
}

/// q . k / sqrt(head width) of head h, tokens i and j of sequence b.
template <dtype_policy Policy, class Arguments>
compute_t<Policy> attention_score(Arguments const& a, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j)
{
    using compute = compute_t<Policy>;
    qkv_row const row{a};
    std::int64_t const d = row.head_width;
    auto const* q = attention_token<Policy>(a, b, i) + row.query(h);
    auto const* k = attention_token<Policy>(a, b, j) + row.key(h);
    compute sum = 0;
    for (std::int64_t c = 0; c < d; ++c) {
        sum += compute(q[c]) * compute(k[c]);
    }
    return sum / std::sqrt(static_cast<compute>(d));
}

/// The number of the probability of tokens i and 0, from which j counts on.
template <class Arguments>
std::int64_t attention_element(Arguments const& a, std::int64_t b, std::int64_t h, std::int64_t i)
{
    std::int64_t const whole = a.whole == 0 ? a.length : a.whole;
    return (head_in_model(a, b, h) * whole + i) * whole;
}

template <dtype_policy Policy>
void attention_forward(attention_forward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    dropout_factor<compute> const factor{a.drop};
    qkv_row const in{a};
    std::int64_t const d = in.head_width;
    std::int64_t const first = a.before.count * a.length;  // of the item's tokens in their sequence
    for (std::int64_t b = 0; b < a.batch; ++b) {
        for (std::int64_t h = 0; h < a.heads; ++h) {
            for (std::int64_t i = first; i < first + a.length; ++i) {
                std::int64_t const row = b * a.length + i - first;
                std::int64_t const element = attention_element(a, b, h, i);
                compute largest = -std::numeric_limits<compute>::infinity();
                for (std::int64_t j = 0; j <= i; ++j) {
                    auto const s = attention_score<Policy>(a, b, h, i, j);
                    largest = s > largest ? s : largest;
                }
                compute sum = 0;
                for (std::int64_t j = 0; j <= i; ++j) {
                    sum += std::exp(attention_score<Policy>(a, b, h, i, j) - largest);
                }
                compute const log_sum = largest + std::log(sum);
                a.log_sum_exp[(b * a.heads + h) * a.length + i - first] = log_sum;
                for (std::int64_t c = 0; c < d; ++c) {
                    compute out = 0;
                    for (std::int64_t j = 0; j <= i; ++j) {
                        compute const p = std::exp(attention_score<Policy>(a, b, h, i, j) - log_sum);
                        auto const* v = attention_token<Policy>(a, b, j) + in.key(h) + in.kv_width;
                        out += p * factor(element + j) * compute(v[c]);
                    }
                    a.output[row * a.width + h * d + c] = static_cast<storage_t<Policy>>(out);
                }
            }
        }
    }
}

/// Where the gradients of the keys and values begin: the item's own take over what the slices behind have added, those before
/// are written when there are none behind.
template <dtype_policy Policy>
void attention_begin_gradients(attention_backward_arguments<Policy> const& a)
{
    qkv_row const in{a};
    for (std::int64_t r = 0; r < a.batch * a.length; ++r) {
        for (std::int64_t c = 0; c < in.floats(); ++c) {
            bool const taken = a.kv_gradient_later != nullptr && c >= a.width;
            a.qkv_gradient[r * in.floats() + c] = taken ? a.kv_gradient_later[r * 2 * in.kv_width + c - a.width] : storage_t<Policy>{};
        }
    }
    for (std::int64_t s = 0; s < a.kv_gradient_before.count && a.kv_gradient_later == nullptr; ++s) {
        for (std::int64_t i = 0; i < a.batch * a.length * 2 * in.kv_width; ++i) {
            a.kv_gradient_before.of[static_cast<std::size_t>(s)][i] = 0;
        }
    }
}

template <dtype_policy Policy>
void attention_backward(attention_backward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    dropout_factor<compute> const factor{a.drop};
    qkv_row const in{a};
    std::int64_t const d = in.head_width;
    std::int64_t const first = a.before.count * a.length;
    compute const scale = compute(1) / std::sqrt(static_cast<compute>(d));
    attention_begin_gradients(a);
    for (std::int64_t b = 0; b < a.batch; ++b) {
        for (std::int64_t h = 0; h < a.heads; ++h) {
            for (std::int64_t i = first; i < first + a.length; ++i) {
                std::int64_t const row = b * a.length + i - first;
                std::int64_t const element = attention_element(a, b, h, i);
                auto const* dout = a.output_gradient + row * a.width + h * d;
                compute mean = 0;  // of the gradient of the probabilities, = dout . out
                for (std::int64_t c = 0; c < d; ++c) {
                    mean += compute(dout[c]) * compute(a.output[row * a.width + h * d + c]);
                }
                for (std::int64_t j = 0; j <= i; ++j) {
                    std::int64_t const key = b * a.length + j % a.length;
                    auto const* q = a.qkv + row * in.floats() + in.query(h);
                    auto const* k = attention_token<Policy>(a, b, j) + in.key(h);
                    auto const* v = k + in.kv_width;
                    auto* dq = a.qkv_gradient + row * in.floats() + in.query(h);
                    auto* dk = j < first ? a.kv_gradient_before.of[static_cast<std::size_t>(j / a.length)] + key * 2 * in.kv_width + in.pair(h)
                                         : a.qkv_gradient + key * in.floats() + in.key(h);
                    auto* dv = dk + in.kv_width;
                    compute const p = std::exp(attention_score<Policy>(a, b, h, i, j) - a.log_sum_exp[(b * a.heads + h) * a.length + i - first]);
                    compute dp = 0;
                    for (std::int64_t c = 0; c < d; ++c) {
                        dp += compute(dout[c]) * compute(v[c]);
                    }
                    compute const ds = p * (dp * factor(element + j) - mean) * scale;
                    for (std::int64_t c = 0; c < d; ++c) {
                        dv[c] = static_cast<storage_t<Policy>>(compute(dv[c]) + p * factor(element + j) * compute(dout[c]));
                        dq[c] = static_cast<storage_t<Policy>>(compute(dq[c]) + ds * compute(k[c]));
                        dk[c] = static_cast<storage_t<Policy>>(compute(dk[c]) + ds * compute(q[c]));
                    }
                }
            }
        }
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void attention_forward(tile_pool& pool, attention_forward_arguments<> const& arguments);
void attention_backward(tile_pool& pool, attention_backward_arguments<> const& arguments);

}  // namespace host

namespace cuda {

/// Whose tensor cores take heads in bf16 that are multiples of 8 and at most 128 wide: a warp's, or a warpgroup's, which compute capability 9.0 has.
/// Sums differ in their last bits.
enum class tensor_cores : std::uint8_t { of_warps, of_warpgroups };

constexpr bool tensor_cores_take(std::int64_t head_width) { return head_width % 8 == 0 && head_width <= 128; }

/// Whether this device has them, and the kernels were built for it.
bool has(tensor_cores kind);

// Policy is fp32 or bf16; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void attention_forward(stream queue, attention_forward_arguments<Policy> const& arguments, tensor_cores by = tensor_cores::of_warps);
template <dtype_policy Policy>
void attention_backward(stream queue, workspace scratch, attention_backward_arguments<Policy> const& arguments, tensor_cores by = tensor_cores::of_warps);

/// Bytes of workspace that attention_backward wants.
std::int64_t attention_backward_workspace_bytes(std::int64_t batch, std::int64_t heads, std::int64_t length);

}  // namespace cuda
}  // namespace rheo::inline v0
