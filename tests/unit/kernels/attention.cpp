// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention.hpp"

#include <tuple>

#include "attention_reference.hpp"
#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

struct shape {
    std::int64_t batch;
    std::int64_t length;
    std::int64_t width;
    std::int64_t heads;
    std::int64_t kv_heads = 0;
};
// one token, one head, head widths that are no multiple of a vector, several blocks of queries, groups of heads
constexpr shape shapes[] = {{1, 1, 4, 1}, {1, 5, 3, 1}, {2, 17, 30, 3}, {1, 64, 64, 1}, {2, 130, 24, 2}, {1, 9, 30, 3, 1}, {2, 130, 24, 4, 2}};

dropout some_dropout(double p) { return {.probability = p, .key = {.seed = 6, .layer = layer_id{2}, .op = op_id{1}}}; }

}  // namespace

TEST_CASE("attention: gradient is the derivative")
{
    for (shape const s : {shape{2, 5, 6, 2}, shape{2, 5, 8, 4, 2}}) {
        auto qkv = wide(normal(s.batch * s.length * qkv_columns(s), 1));
        auto const dout = wide(normal(s.batch * s.length * s.width, 2));
        for (double const p : {0.0, 0.3}) {
            attention_reference const r{s, qkv, dout, some_dropout(p)};
            check_derivative(qkv, r.gradient, [&] { return dot(attention_reference{s, qkv, dout, some_dropout(p)}.output, dout); });
        }
    }
}

TEST_CASE("attention: host agrees with the definition in double")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        for (double const p : {0.0, 0.2}) {
            INFO(s.batch << " x " << s.length << " x " << s.width << " in " << s.heads << " heads, dropout " << p);
            auto const qkv = normal(s.batch * s.length * qkv_columns(s), 1);
            auto const dout = normal(s.batch * s.length * s.width, 2);
            auto const drop = some_dropout(p);
            attention_reference const r{s, wide(qkv), wide(dout), drop};
            auto out = poison(s.batch * s.length * s.width);
            auto lse = poison(s.batch * s.heads * s.length);
            auto gradient = poison(std::ssize(qkv));
            host::attention_forward(pool, {.batch = s.batch,
                                           .length = s.length,
                                           .width = s.width,
                                           .heads = s.heads,
                                           .kv_heads = s.kv_heads,
                                           .qkv = qkv.data(),
                                           .drop = drop,
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
                                            .drop = drop,
                                            .qkv_gradient = gradient.data()});
            // Values are normal: |v|, |dout| <= 5. A score is off by (d + 2) u |q||k| / sqrt(d) <= (d + 2) u * 5 sqrt(d); with the
            // exponential's 3e-7 and the sum over T keys each probability is off, relatively, by
            double const d = static_cast<double>(s.width / s.heads);
            double const t = static_cast<double>(s.length);
            double const score = (d + 2) * u * 5 * std::sqrt(d);
            double const relative = 2 * score + 4e-7 + (t + 4) * u;
            double const scale = 1 / (1 - p);
            // out is a mean of v with weights that sum to at most `scale`
            check_within(out, r.output, 5 * scale * (relative + (t + 2) * u));
            check_within(lse, r.log_sum_exp, score + 4e-7 + (t + 4) * u + 10 * u);
            // ds = p (dp - mean) / sqrt(d) with |dp|, |mean| <= 25 d scale; dq sums p-weighted terms (at most one in total), dk and dv
            double const change = 25 * d * scale * (relative + (2 * d + 8) * u) / std::sqrt(d) * 2;
            // over up to T queries of each head of the group
            check_within(gradient, r.gradient, heads_in_a_group(s) * (5 * t * change + 5 * scale * t * (relative + t * u)));
        }
    }
}

