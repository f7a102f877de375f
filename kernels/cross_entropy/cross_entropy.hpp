#pragma once
// SPDX-License-Identifier: Apache-2.0

// The loss: -log softmax(logits)[target], summed over rows, in nats. Each row's loss is rounded to a multiple
// of 2^-24 nat and the sum is an integer, so it adds up over microbatches and ranks in any order.
// Gradients are those of the plain sum: the one division by the step's targets belongs to the update.
// The fused form writes the gradient in place of the logits; forward alone serves evaluation.
//
// Shards of the vocabulary take two calls: the statistics of each shard's logits of a row (the largest l, and the sum e of exp(x - l)), and, with
// those of all shards, the finish: L = max l, E = the sum of e exp(l - L) in the order of the shards, log sum exp = L + log E. With one shard
// they have the bits of the other forms. The shard that has a row's target counts its loss.

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cuda/stream.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// A sum of losses that does not depend on order.
struct loss_sum {
    std::int64_t fixed = 0;    ///< in units of 2^-24 nat
    std::int64_t targets = 0;  ///< rows that count; the ignored are not among them
    bool not_finite = false;   ///< some row's loss was not finite, or 2^20 nats and more; it was left out of `fixed`

    friend constexpr bool operator==(loss_sum const&, loss_sum const&) = default;

    friend constexpr loss_sum operator+(loss_sum const& a, loss_sum const& b)
    {
        return {.fixed = a.fixed + b.fixed, .targets = a.targets + b.targets, .not_finite = a.not_finite || b.not_finite};
    }
};

inline constexpr double loss_units_per_nat = 16777216.0;  // 2^24
inline constexpr double largest_row_loss = 1048576.0;     // 2^20 nats: 2^19 rows still fit an int64
inline constexpr std::int32_t ignored_target = -1;

/// The mean loss in nats per target; zero when there is none, NaN when some row's loss was not finite.
constexpr double mean_loss(loss_sum const& sum)
{
    if (sum.not_finite) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    return sum.targets == 0 ? 0.0 : static_cast<double>(sum.fixed) / loss_units_per_nat / static_cast<double>(sum.targets);
}

/// Adds one row's loss.
inline void add_loss(loss_sum& sum, double loss)
{
    ++sum.targets;
    if (!(std::fabs(loss) < largest_row_loss)) {
        sum.not_finite = true;
        return;
    }
    sum.fixed += static_cast<std::int64_t>(std::nearbyint(loss * loss_units_per_nat));
}

/// Forward only: evaluation, or a step whose backward stands alone.
template <dtype_policy Policy = fp32>
struct cross_entropy_forward_arguments {
    std::int64_t rows;
    std::int64_t vocabulary;
    storage_t<Policy> const* logits;           // [rows, vocabulary]
    std::int32_t const* targets;               // [rows], ignored_target is left out
    compute_t<Policy>* log_sum_exp = nullptr;  // [rows] for backward, or null
    loss_sum* loss;                            ///< added to
};

template <dtype_policy Policy = fp32>
struct cross_entropy_backward_arguments {
    std::int64_t rows;
    std::int64_t vocabulary;
    storage_t<Policy> const* logits;       // [rows, vocabulary]
    std::int32_t const* targets;           // [rows]
    compute_t<Policy> const* log_sum_exp;  // [rows]
    storage_t<Policy>* logits_gradient;    // [rows, vocabulary], may be logits; zero in ignored rows
};

/// Forward and backward in one pass: after it the logits are the gradient, softmax - onehot.
template <dtype_policy Policy = fp32>
struct cross_entropy_fused_arguments {
    std::int64_t rows;
    std::int64_t vocabulary;
    storage_t<Policy>* logits;    // [rows, vocabulary], in: logits, out: gradient
    std::int32_t const* targets;  // [rows]
    loss_sum* loss;               ///< added to
};

