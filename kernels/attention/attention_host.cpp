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
    std::int64_t whole;  // tokens of the sequence, of which some are the item's
    std::int64_t first;  // the first of them
    std::int64_t size;   // of a head
    std::int64_t row;    // elements from row to row of qkv
    std::int64_t query;  // first element of q in qkv
    std::int64_t key;    // of k; v follows at kv_width
    std::int64_t kv_width;
    std::int64_t output;    // first element within [rows, width]
    std::int64_t pair;      // of k within [rows, 2 kv_width], keys and values of another slice
    std::int64_t number;    // b * heads + h
    std::int64_t in_model;  // the same among the heads of the model

    std::int64_t element(std::int64_t i) const { return (in_model * whole + first + i) * whole; }
};

template <class Arguments>
head head_of(Arguments const& a, std::int64_t number)
{
    qkv_row const row{a};
    std::int64_t const b = number / a.heads;
    std::int64_t const h = number % a.heads;
    return {.whole = a.whole == 0 ? a.length : a.whole,
            .first = a.before.count * a.length,
            .size = row.head_width,
            .row = row.floats(),
            .query = b * a.length * row.floats() + row.query(h),
            .key = b * a.length * row.floats() + row.key(h),
            .kv_width = row.kv_width,
            .output = b * a.length * a.width + row.query(h),
            .pair = b * a.length * 2 * row.kv_width + row.pair(h),
            .number = number,
            .in_model = head_in_model(a, b, h)};
}

/// Rows of one head in a matrix that holds more: from one to the next it is `row` elements.
template <class Float>
struct head_rows {
    Float* first;
    std::int64_t row;
};

/// A block of queries with keys of one slice that its last one sees: the sizes of its three products.
struct query_keys {
    std::int64_t queries;
    std::int64_t keys;
    std::int64_t size;  // of a head
    std::int64_t seen;  // keys of all slices: from row to row of the scores
};

/// scores [queries, keys] = left [queries, size] right [keys, size]^T
void scores_of(query_keys const& n, head_rows<float const> left, head_rows<float const> right, float* scores)
{
    sgemm({.m = n.queries,
           .n = n.keys,
           .k = n.size,
           .b_is = transposed::yes,
           .a = left.first,
           .a_row = left.row,
           .b = right.first,
           .b_row = right.row,
           .c = scores,
           .c_row = n.seen});
}

/// out [queries, size] = beta out + weights [queries, keys] rows [keys, size]
void sum_over_keys(query_keys const& n, float const* weights, head_rows<float const> rows, float beta, head_rows<float> out)
{
    sgemm({.m = n.queries,
           .n = n.size,
           .k = n.keys,
           .a = weights,
           .a_row = n.seen,
           .b = rows.first,
           .b_row = rows.row,
           .beta = beta,
           .c = out.first,
           .c_row = out.row});
}

/// out [keys, size] = beta out + weights [queries, keys]^T rows [queries, size]
void sum_over_queries(query_keys const& n, float const* weights, head_rows<float const> rows, float beta, head_rows<float> out)
{
    sgemm({.m = n.keys,
           .n = n.size,
           .k = n.queries,
           .a_is = transposed::yes,
           .a = weights,
           .a_row = n.seen,
           .b = rows.first,
           .b_row = rows.row,
           .beta = beta,
           .c = out.first,
           .c_row = out.row});
}

void zero(float* begin, float* end) { std::memset(begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float)); }

float scale_of(std::int64_t size) { return 1.0F / std::sqrt(static_cast<float>(size)); }

/// Calls f(keys of the slice, the slice's first key of the head, place of its keys in a row of scores, slice) for the slices before and then
/// for the item's own, of which the block sees `own` keys.
template <class Arguments, class F>
void for_slices(Arguments const& a, head const& at, element_range queries, F&& f)
{
    auto const own = queries.begin + queries.count;
    auto const seen = at.first + own;
    for (std::int64_t s = 0; s < a.before.count; ++s) {
        f(query_keys{queries.count, a.length, at.size, seen}, a.before.of[static_cast<std::size_t>(s)] + at.key, s * a.length, s);
    }
    f(query_keys{queries.count, own, at.size, seen}, a.qkv + at.key, at.first, a.before.count);
}

template <class Arguments>
void expect_slices(Arguments const& a)
{
    expects(a.heads >= 1 && a.width % a.heads == 0, "the width of attention is a multiple of its heads");
    expects(a.kv_heads >= 0 && (a.kv_heads == 0 || a.heads % a.kv_heads == 0), "heads of keys and values divide those of queries");
    expects(heads_in_model(a), "the heads of an attention are among those of the model");
    expects(a.before.count == 0 || (a.before.count + 1) * a.length <= a.whole, "slices of a sequence lie within it");
}