TEST_CASE("attention: the tolerance is far below an error that matters")
{
    // the same comparison, measured: relative to the largest gradient the host is within 1e-5
    shape const s{2, 130, 24, 2};
    tile_pool pool{1};
    auto const qkv = normal(s.batch * s.length * qkv_columns(s), 1);
    auto const dout = normal(s.batch * s.length * s.width, 2);
    attention_reference const r{s, wide(qkv), wide(dout), some_dropout(0.1)};
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
    double largest = 0;
    for (double const g : r.gradient) {
        largest = std::max(largest, std::fabs(g));
    }
    check_within(out, r.output, 1e-5);
    check_within(gradient, r.gradient, 1e-5 * largest);
}

TEST_CASE("attention: a later token changes no earlier output")
{
    shape const s{1, 70, 16, 2};
    tile_pool pool{2};
    auto qkv = normal(s.length * qkv_columns(s), 1);
    auto lse = poison(s.heads * s.length);
    auto before = poison(s.length * s.width);
    host::attention_forward(pool, {.batch = 1,
                                   .length = s.length,
                                   .width = s.width,
                                   .heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .qkv = qkv.data(),
                                   .output = before.data(),
                                   .log_sum_exp = lse.data()});
    for (std::int64_t c = 0; c < qkv_columns(s); ++c) {
        qkv[size(66 * qkv_columns(s) + c)] += 1.0F;
    }
    auto after = poison(s.length * s.width);
    host::attention_forward(pool, {.batch = 1,
                                   .length = s.length,
                                   .width = s.width,
                                   .heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .qkv = qkv.data(),
                                   .output = after.data(),
                                   .log_sum_exp = lse.data()});
    for (std::int64_t i = 0; i < s.length * s.width; ++i) {
        bool const same = before[size(i)] == after[size(i)];
        if (i < 66 * s.width) {
            CHECK(same);
        } else if (i < 67 * s.width) {
            CHECK_FALSE(same);
        }
    }
}

TEST_CASE("attention: threads change no bit")
{
    for (auto const& s : shapes) {
        for (double const p : {0.0, 0.2}) {
            auto const qkv = normal(s.batch * s.length * qkv_columns(s), 1);
            auto const dout = normal(s.batch * s.length * s.width, 2);
            check_threads_change_no_bit([&](tile_pool& pool) {
                auto out = poison(s.batch * s.length * s.width);
                auto lse = poison(s.batch * s.heads * s.length);
                auto gradient = poison(std::ssize(qkv));
                host::attention_forward(pool, {.batch = s.batch,
                                               .length = s.length,
                                               .width = s.width,
                                               .heads = s.heads,
                                               .kv_heads = s.kv_heads,
                                               .qkv = qkv.data(),
                                               .drop = some_dropout(p),
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
                                                .drop = some_dropout(p),
                                                .qkv_gradient = gradient.data()});
                return std::tuple{bits(out), bits(lse), bits(gradient)};
            });
        }
    }
    tile_pool pool{1};
    CHECK_THROWS_AS(host::attention_forward(pool, {.batch = 1, .length = 1, .width = 5, .heads = 2, .qkv = nullptr, .output = nullptr, .log_sum_exp = nullptr}),
                    precondition_error);
    CHECK_THROWS_AS(host::attention_forward(
                        pool, {.batch = 1, .length = 1, .width = 6, .heads = 3, .kv_heads = 2, .qkv = nullptr, .output = nullptr, .log_sum_exp = nullptr}),
                    precondition_error);
}

TEST_CASE("attention: grouped heads equal repeated heads")
{
    shape const grouped{2, 70, 24, 4, 2};
    shape const full{2, 70, 24, 4};
    tile_pool pool{1};
    auto const qkv = normal(grouped.batch * grouped.length * qkv_columns(grouped), 1);
    floats repeated;
    for (std::int64_t r = 0; r < grouped.batch * grouped.length; ++r) {
        auto const row = qkv.begin() + r * qkv_columns(grouped);
        repeated.insert(repeated.end(), row, row + 24);
        for (std::int64_t const begin : {24, 24, 30, 30, 36, 36, 42, 42}) {
            repeated.insert(repeated.end(), row + begin, row + begin + 6);
        }
    }
    auto const forward = [&](shape const& s, floats const& in) {
        auto out = poison(s.batch * s.length * s.width);
        auto lse = poison(s.batch * s.heads * s.length);
        host::attention_forward(pool, {.batch = s.batch,
                                       .length = s.length,
                                       .width = s.width,
                                       .heads = s.heads,
                                       .kv_heads = s.kv_heads,
                                       .qkv = in.data(),
                                       .drop = some_dropout(0.2),
                                       .output = out.data(),
                                       .log_sum_exp = lse.data()});
        return std::pair{bits(out), bits(lse)};
    };
    CHECK(forward(grouped, qkv) == forward(full, repeated));
}