/// Of one shard's logits of one row.
struct row_statistics {
    double sum = 0;  ///< of exp(logit - largest)
    float largest = 0;

    friend constexpr bool operator==(row_statistics const&, row_statistics const&) = default;
};

template <dtype_policy Policy = fp32>
struct cross_entropy_statistics_arguments {
    std::int64_t rows;
    std::int64_t vocabulary;          ///< of the shard
    storage_t<Policy> const* logits;  // [rows, vocabulary]
    row_statistics* statistics;       // [rows]
};

template <dtype_policy Policy = fp32>
struct cross_entropy_finish_arguments {
    std::int64_t rows;
    std::int64_t vocabulary;       ///< of the shard
    std::int64_t first_token = 0;  ///< of the shard
    std::int64_t all_tokens;       ///< of the whole vocabulary
    std::int64_t shards;
    row_statistics const* statistics;              // [shards, rows]
    storage_t<Policy> const* logits;               // [rows, vocabulary]
    std::int32_t const* targets;                   // [rows], in the whole vocabulary or ignored_target
    compute_t<Policy>* log_sum_exp = nullptr;      // [rows], or null
    storage_t<Policy>* logits_gradient = nullptr;  // [rows, vocabulary], may be logits; zero in ignored rows; or null: forward only
    loss_sum* loss;                                ///< added to: rows whose target the shard has
};

/// Where a target is in a shard of the vocabulary; ignored_target: nowhere.
constexpr std::int64_t target_in_shard(std::int32_t target, std::int64_t first_token, std::int64_t vocabulary)
{
    return target >= first_token && target < first_token + vocabulary ? target - first_token : ignored_target;
}

namespace definition {

template <class Storage>
double log_sum_exp_of(Storage const* logits, std::int64_t count)
{
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t v = 0; v < count; ++v) {
        largest = double(logits[v]) > largest ? double(logits[v]) : largest;
    }
    double sum = 0;
    for (std::int64_t v = 0; v < count; ++v) {
        sum += std::exp(double(logits[v]) - largest);
    }
    return largest + std::log(sum);
}

template <dtype_policy Policy>
void cross_entropy_forward(cross_entropy_forward_arguments<Policy> const& a)
{
    for (std::int64_t r = 0; r < a.rows; ++r) {
        auto const* x = a.logits + r * a.vocabulary;
        double const log_sum = log_sum_exp_of(x, a.vocabulary);
        if (a.log_sum_exp != nullptr) {
            a.log_sum_exp[r] = static_cast<compute_t<Policy>>(log_sum);
        }
        if (a.targets[r] != ignored_target) {
            expects(a.targets[r] >= 0 && a.targets[r] < a.vocabulary, "a target is not in the vocabulary");
            add_loss(*a.loss, log_sum - double(x[a.targets[r]]));
        }
    }
}

template <dtype_policy Policy>
void cross_entropy_backward(cross_entropy_backward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    for (std::int64_t r = 0; r < a.rows; ++r) {
        for (std::int64_t v = 0; v < a.vocabulary; ++v) {
            std::int64_t const i = r * a.vocabulary + v;
            compute const p = std::exp(compute(a.logits[i]) - a.log_sum_exp[r]);
            compute const gradient = a.targets[r] == ignored_target ? compute(0) : p - compute(v == a.targets[r] ? 1 : 0);
            a.logits_gradient[i] = static_cast<storage_t<Policy>>(gradient);
        }
    }
}

template <dtype_policy Policy>
void cross_entropy_fused(cross_entropy_fused_arguments<Policy> const& a)
{
    for (std::int64_t r = 0; r < a.rows; ++r) {
        compute_t<Policy> log_sum = 0;
        cross_entropy_forward(cross_entropy_forward_arguments<Policy>{
            .rows = 1, .vocabulary = a.vocabulary, .logits = a.logits + r * a.vocabulary, .targets = a.targets + r, .log_sum_exp = &log_sum, .loss = a.loss});
        cross_entropy_backward(cross_entropy_backward_arguments<Policy>{.rows = 1,
                                                                        .vocabulary = a.vocabulary,
                                                                        .logits = a.logits + r * a.vocabulary,
                                                                        .targets = a.targets + r,
                                                                        .log_sum_exp = &log_sum,
                                                                        .logits_gradient = a.logits + r * a.vocabulary});
    }
}

