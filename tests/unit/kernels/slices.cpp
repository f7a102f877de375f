// SPDX-License-Identifier: Apache-2.0
// Kernels on slices of sequences: what is done row by row gives the rows of the whole, bit for bit; attention gives the whole within
// a derived bound, with dropout drawn for the whole, and hands the gradients of keys and values from slice to slice.
#include <cmath>
#include <tuple>

#include "attention_reference.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

struct shape {
    std::int64_t batch;
    std::int64_t length;  // of the whole sequence
    std::int64_t width;
    std::int64_t heads;
    std::int64_t slices;
    std::int64_t kv_heads = 0;

    std::int64_t part() const { return length / slices; }
};
// slices of one token, of fewer and of more tokens than a block of queries, head widths that are no multiple of a vector
constexpr shape shapes[] = {{1, 4, 6, 2, 4}, {2, 18, 30, 3, 3}, {2, 140, 24, 2, 2}, {1, 66, 16, 1, 1}, {2, 140, 24, 4, 2, 2}};

dropout some_dropout(double p) { return {.probability = p, .key = {.seed = 6, .layer = layer_id{2}, .op = op_id{1}}}; }

row_part part_of(shape const& s, std::int64_t slice) { return {.length = s.part(), .first = slice * s.part(), .whole = s.length}; }

/// The rows of one slice: [batch, part, columns] of [batch, length, columns].
template <class T>
std::vector<T> cut(shape const& s, std::vector<T> const& whole, std::int64_t columns, std::int64_t slice)
{
    std::vector<T> rows;
    for (std::int64_t r = 0; r < s.batch * s.part(); ++r) {
        auto const from = whole.begin() + part_of(s, slice)(r) * columns;
        rows.insert(rows.end(), from, from + columns);
    }
    return rows;
}

template <class T>
void paste(shape const& s, std::vector<T> const& rows, std::int64_t columns, std::int64_t slice, std::vector<T>& whole)
{
    for (std::int64_t r = 0; r < s.batch * s.part(); ++r) {
        std::copy_n(rows.begin() + r * columns, columns, whole.begin() + part_of(s, slice)(r) * columns);
    }
}

/// Attention of all slices of some policy, put together: forward up, backward down.
template <dtype_policy Policy, class Forward, class Backward>
auto sliced_attention(shape const& s, std::vector<storage_t<Policy>> const& qkv, std::vector<storage_t<Policy>> const& dout, dropout const& drop,
                      storage_t<Policy> const& left_alone, Forward const& forward, Backward const& backward)
{
    using storage = storage_t<Policy>;
    std::vector<std::vector<storage>> in;
    std::vector<std::vector<storage>> out;
    std::vector<std::vector<storage>> lse;
    std::vector<std::vector<storage>> collected;
    earlier_slices<storage const> before;
    earlier_slices<storage> collecting;
    std::vector<storage> output(dout.size());
    std::vector<storage> gradient(qkv.size());
    for (std::int64_t k = 0; k < s.slices; ++k) {
        in.push_back(cut(s, qkv, qkv_columns(s), k));
        out.emplace_back(size(s.batch * s.part() * s.width), left_alone);
        lse.emplace_back(size(s.batch * s.heads * s.part()), left_alone);
        collected.emplace_back(size(s.batch * s.part() * 2 * qkv_row{s}.kv_width), left_alone);
    }
    for (std::int64_t k = 0; k < s.slices; ++k) {
        before.count = k;
        auto const n = size(k);
        forward(attention_forward_arguments<Policy>{.batch = s.batch,
                                                    .length = s.part(),
                                                    .width = s.width,
                                                    .heads = s.heads,
                                                    .kv_heads = s.kv_heads,
                                                    .qkv = in[n].data(),
                                                    .before = before,
                                                    .whole = s.length,
                                                    .drop = drop,
                                                    .output = out[n].data(),
                                                    .log_sum_exp = lse[n].data()});
        if (k + 1 < s.slices) {
            before.of[n] = in[n].data();
            collecting.of[n] = collected[n].data();
        }
        paste(s, out[n], s.width, k, output);
    }
    for (std::int64_t k = s.slices - 1; k >= 0; --k) {
        before.count = collecting.count = k;
        auto const n = size(k);
        auto const dy = cut(s, dout, s.width, k);
        std::vector<storage> own(in[n].size(), left_alone);
        backward(attention_backward_arguments<Policy>{.batch = s.batch,
                                                      .length = s.part(),
                                                      .width = s.width,
                                                      .heads = s.heads,
                                                      .kv_heads = s.kv_heads,
                                                      .qkv = in[n].data(),
                                                      .before = before,
                                                      .whole = s.length,
                                                      .output = out[n].data(),
                                                      .log_sum_exp = lse[n].data(),
                                                      .output_gradient = dy.data(),
                                                      .drop = drop,
                                                      .qkv_gradient = own.data(),
                                                      .kv_gradient_later = k + 1 < s.slices ? collected[n].data() : nullptr,
                                                      .kv_gradient_before = collecting});
        paste(s, own, qkv_columns(s), k, gradient);
    }
    return std::pair{output, gradient};
}