/// The gradients of one head; keys and values of its group are written by the first of them and added to by the others.
void backward_of(tile_pool& pool, int worker, attention_backward_arguments<> const& a, dropping const& drop, head const& at, bool first_of_group)
{
    float const scale = scale_of(at.size);
    float* const p = pool.scratch_of<float>(worker, query_block * (at.first + a.length), product_slot);
    float* const dp = pool.scratch_of<float>(worker, query_block * (at.first + a.length), second_product_slot);
    float* const key_gradient = a.qkv_gradient + at.key;
    bool const later = a.kv_gradient_later != nullptr;
    for (std::int64_t r = 0; r < a.length && later && first_of_group; ++r) {  // take over what the slices behind have added
        float const* const from = a.kv_gradient_later + at.pair + r * 2 * at.kv_width;
        std::memcpy(key_gradient + r * at.row, from, static_cast<std::size_t>(at.size) * sizeof(float));
        std::memcpy(key_gradient + r * at.row + at.kv_width, from + at.kv_width, static_cast<std::size_t>(at.size) * sizeof(float));
    }
    // blocks from the last to the first: the last one sees all keys and so, of the first head, writes dk and dv instead of adding
    std::int64_t const last_block = tiles_in(a.length, query_block) - 1;
    for (std::int64_t block = last_block; block >= 0; --block) {
        auto const queries = range_of(block, query_block, a.length);
        std::int64_t const keys = at.first + queries.begin + queries.count;
        float const beta = block == last_block && !later && first_of_group ? 0.0F : 1.0F;
        head_rows<float const> const q{a.qkv + at.query + queries.begin * at.row, at.row};
        head_rows<float const> const dout{a.output_gradient + at.output + queries.begin * a.width, a.width};
        for_slices(a, at, queries, [&](query_keys const& n, float const* keys_at, std::int64_t place, std::int64_t) {
            scores_of(n, q, {keys_at, at.row}, p + place);
            scores_of(n, dout, {keys_at + at.kv_width, at.row}, dp + place);
        });
        for (std::int64_t i = 0; i < queries.count; ++i) {
            float* const row = p + i * keys;
            float* const dp_row = dp + i * keys;
            std::int64_t const query = queries.begin + i;
            std::int64_t const seen = at.first + query + 1;
            loops().probabilities(seen, scale, a.log_sum_exp[at.number * a.length + query], row);
            float const mean = loops().dot(at.size, dout.first + i * dout.row, a.output + at.output + query * a.width);
            if (drop.active()) {
                auto const rule = drop.rule(pool, worker, at.element(query), seen);
                loops().drop(seen, dp_row, rule, dp_row);
                loops().score_gradient(seen, row, mean, scale, dp_row);
                loops().drop(seen, row, rule, row);
            } else {
                loops().score_gradient(seen, row, mean, scale, dp_row);
            }
            zero(row + seen, row + keys);
            zero(dp_row + seen, dp_row + keys);
        }
        // dp has become ds; p is what the values were weighted with
        for_slices(a, at, queries, [&](query_keys const& n, float const* keys_at, std::int64_t place, std::int64_t slice) {
            bool const own = slice == a.before.count;
            float* const keys_of = own ? key_gradient : a.kv_gradient_before.of[static_cast<std::size_t>(slice)] + at.pair;
            std::int64_t const step = own ? at.row : 2 * at.kv_width;
            sum_over_keys(n, dp + place, {keys_at, at.row}, slice == 0 ? 0.0F : 1.0F, {a.qkv_gradient + at.query + queries.begin * at.row, at.row});
            sum_over_queries(n, dp + place, q, beta, {keys_of, step});
            sum_over_queries(n, p + place, dout, beta, {keys_of + at.kv_width, step});
        });
    }
}

}  // namespace

void attention_forward(tile_pool& pool, attention_forward_arguments<> const& a)
{
    expect_slices(a);
    dropping const drop{a.drop};
    std::int64_t const blocks = tiles_in(a.length, query_block);
    pool.run(a.batch * a.heads * blocks, [&](std::int64_t t, int worker) {
        auto const at = head_of(a, t / blocks);
        auto const queries = range_of(t % blocks, query_block, a.length);
        std::int64_t const keys = at.first + queries.begin + queries.count;
        float const* const q = a.qkv + at.query + queries.begin * at.row;
        float* const p = pool.scratch_of<float>(worker, query_block * (at.first + a.length), product_slot);
        for_slices(a, at, queries, [&](query_keys const& n, float const* keys_at, std::int64_t place, std::int64_t) {
            scores_of(n, {q, at.row}, {keys_at, at.row}, p + place);
        });
        for (std::int64_t i = 0; i < queries.count; ++i) {
            float* const row = p + i * keys;
            std::int64_t const seen = at.first + queries.begin + i + 1;
            a.log_sum_exp[at.number * a.length + queries.begin + i] = loops().softmax(seen, scale_of(at.size), row);
            if (drop.active()) {
                loops().drop(seen, row, drop.rule(pool, worker, at.element(queries.begin + i), seen), row);
            }
            zero(row + seen, row + keys);
        }
        for_slices(a, at, queries, [&](query_keys const& n, float const* keys_at, std::int64_t place, std::int64_t slice) {
            sum_over_keys(n, p + place, {keys_at + at.kv_width, at.row}, slice == 0 ? 0.0F : 1.0F, {a.output + at.output + queries.begin * a.width, a.width});
        });
    });
}

void attention_backward(tile_pool& pool, attention_backward_arguments<> const& a)
{
    expect_slices(a);
    expects(a.kv_gradient_before.count == a.before.count, "each slice before has gradients of its keys and values");
    dropping const drop{a.drop};
    std::int64_t const group = qkv_row{a}.group;
    // The heads of a group add to the same keys and values, so one thread has them all, one after the other.
    pool.run(a.batch * a.heads / group, [&](std::int64_t t, int worker) {
        for (std::int64_t member = 0; member < group; ++member) {
            backward_of(pool, worker, a, drop, head_of(a, t * group + member), member == 0);
        }
    });
}

}  // namespace rheo::inline v0::host
