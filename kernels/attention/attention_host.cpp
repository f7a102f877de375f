// SPDX-License-Identifier: Apache-2.0
// A block of query rows against all keys it may see, by sgemm; the block is part of the definition of the host's bits.
#include "kernels/attention/attention.hpp"

#include <cstring>

#include "kernels/blas.hpp"
#include "kernels/detail/tile_ranges.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::host {

using namespace detail;

namespace {

constexpr std::int64_t query_block = 64;

/// Where one head of one sequence lies.
struct head {
    std::int64_t length;
    std::int64_t width;
    std::int64_t size;      // of a head
    std::int64_t row;       // elements from row to row of qkv
    std::int64_t qkv;       // first element of q; k and v follow at width and 2 width
    std::int64_t output;    // first element within [rows, width]
    std::int64_t number;    // b * heads + h

    std::int64_t element(std::int64_t i) const { return (number * length + i) * length; }
};

template <class Arguments>
head head_of(Arguments const& a, std::int64_t number)
{
    std::int64_t const b = number / a.heads;
    std::int64_t const size = a.width / a.heads;
    std::int64_t const column = number % a.heads * size;
    return {.length = a.length,
            .width = a.width,
            .size = size,
            .row = 3 * a.width,
            .qkv = b * a.length * 3 * a.width + column,
            .output = b * a.length * a.width + column,
            .number = number};
}

/// scores [queries, keys] = q k^T
void scores_of(head const& at, float const* qkv, element_range const& queries, std::int64_t keys, float* scores)
{
    sgemm({.m = queries.count,
           .n = keys,
           .k = at.size,
           .b_is = transposed::yes,
           .a = qkv + at.qkv + queries.begin * at.row,
           .a_row = at.row,
           .b = qkv + at.qkv + at.width,
           .b_row = at.row,
           .c = scores,
           .c_row = keys});
}

void zero(float* begin, float* end) { std::memset(begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float)); }

float scale_of(std::int64_t size) { return 1.0F / std::sqrt(static_cast<float>(size)); }

}  // namespace

void attention_forward(tile_pool& pool, attention_forward_arguments<> const& a)
{
    expects(a.heads >= 1 && a.width % a.heads == 0, "the width of attention is a multiple of its heads");
    dropping const drop{a.drop};
    std::int64_t const blocks = tiles_in(a.length, query_block);
    pool.run(a.batch * a.heads * blocks, [&](std::int64_t t, int worker) {
        auto const at = head_of(a, t / blocks);
        auto const queries = range_of(t % blocks, query_block, a.length);
        std::int64_t const keys = queries.begin + queries.count;
        float* const p = pool.scratch_of<float>(worker, query_block * a.length, product_slot);
        scores_of(at, a.qkv, queries, keys, p);
        for (std::int64_t i = 0; i < queries.count; ++i) {
            float* const row = p + i * keys;
            std::int64_t const seen = queries.begin + i + 1;
            a.log_sum_exp[at.number * a.length + queries.begin + i] = loops().softmax(seen, scale_of(at.size), row);
            if (drop.active()) {
                loops().drop(seen, row, drop.rule(pool, worker, at.element(queries.begin + i), seen), row);
            }
            zero(row + seen, row + keys);
        }
        sgemm({.m = queries.count,
               .n = at.size,
               .k = keys,
               .a = p,
               .a_row = keys,
               .b = a.qkv + at.qkv + 2 * at.width,
               .b_row = at.row,
               .c = a.output + at.output + queries.begin * a.width,
               .c_row = a.width});
    });
}

void attention_backward(tile_pool& pool, attention_backward_arguments<> const& a)
{
    expects(a.heads >= 1 && a.width % a.heads == 0, "the width of attention is a multiple of its heads");
    dropping const drop{a.drop};
    pool.run(a.batch * a.heads, [&](std::int64_t t, int worker) {
        auto const at = head_of(a, t);
        float const scale = scale_of(at.size);
        float* const p = pool.scratch_of<float>(worker, query_block * a.length, product_slot);
        float* const dp = pool.scratch_of<float>(worker, query_block * a.length, second_product_slot);
        float* const dq = a.qkv_gradient + at.qkv;
        // blocks from the last to the first: the last one sees all keys and so writes dk and dv instead of adding
        for (std::int64_t block = tiles_in(a.length, query_block) - 1; block >= 0; --block) {
            auto const queries = range_of(block, query_block, a.length);
            std::int64_t const keys = queries.begin + queries.count;
            float const beta = keys == a.length ? 0.0F : 1.0F;
            float const* const dout = a.output_gradient + at.output + queries.begin * a.width;
            float const* const q = a.qkv + at.qkv + queries.begin * at.row;
            scores_of(at, a.qkv, queries, keys, p);
            sgemm({.m = queries.count,  // dp = dout v^T
                   .n = keys,
                   .k = at.size,
                   .b_is = transposed::yes,
                   .a = dout,
                   .a_row = a.width,
                   .b = a.qkv + at.qkv + 2 * at.width,
                   .b_row = at.row,
                   .c = dp,
                   .c_row = keys});
            for (std::int64_t i = 0; i < queries.count; ++i) {
                float* const row = p + i * keys;
                float* const gradient = dp + i * keys;
                std::int64_t const query = queries.begin + i;
                std::int64_t const seen = query + 1;
                loops().probabilities(seen, scale, a.log_sum_exp[at.number * a.length + query], row);
                float const mean = loops().dot(at.size, dout + i * a.width, a.output + at.output + query * a.width);
                if (drop.active()) {
                    auto const rule = drop.rule(pool, worker, at.element(query), seen);
                    loops().drop(seen, gradient, rule, gradient);
                    loops().score_gradient(seen, row, mean, scale, gradient);
                    loops().drop(seen, row, rule, row);
                } else {
                    loops().score_gradient(seen, row, mean, scale, gradient);
                }
                zero(row + seen, row + keys);
                zero(gradient + seen, gradient + keys);
            }
            sgemm({.m = queries.count,  // dq = ds k
                   .n = at.size,
                   .k = keys,
                   .a = dp,
                   .a_row = keys,
                   .b = a.qkv + at.qkv + at.width,
                   .b_row = at.row,
                   .c = dq + queries.begin * at.row,
                   .c_row = at.row});
            sgemm({.m = keys,  // dk += ds^T q
                   .n = at.size,
                   .k = queries.count,
                   .a_is = transposed::yes,
                   .a = dp,
                   .a_row = keys,
                   .b = q,
                   .b_row = at.row,
                   .beta = beta,
                   .c = dq + at.width,
                   .c_row = at.row});
            sgemm({.m = keys,  // dv += p^T dout
                   .n = at.size,
                   .k = queries.count,
                   .a_is = transposed::yes,
                   .a = p,
                   .a_row = keys,
                   .b = dout,
                   .b_row = a.width,
                   .beta = beta,
                   .c = dq + 2 * at.width,
                   .c_row = at.row});
        }
    });
}

}  // namespace rheo::inline v0::host
