// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding/embedding.hpp"

#include <cstring>
#include <utility>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {

constexpr std::int64_t row_tile = 16;

/// Writes dy times its dropout factor, of one row, where the caller wants it; or points at dy itself.
template <dtype_policy Policy>
float const* row_gradient(tile_pool& pool, int worker, embedding_backward_weight_arguments<Policy> const& a, dropping const& drop, std::int64_t row,
                          float* scratch)
{
    float const* const dy = a.output_gradient + row * a.width;
    if (!drop.active()) {
        return dy;
    }
    loops().drop(a.width, dy, drop.row_rule(pool, worker, row, a.width), scratch);
    return scratch;
}

/// The rows' sum in the order given, then one contribution to table row `target`.
template <dtype_policy Policy, class NextRow, class Run>
void contribute_rows(tile_pool& pool, int worker, embedding_backward_weight_arguments<Policy> const& a, dropping const& drop, std::int64_t count,
                     NextRow row_at, Run& run, std::int64_t target)
{
    float* const sum = pool.scratch_of<float>(worker, 2 * a.width, row_slot);
    float* const scratch = sum + a.width;
    std::memset(sum, 0, static_cast<std::size_t>(a.width) * sizeof(float));
    for (std::int64_t i = 0; i < count; ++i) {
        loops().add(a.width, sum, row_gradient(pool, worker, a, drop, row_at(i), scratch), sum);
    }
    run.add(target * a.width, sum, a.width);
}

struct token_row {
    std::int32_t token;
    std::int32_t row;
    friend bool operator<(token_row a, token_row b) { return std::pair{a.token, a.row} < std::pair{b.token, b.row}; }
};

}  // namespace

void embedding_forward(tile_pool& pool, embedding_forward_arguments<> const& a)
{
    dropping const drop{a.drop};
    std::int64_t const all_rows = a.batch * a.length;
    auto const there = tokens_there(a);
    pool.run(tiles_in(all_rows, row_tile), [&](std::int64_t t, int worker) {
        auto const rows = range_of(t, row_tile, all_rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            expects(a.tokens[r] >= 0 && a.tokens[r] < a.vocabulary, "a token is not in the vocabulary");
            if (a.tokens[r] < there.begin || a.tokens[r] >= there.end) {
                continue;
            }
            float* const out = a.output + r * a.width;
            float const* const token = a.token_table + (a.tokens[r] - there.begin) * a.width;
            if (a.position_table != nullptr) {
                loops().add(a.width, token, a.position_table + (a.first + r % a.length) * a.width, out);
            } else {
                std::memcpy(out, token, static_cast<std::size_t>(a.width) * sizeof(float));
            }
            if (drop.active()) {
                loops().drop(a.width, out, drop.row_rule(pool, worker, r, a.width), out);
            }
        }
    });
}

template <dtype_policy Policy>
void embedding_backward_weight_of(tile_pool& pool, embedding_backward_weight_arguments<Policy> const& a)
{
    dropping const drop{a.drop};
    auto const there = tokens_there(a);
    std::mutex mutex;
    if (a.token_gradient.sums != nullptr) {
        // rows in order of token, then of row: a run of one token is one row of the table
        auto* const order = pool.scratch_of<token_row>(0, a.batch * a.length, order_slot);
        std::int64_t rows = 0;
        for (std::int64_t r = 0; r < a.batch * a.length; ++r) {
            expects(a.tokens[r] >= 0 && a.tokens[r] < a.vocabulary, "a token is not in the vocabulary");
            if (a.tokens[r] >= there.begin && a.tokens[r] < there.end) {
                order[rows++] = {.token = a.tokens[r], .row = static_cast<std::int32_t>(r)};
            }
        }
        std::sort(order, order + rows);
        // a tile owns the runs that begin in it
        pool.run(tiles_in(rows, row_tile), [&](std::int64_t t, int worker) {
            auto const range = range_of(t, row_tile, rows);
            exact_run run{a.token_gradient};
            for (std::int64_t i = range.begin; i < range.begin + range.count;) {
                std::int32_t const token = order[i].token;
                std::int64_t end = i;
                while (end < rows && order[end].token == token) {
                    ++end;
                }
                if (i == 0 || order[i - 1].token != token) {
                    contribute_rows(pool, worker, a, drop, end - i, [&](std::int64_t k) { return order[i + k].row; }, run, token - there.begin);
                }
                i = end;
            }
            run.merge(mutex);
        });
    }
    if (a.position_gradient.sums != nullptr) {
        auto const positions = positions_there(a);
        pool.run(positions.count(), [&](std::int64_t t, int worker) {
            std::int64_t const position = positions.begin + t;
            exact_run run{a.position_gradient};
            contribute_rows(pool, worker, a, drop, a.batch, [&](std::int64_t b) { return b * a.length + position; }, run, a.first + position);
            run.merge(mutex);
        });
    }
}

void embedding_backward_weight(tile_pool& pool, embedding_backward_weight_arguments<> const& a) { embedding_backward_weight_of(pool, a); }
void embedding_backward_weight(tile_pool& pool, embedding_backward_weight_arguments<fp32_i32> const& a) { embedding_backward_weight_of(pool, a); }

}  // namespace rheo::inline v0::host