auto sliced_on_host(tile_pool& pool, shape const& s, floats const& qkv, floats const& dout, dropout const& drop)
{
    return sliced_attention<fp32>(
        s, qkv, dout, drop, std::numeric_limits<float>::quiet_NaN(), [&](auto const& a) { host::attention_forward(pool, a); },
        [&](auto const& a) { host::attention_backward(pool, a); });
}

}  // namespace

static_assert(row_part{}(7) == 7 && row_part{}.is_all() && row_part{.length = 2, .first = 4, .whole = 6}(3) == 11);

TEST_CASE("sliced attention: definition equals the whole sequence")
{
    for (auto const& s : shapes) {
        for (double const p : {0.0, 0.2}) {
            INFO(s.length << " tokens in " << s.slices << " slices, dropout " << p);
            auto const qkv = wide(normal(s.batch * s.length * qkv_columns(s), 1));
            auto const dout = wide(normal(s.batch * s.length * s.width, 2));
            attention_reference const whole{s, qkv, dout, some_dropout(p)};
            auto const [output, gradient] = sliced_attention<fp64>(
                s, qkv, dout, some_dropout(p), std::numeric_limits<double>::quiet_NaN(), [](auto const& a) { definition::attention_forward<fp64>(a); },
                [](auto const& a) { definition::attention_backward<fp64>(a); });
            for (std::size_t i = 0; i < output.size(); ++i) {
                REQUIRE(output[i] == whole.output[i]);  // the same sums in the same order
            }
            double largest = 0;
            for (std::size_t i = 0; i < gradient.size(); ++i) {
                largest = std::max(largest, std::fabs(gradient[i] - whole.gradient[i]));
            }
            CHECK(largest <= 1e-11);  // sums of at most 140 terms of order one in another order
        }
    }
}

TEST_CASE("sliced attention: host matches double")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        for (double const p : {0.0, 0.2}) {
            INFO(s.length << " tokens in " << s.slices << " slices, dropout " << p);
            auto const qkv = normal(s.batch * s.length * qkv_columns(s), 1);
            auto const dout = normal(s.batch * s.length * s.width, 2);
            attention_reference const r{s, wide(qkv), wide(dout), some_dropout(p)};
            auto const [output, gradient] = sliced_on_host(pool, s, qkv, dout, some_dropout(p));
            // the bounds of the whole sequence (attention.cpp), whose sums have as many terms; per slice there is one rounding more
            double const d = static_cast<double>(s.width / s.heads);
            double const t = static_cast<double>(s.length + s.slices);
            double const score = (d + 2) * u * 5 * std::sqrt(d);
            double const relative = 2 * score + 4e-7 + (t + 4) * u;
            double const scale = 1 / (1 - p);
            check_within(output, r.output, 5 * scale * (relative + (t + 2) * u));
            double const change = 25 * d * scale * (relative + (2 * d + 8) * u) / std::sqrt(d) * 2;
            check_within(gradient, r.gradient, heads_in_a_group(s) * (5 * t * change + 5 * scale * t * (relative + t * u)));
            double largest = 0;
            for (double const g : r.gradient) {
                largest = std::max(largest, std::fabs(g));
            }
            check_within(gradient, r.gradient, 1e-5 * largest);  // measured: far below an error that matters
        }
    }
}