TEST_CASE("attention: heads alone are those of the model")
{
    // six heads of queries for two of keys and values: the second pair's three alone, whose dropout counts as theirs
    shape const whole{2, 70, 48, 6, 2};
    shape const part{2, 70, 24, 3, 1};
    std::int64_t const rows = whole.batch * whole.length;
    auto const qkv = normal(rows * qkv_columns(whole), 1);
    auto const dout = normal(rows * whole.width, 2);
    auto const drop = some_dropout(0.2);
    attention_reference const r{whole, wide(qkv), wide(dout), drop};
    // columns of q, k, v of the part in a row of the whole
    auto const of_part = [&](std::int64_t column) { return column < 24 ? 24 + column : column < 32 ? 48 + 8 + column - 24 : 48 + 16 + 8 + column - 32; };
    floats own(size(rows * 40)), own_dout(size(rows * 24));
    doubles output(own_dout.size()), gradient(own.size());
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t c = 0; c < 40; ++c) {
            own[size(i * 40 + c)] = qkv[size(i * 80 + of_part(c))];
            gradient[size(i * 40 + c)] = r.gradient[size(i * 80 + of_part(c))];
        }
        for (std::int64_t c = 0; c < 24; ++c) {
            own_dout[size(i * 24 + c)] = dout[size(i * 48 + 24 + c)];
            output[size(i * 24 + c)] = r.output[size(i * 48 + 24 + c)];
        }
    }
    check_threads_change_no_bit([&](tile_pool& pool) {
        auto out = poison(rows * 24);
        auto lse = poison(part.batch * part.heads * part.length);
        auto to_qkv = poison(rows * 40);
        host::attention_forward(pool, {.batch = part.batch,
                                       .length = part.length,
                                       .width = part.width,
                                       .heads = part.heads,
                                       .kv_heads = part.kv_heads,
                                       .qkv = own.data(),
                                       .drop = drop,
                                       .first_head = 3,
                                       .all_heads = 6,
                                       .output = out.data(),
                                       .log_sum_exp = lse.data()});
        host::attention_backward(pool, {.batch = part.batch,
                                        .length = part.length,
                                        .width = part.width,
                                        .heads = part.heads,
                                        .kv_heads = part.kv_heads,
                                        .qkv = own.data(),
                                        .output = out.data(),
                                        .log_sum_exp = lse.data(),
                                        .output_gradient = own_dout.data(),
                                        .drop = drop,
                                        .first_head = 3,
                                        .all_heads = 6,
                                        .qkv_gradient = to_qkv.data()});
        // as above the host is within 1e-5 of the largest gradient; another mask would be off by whole probabilities
        check_within(out, output, 2e-5);
        check_within(to_qkv, gradient, 2e-4);
        return std::pair{bits(out), bits(to_qkv)};
    });
    tile_pool pool{1};
    floats nothing(1);
    for (auto const& [first, all] : {std::pair{4, 6}, std::pair{-1, 6}, std::pair{1, 0}}) {
        CHECK_THROWS_AS(host::attention_forward(pool, {.batch = 1,
                                                       .length = 1,
                                                       .width = 24,
                                                       .heads = 3,
                                                       .qkv = nothing.data(),
                                                       .first_head = first,
                                                       .all_heads = all,
                                                       .output = nothing.data(),
                                                       .log_sum_exp = nothing.data()}),
                        precondition_error);
    }
}
