// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include <array>
#include <cstring>

#include "kernels/detail/tile_ranges.hpp"
#include "rheo/tensor/shard_grid.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {

constexpr std::int64_t row_tile = 4;

/// One row's log sum exp, its loss added to `loss` when it has a target.
double forward_row(float const* logits, std::int64_t vocabulary, std::int32_t target, loss_sum& loss)
{
    double const log_sum = loops().log_sum_exp(vocabulary, logits);
    if (target != ignored_target) {
        expects(target >= 0 && target < vocabulary, "a target is not in the vocabulary");
        add_loss(loss, log_sum - static_cast<double>(logits[target]));
    }
    return log_sum;
}

/// `here`: where the row's target is among these logits; ignored_target: nowhere.
void backward_row(float const* logits, std::int64_t vocabulary, std::int32_t target, std::int64_t here, float log_sum, float* gradient)
{
    if (target == ignored_target) {
        std::memset(gradient, 0, static_cast<std::size_t>(vocabulary) * sizeof(float));
        return;
    }
    loops().exp_minus(vocabulary, logits, log_sum, gradient);
    if (here != ignored_target) {
        gradient[here] -= 1.0F;
    }
}

/// The log sum exp of a row of which each shard has a part.
double joined_log_sum(cross_entropy_finish_arguments<> const& a, std::int64_t row)
{
    std::array<double, static_cast<std::size_t>(most_shards)> sums{};
    std::array<float, static_cast<std::size_t>(most_shards)> largest{};
    for (std::int64_t j = 0; j < a.shards; ++j) {
        auto const& of = a.statistics[j * a.rows + row];
        sums[static_cast<std::size_t>(j)] = of.sum;
        largest[static_cast<std::size_t>(j)] = of.largest;
    }
    return loops().joined_log_sum_exp(a.shards, sums.data(), largest.data());
}

/// Runs tiles of rows, each with a loss of its own, and adds the losses up: integers, so in any order.
template <class Row>
void for_rows(tile_pool& pool, std::int64_t count, loss_sum& total, Row row)
{
    std::mutex mutex;
    pool.run(tiles_in(count, row_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t, row_tile, count);
        loss_sum loss;
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            row(r, loss);
        }
        std::lock_guard const lock{mutex};
        total = total + loss;
    });
}

}  // namespace

void cross_entropy_forward(tile_pool& pool, cross_entropy_forward_arguments<> const& a)
{
    for_rows(pool, a.rows, *a.loss, [&](std::int64_t r, loss_sum& loss) {
        double const log_sum = forward_row(a.logits + r * a.vocabulary, a.vocabulary, a.targets[r], loss);
        if (a.log_sum_exp != nullptr) {
            a.log_sum_exp[r] = static_cast<float>(log_sum);
        }
    });
}

void cross_entropy_backward(tile_pool& pool, cross_entropy_backward_arguments<> const& a)
{
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            backward_row(a.logits + r * a.vocabulary, a.vocabulary, a.targets[r], a.targets[r], a.log_sum_exp[r], a.logits_gradient + r * a.vocabulary);
        }
    });
}

void cross_entropy_fused(tile_pool& pool, cross_entropy_fused_arguments<> const& a)
{
    for_rows(pool, a.rows, *a.loss, [&](std::int64_t r, loss_sum& loss) {
        float* const logits = a.logits + r * a.vocabulary;
        double const log_sum = forward_row(logits, a.vocabulary, a.targets[r], loss);
        backward_row(logits, a.vocabulary, a.targets[r], a.targets[r], static_cast<float>(log_sum), logits);
    });
}

void cross_entropy_statistics(tile_pool& pool, cross_entropy_statistics_arguments<> const& a)
{
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            auto& row = a.statistics[r];
            row.sum = loops().sum_of_exp(a.vocabulary, a.logits + r * a.vocabulary, &row.largest);
        }
    });
}

void cross_entropy_finish(tile_pool& pool, cross_entropy_finish_arguments<> const& a)
{
    expects(a.shards >= 1 && a.shards <= most_shards, "a vocabulary has 1 to 16 shards");
    for_rows(pool, a.rows, *a.loss, [&](std::int64_t r, loss_sum& loss) {
        float const* const logits = a.logits + r * a.vocabulary;
        auto const target = a.targets[r];
        expects(target == ignored_target || (target >= 0 && target < a.all_tokens), "a target is not in the vocabulary");
        auto const here = target_in_shard(target, a.first_token, a.vocabulary);
        double const log_sum = joined_log_sum(a, r);
        if (here != ignored_target) {
            add_loss(loss, log_sum - static_cast<double>(logits[here]));
        }
        if (a.log_sum_exp != nullptr) {
            a.log_sum_exp[r] = static_cast<float>(log_sum);
        }
        if (a.logits_gradient != nullptr) {
            backward_row(logits, a.vocabulary, target, here, static_cast<float>(log_sum), a.logits_gradient + r * a.vocabulary);
        }
    });
}

}  // namespace rheo::inline v0::host