template <dtype_policy Policy>
void cross_entropy_statistics(cross_entropy_statistics_arguments<Policy> const& a)
{
    for (std::int64_t r = 0; r < a.rows; ++r) {
        auto const* x = a.logits + r * a.vocabulary;
        float largest = -std::numeric_limits<float>::infinity();
        for (std::int64_t v = 0; v < a.vocabulary; ++v) {
            largest = float(x[v]) > largest ? float(x[v]) : largest;
        }
        double sum = 0;
        for (std::int64_t v = 0; v < a.vocabulary; ++v) {
            sum += std::exp(double(x[v]) - double(largest));
        }
        a.statistics[r] = {.sum = sum, .largest = largest};
    }
}

/// The log sum exp of a row, whose statistics lie `rows` apart.
inline double joined_log_sum(row_statistics const* row, std::int64_t shards, std::int64_t rows)
{
    float largest = row[0].largest;
    for (std::int64_t j = 1; j < shards; ++j) {
        largest = row[j * rows].largest > largest ? row[j * rows].largest : largest;
    }
    double sum = 0;
    for (std::int64_t j = 0; j < shards; ++j) {
        sum += row[j * rows].sum * std::exp(double(row[j * rows].largest) - double(largest));
    }
    return double(largest) + std::log(sum);
}

template <dtype_policy Policy>
void cross_entropy_finish(cross_entropy_finish_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    for (std::int64_t r = 0; r < a.rows; ++r) {
        auto const* x = a.logits + r * a.vocabulary;
        auto const target = target_in_shard(a.targets[r], a.first_token, a.vocabulary);
        expects(a.targets[r] == ignored_target || (a.targets[r] >= 0 && a.targets[r] < a.all_tokens), "a target is not in the vocabulary");
        double const log_sum = joined_log_sum(a.statistics + r, a.shards, a.rows);
        if (a.log_sum_exp != nullptr) {
            a.log_sum_exp[r] = static_cast<compute>(log_sum);
        }
        if (target != ignored_target) {
            add_loss(*a.loss, log_sum - double(x[target]));
        }
        for (std::int64_t v = 0; v < a.vocabulary && a.logits_gradient != nullptr; ++v) {
            compute const p = std::exp(compute(x[v]) - static_cast<compute>(log_sum));
            compute const gradient = a.targets[r] == ignored_target ? compute(0) : p - compute(v == target ? 1 : 0);
            a.logits_gradient[r * a.vocabulary + v] = static_cast<storage_t<Policy>>(gradient);
        }
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void cross_entropy_forward(tile_pool& pool, cross_entropy_forward_arguments<> const& arguments);
void cross_entropy_backward(tile_pool& pool, cross_entropy_backward_arguments<> const& arguments);
void cross_entropy_fused(tile_pool& pool, cross_entropy_fused_arguments<> const& arguments);
void cross_entropy_statistics(tile_pool& pool, cross_entropy_statistics_arguments<> const& arguments);
void cross_entropy_finish(tile_pool& pool, cross_entropy_finish_arguments<> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16; pointers are the device's, and results are there when the stream is. Targets are in the vocabulary or
// ignored: the host has looked before it copied them.
template <dtype_policy Policy>
void cross_entropy_forward(stream queue, cross_entropy_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void cross_entropy_backward(stream queue, cross_entropy_backward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void cross_entropy_fused(stream queue, cross_entropy_fused_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void cross_entropy_statistics(stream queue, cross_entropy_statistics_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void cross_entropy_finish(stream queue, cross_entropy_finish_arguments<Policy> const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
