// SPDX-License-Identifier: Apache-2.0
// Products and attention with independent rows: a row has the bits that it has alone, and those of the definition within rounding.
#include <utility>

#include "kernels/attention/cached_attention.hpp"
#include "kernels/detail/loops.hpp"
#include "kernels/linear/linear.hpp"
#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

floats slice_of(floats const& all, std::int64_t begin, std::int64_t count) { return {all.begin() + begin, all.begin() + begin + count}; }

/// x W + b of all rows, or of some of them.
floats product(std::int64_t rows, std::int64_t in, std::int64_t out, weight_order order, floats const& x, floats const& w, floats const& bias, int threads,
               floats* activated = nullptr)
{
    tile_pool pool{threads};
    auto y = poison(rows * out);
    linear_forward_arguments<> arguments{.rows = rows, .in = in, .out = out, .order = order, .input = x.data(), .weight = w.data(), .output = y.data()};
    arguments.bias = bias.empty() ? nullptr : bias.data();
    if (activated != nullptr) {
        *activated = poison(rows * out);
        arguments.activated = activated->data();
    }
    host::linear_forward_in_rows(pool, arguments);
    return y;
}

}  // namespace

TEST_CASE("in_rows: a product's row has its own bits")
{
    for (auto const order : {weight_order::in_out, weight_order::out_in}) {
        for (auto const& [in, out] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {16, 32}, {37, 45}, {150, 300}, {33, 129}}) {
            std::int64_t const rows = 71;
            CAPTURE(in, out, static_cast<int>(order));
            auto const x = normal(rows * in, 1);
            auto const w = normal(in * out, 2);
            auto const bias = normal(out, 3);
            auto const all = product(rows, in, out, order, x, w, bias, 1);
            CHECK(bits(product(rows, in, out, order, x, w, bias, 3)) == bits(all));
            for (std::int64_t const some : {1, 2, 3, 4, 5, 64, 70}) {
                for (std::int64_t const first : {std::int64_t{0}, rows - some}) {
                    auto const part = product(some, in, out, order, slice_of(x, first * in, some * in), w, bias, 1);
                    CHECK(bits(part) == bits(slice_of(all, first * out, some * out)));
                }
            }
            doubles expected(size(rows * out));
            doubles bound(expected.size());
            for (std::int64_t r = 0; r < rows; ++r) {
                for (std::int64_t c = 0; c < out; ++c) {
                    double sum = bias[size(c)];
                    double magnitude = std::fabs(sum);
                    for (std::int64_t k = 0; k < in; ++k) {
                        auto const term =
                            static_cast<double>(x[size(r * in + k)]) * static_cast<double>(w[size(order == weight_order::in_out ? k * out + c : c * in + k)]);
                        sum += term;
                        magnitude += std::fabs(term);
                    }
                    expected[size(r * out + c)] = sum;
                    bound[size(r * out + c)] = static_cast<double>(in + 2) * u * magnitude;
                }
            }
            check_within(all, expected, bound);
        }
    }
}

TEST_CASE("in_rows: dots are summed as a dot product is")
{
    for (std::int64_t const n : {1, 15, 16, 17, 31, 32, 48, 50, 64, 100}) {
        auto const x = normal(3 * n, 10);
        auto const w = normal(5 * n, 11);
        auto const y = product(3, n, 5, weight_order::out_in, x, w, {}, 1);
        for (std::int64_t r = 0; r < 3; ++r) {
            for (std::int64_t c = 0; c < 5; ++c) {
                CHECK(y[size(r * 5 + c)] == detail::loops().dot(n, x.data() + r * n, w.data() + c * n));
            }
        }
    }
}

TEST_CASE("in_rows: bias, activation and outputs that lie apart")
{
    auto const x = normal(5 * 20, 4);
    auto const w = normal(20 * 24, 5);
    auto const bias = normal(24, 6);
    floats activated;
    auto const with = product(5, 20, 24, weight_order::in_out, x, w, bias, 1, &activated);
    CHECK(bits(with) == bits(product(5, 20, 24, weight_order::in_out, x, w, bias, 1)));
    tile_pool pool{1};
    auto gelu = poison(5 * 24);
    host::gelu_forward(pool, {.count = 5 * 24, .input = with.data(), .output = gelu.data()});
    CHECK(bits(activated) == bits(gelu));
    auto apart = floats(size(5 * 30), 7.0F);
    host::linear_forward_in_rows(
        pool, {.rows = 5, .in = 20, .out = 24, .input = x.data(), .weight = w.data(), .bias = bias.data(), .output = apart.data(), .output_row = 30});
    for (std::int64_t r = 0; r < 5; ++r) {
        CHECK(bits(slice_of(apart, r * 30, 24)) == bits(slice_of(with, r * 24, 24)));
        CHECK(slice_of(apart, r * 30 + 24, 6) == floats(6, 7.0F));
    }
}

TEST_CASE("in_rows: cached attention is the definition's")
{
    for (auto const& [heads, kv_heads, head] : {std::array<std::int64_t, 3>{3, 3, 8}, {4, 2, 10}, {6, 1, 16}}) {
        std::int64_t const tokens = 43;
        std::int64_t const width = heads * head;
        std::int64_t const both = 2 * kv_heads * head;
        CAPTURE(heads, kv_heads, head);
        auto const qkv = normal(tokens * (width + both), 7);
        floats cache(size(tokens * both));
        for (std::int64_t t = 0; t < tokens; ++t) {
            std::copy_n(qkv.begin() + t * (width + both) + width, both, cache.begin() + t * both);
        }
        auto const attend = [&](std::int64_t first, std::int64_t rows, int threads) {
            tile_pool pool{threads};
            auto out = poison(rows * width);
            host::cached_attention(pool, {.rows = rows,
                                          .first = first,
                                          .width = width,
                                          .heads = heads,
                                          .kv_heads = kv_heads,
                                          .qkv = qkv.data() + first * (width + both),
                                          .keys_and_values = cache.data(),
                                          .output = out.data()});
            return out;
        };
        auto const all = attend(0, tokens, 1);
        CHECK(bits(attend(0, tokens, 3)) == bits(all));
        for (auto const& [first, rows] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {42, 1}, {5, 7}, {20, 23}}) {
            CHECK(bits(attend(first, rows, 1)) == bits(slice_of(all, first * width, rows * width)));
        }
        auto expected = poison(tokens * width);
        definition::cached_attention<fp32>({.rows = tokens,
                                            .first = 0,
                                            .width = width,
                                            .heads = heads,
                                            .kv_heads = kv_heads,
                                            .qkv = qkv.data(),
                                            .keys_and_values = cache.data(),
                                            .output = expected.data()});
        check_within(all, wide(expected), doubles(all.size(), 4e-5));  // scores up to 20, whose exponentials take their absolute error as a relative one
        // and that of the attention of a training
        auto trained = poison(tokens * width);
        auto log_sums = poison(tokens * heads);
        tile_pool pool{1};
        host::attention_forward(pool, {.batch = 1,
                                       .length = tokens,
                                       .width = width,
                                       .heads = heads,
                                       .kv_heads = kv_heads,
                                       .qkv = qkv.data(),
                                       .output = trained.data(),
                                       .log_sum_exp = log_sums.data()});
        check_within(all, wide(trained), doubles(all.size(), 4e-5));
    }
}