TEST_CASE("sliced attention: one slice is the whole; threads agree")
{
    for (auto const& s : shapes) {
        auto const qkv = normal(s.batch * s.length * qkv_columns(s), 1);
        auto const dout = normal(s.batch * s.length * s.width, 2);
        check_threads_change_no_bit([&](tile_pool& pool) {
            auto const [output, gradient] = sliced_on_host(pool, s, qkv, dout, some_dropout(0.2));
            return std::tuple{bits(output), bits(gradient)};
        });
    }
    shape const s{2, 130, 24, 2, 1};
    tile_pool pool{1};
    auto const qkv = normal(s.batch * s.length * qkv_columns(s), 1);
    auto const dout = normal(s.batch * s.length * s.width, 2);
    auto out = poison(s.batch * s.length * s.width);
    auto lse = poison(s.batch * s.heads * s.length);
    auto gradient = poison(std::ssize(qkv));
    host::attention_forward(pool, {.batch = s.batch,
                                   .length = s.length,
                                   .width = s.width,
                                   .heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .qkv = qkv.data(),
                                   .drop = some_dropout(0.1),
                                   .output = out.data(),
                                   .log_sum_exp = lse.data()});
    host::attention_backward(pool, {.batch = s.batch,
                                    .length = s.length,
                                    .width = s.width,
                                    .heads = s.heads,
                                    .kv_heads = s.kv_heads,
                                    .qkv = qkv.data(),
                                    .output = out.data(),
                                    .log_sum_exp = lse.data(),
                                    .output_gradient = dout.data(),
                                    .drop = some_dropout(0.1),
                                    .qkv_gradient = gradient.data()});
    auto const [sliced_out, sliced_gradient] = sliced_on_host(pool, s, qkv, dout, some_dropout(0.1));
    CHECK(bits(out) == bits(sliced_out));
    CHECK(bits(gradient) == bits(sliced_gradient));
    earlier_slices<float const> const one{.count = 1};
    CHECK_THROWS_AS(
        host::attention_forward(
            pool, {.batch = 1, .length = 4, .width = 4, .heads = 2, .qkv = nullptr, .before = one, .whole = 6, .output = nullptr, .log_sum_exp = nullptr}),
        precondition_error);
}

TEST_CASE("slices: embedding and residual have the bits of the whole")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        auto const rows = s.batch * s.length;
        auto const n = rows * s.width;
        std::int32_t const vocabulary = 11;
        auto const ids = tokens(rows, vocabulary, 7);
        auto const table = normal(vocabulary * s.width, 1);
        auto const positions = normal(s.length * s.width, 2);
        auto const stream = normal(n, 3);
        auto const branch = normal(n, 4);
        auto const gamma = normal(s.width, 5);
        auto const whole = some_dropout(0.3);
        floats embedded = poison(n), added = poison(n), dropped = poison(n), joined = poison(n), normed = poison(n), mean = poison(rows), rstd = poison(rows);
        floats stream_gradient = poison(n), branch_gradient = poison(n);
        host::embedding_forward(pool, {.batch = s.batch,
                                       .length = s.length,
                                       .width = s.width,
                                       .vocabulary = vocabulary,
                                       .tokens = ids.data(),
                                       .token_table = table.data(),
                                       .position_table = positions.data(),
                                       .drop = whole,
                                       .output = embedded.data()});
        host::residual_add_forward(pool,
                                   {.rows = rows, .width = s.width, .stream = stream.data(), .branch = branch.data(), .drop = whole, .output = added.data()});
        host::residual_add_backward(pool, {.rows = rows, .width = s.width, .output_gradient = stream.data(), .drop = whole, .branch_gradient = dropped.data()});
        host::residual_norm_forward(pool, {.rows = rows,
                                           .width = s.width,
                                           .stream = stream.data(),
                                           .branch = branch.data(),
                                           .drop = whole,
                                           .gamma = gamma.data(),
                                           .beta = gamma.data(),
                                           .residual = joined.data(),
                                           .output = normed.data(),
                                           .mean = mean.data(),
                                           .rstd = rstd.data()});
        host::residual_norm_backward(pool, {.rows = rows,
                                            .width = s.width,
                                            .residual = joined.data(),
                                            .gamma = gamma.data(),
                                            .mean = mean.data(),
                                            .rstd = rstd.data(),
                                            .output_gradient = branch.data(),
                                            .drop = whole,
                                            .stream_gradient = stream_gradient.data(),
                                            .branch_gradient = branch_gradient.data()});
        for (std::int64_t k = 0; k < s.slices; ++k) {
            auto drop = whole;
            drop.rows = part_of(s, k);
            auto const here = s.batch * s.part();
            auto const own = [&](floats const& of) { return cut(s, of, s.width, k); };
            auto const own_ids = cut(s, ids, 1, k);
            auto out = poison(here * s.width);
            auto second = poison(here * s.width);
            auto m = poison(here);
            auto d = poison(here);
            host::embedding_forward(pool, {.batch = s.batch,
                                           .length = s.part(),
                                           .first = k * s.part(),
                                           .width = s.width,
                                           .vocabulary = vocabulary,
                                           .tokens = own_ids.data(),
                                           .token_table = table.data(),
                                           .position_table = positions.data(),
                                           .drop = drop,
                                           .output = out.data()});
            CHECK(bits(out) == bits(own(embedded)));
            definition::embedding_forward<fp32>({.batch = s.batch,
                                                 .length = s.part(),
                                                 .first = k * s.part(),
                                                 .width = s.width,
                                                 .vocabulary = vocabulary,
                                                 .tokens = own_ids.data(),
                                                 .token_table = table.data(),
                                                 .position_table = positions.data(),
                                                 .drop = drop,
                                                 .output = out.data()});
            CHECK(bits(out) == bits(own(embedded)));
            host::residual_add_forward(
                pool, {.rows = here, .width = s.width, .stream = own(stream).data(), .branch = own(branch).data(), .drop = drop, .output = out.data()});
            CHECK(bits(out) == bits(own(added)));
            definition::residual_add_forward<fp32>(
                {.rows = here, .width = s.width, .stream = own(stream).data(), .branch = own(branch).data(), .drop = drop, .output = out.data()});
            CHECK(bits(out) == bits(own(added)));
            host::residual_add_backward(pool,
                                        {.rows = here, .width = s.width, .output_gradient = own(stream).data(), .drop = drop, .branch_gradient = out.data()});
            CHECK(bits(out) == bits(own(dropped)));
            host::residual_norm_forward(pool, {.rows = here,
                                               .width = s.width,
                                               .stream = own(stream).data(),
                                               .branch = own(branch).data(),
                                               .drop = drop,
                                               .gamma = gamma.data(),
                                               .beta = gamma.data(),
                                               .residual = out.data(),
                                               .output = second.data(),
                                               .mean = m.data(),
                                               .rstd = d.data()});
            CHECK(bits(out) == bits(own(joined)));
            CHECK(bits(second) == bits(own(normed)));
            host::residual_norm_backward(pool, {.rows = here,
                                                .width = s.width,
                                                .residual = own(joined).data(),
                                                .gamma = gamma.data(),
                                                .mean = m.data(),
                                                .rstd = d.data(),
                                                .output_gradient = own(branch).data(),
                                                .drop = drop,
                                                .stream_gradient = out.data(),
                                                .branch_gradient = second.data()});
            CHECK(bits(out) == bits(own(stream_gradient)));
            CHECK(bits(second) == bits(own(branch_gradient)));
        }
    }
}

