// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include <cstring>

#include "kernels/detail/tile_ranges.hpp"

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

void backward_row(float const* logits, std::int64_t vocabulary, std::int32_t target, float log_sum, float* gradient)
{
    if (target == ignored_target) {
        std::memset(gradient, 0, static_cast<std::size_t>(vocabulary) * sizeof(float));
        return;
    }
    loops().exp_minus(vocabulary, logits, log_sum, gradient);
    gradient[target] -= 1.0F;
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
            backward_row(a.logits + r * a.vocabulary, a.vocabulary, a.targets[r], a.log_sum_exp[r], a.logits_gradient + r * a.vocabulary);
        }
    });
}

void cross_entropy_fused(tile_pool& pool, cross_entropy_fused_arguments<> const& a)
{
    for_rows(pool, a.rows, *a.loss, [&](std::int64_t r, loss_sum& loss) {
        float* const logits = a.logits + r * a.vocabulary;
        double const log_sum = forward_row(logits, a.vocabulary, a.targets[r], loss);
        backward_row(logits, a.vocabulary, a.targets[r], static_cast<float>(log_sum), logits);
    });
}

}  // namespace rheo::inline v0::host