TEST_CASE("slices: embedding gradients add up to the whole")
{
    for (auto const& s : shapes) {
        auto const rows = s.batch * s.length;
        std::int32_t const vocabulary = 5;
        auto const ids = tokens(rows, vocabulary, 7);
        auto const dy = wide(normal(rows * s.width, 3));
        doubles dtable(size(vocabulary * s.width)), dpositions(size(s.length * s.width)), part_table = dtable, part_positions = dpositions;
        definition::embedding_backward_weight<fp64>({.batch = s.batch,
                                                     .length = s.length,
                                                     .width = s.width,
                                                     .vocabulary = vocabulary,
                                                     .tokens = ids.data(),
                                                     .output_gradient = dy.data(),
                                                     .drop = some_dropout(0.3),
                                                     .token_gradient = {dtable.data()},
                                                     .position_gradient = {dpositions.data()}});
        exact_buffer host_table{vocabulary * s.width}, host_positions{s.length * s.width};
        tile_pool pool{2};
        for (std::int64_t k = 0; k < s.slices; ++k) {
            auto drop = some_dropout(0.3);
            drop.rows = part_of(s, k);
            auto const own_ids = cut(s, ids, 1, k);
            auto const own = cut(s, dy, s.width, k);
            floats const narrow(own.begin(), own.end());
            definition::embedding_backward_weight<fp64>({.batch = s.batch,
                                                         .length = s.part(),
                                                         .first = k * s.part(),
                                                         .width = s.width,
                                                         .vocabulary = vocabulary,
                                                         .tokens = own_ids.data(),
                                                         .output_gradient = own.data(),
                                                         .drop = drop,
                                                         .token_gradient = {part_table.data()},
                                                         .position_gradient = {part_positions.data()}});
            host::embedding_backward_weight(pool, {.batch = s.batch,
                                                   .length = s.part(),
                                                   .first = k * s.part(),
                                                   .width = s.width,
                                                   .vocabulary = vocabulary,
                                                   .tokens = own_ids.data(),
                                                   .output_gradient = narrow.data(),
                                                   .drop = drop,
                                                   .token_gradient = host_table.target(),
                                                   .position_gradient = host_positions.target()});
        }
        double const fixed = static_cast<double>(s.slices) * fixed_error(host_table);
        for (std::size_t i = 0; i < dtable.size(); ++i) {
            REQUIRE(std::fabs(part_table[i] - dtable[i]) <= 1e-12);
            REQUIRE(std::fabs(static_cast<double>(host_table.values()[i]) - dtable[i]) <= 5e-4 + fixed);  // at most 280 terms below 8
        }
        for (std::size_t i = 0; i < dpositions.size(); ++i) {
            REQUIRE(std::fabs(part_positions[i] - dpositions[i]) <= 1e-12);
            REQUIRE(std::fabs(static_cast<double>(host_positions.values()[i]) - dpositions[i]) <= 1e-5 + fixed);
        }
    }
}
