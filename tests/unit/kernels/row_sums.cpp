// SPDX-License-Identifier: Apache-2.0
// The gradients of parameters into sums of 32 bits, on the host: what sums of 64 bits say at the same scales, whatever the threads, and near the definition in double.
#include <functional>

#include "kernels/embedding/embedding.hpp"
#include "kernels/exact_rows/exact_rows.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/rms_norm/rms_norm.hpp"

#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t in;
    std::int64_t out;
};
// tiles of columns with a shorter last one, of rows with one, and tables with tokens that come twice
constexpr shape shapes[] = {{1, 1, 1}, {3, 7, 65}, {20, 200, 130}, {33, 40, 3100}};

/// Two contributions of each kind, into whatever sums `target` gives.
struct operation {
    char const* name;
    std::int64_t rows, width;  ///< of the tensor
    std::function<void(tile_pool&, gradient_sum_of<dtype::i64>)> in_64;
    std::function<void(tile_pool&, gradient_sum_of<dtype::i32>)> in_32;
};

struct values {
    floats x, dy, mean, rstd;
    int32s ids;
};

template <dtype_policy Policy>
auto call(shape s, values const& v, int which)
{
    return [=, &v](tile_pool& pool, gradient_sum<Policy> to) {
        switch (which) {
        case 0:
            host::linear_backward_weight(
                pool, linear_backward_weight_arguments<Policy>{
                          .rows = s.rows, .in = s.in, .out = s.out, .input = v.x.data(), .output_gradient = v.dy.data(), .weight_gradient = to});
            break;
        case 1:
            host::linear_backward_weight(pool, linear_backward_weight_arguments<Policy>{.rows = s.rows,
                                                                                        .in = s.in,
                                                                                        .out = s.out,
                                                                                        .order = weight_order::out_in,
                                                                                        .input = v.x.data(),
                                                                                        .output_gradient = v.dy.data(),
                                                                                        .weight_gradient = to});
            break;
        case 2:
            host::linear_backward_bias(
                pool, linear_backward_bias_arguments<Policy>{.rows = s.rows, .out = s.out, .output_gradient = v.dy.data(), .bias_gradient = to});
            break;
        case 3:
            host::layer_norm_backward_weight(pool, layer_norm_backward_weight_arguments<Policy>{.rows = s.rows,
                                                                                                .width = s.in,
                                                                                                .input = v.x.data(),
                                                                                                .mean = v.mean.data(),
                                                                                                .rstd = v.rstd.data(),
                                                                                                .output_gradient = v.dy.data(),
                                                                                                .gamma_gradient = to,
                                                                                                .beta_gradient = {}});
            break;
        case 4:
            host::layer_norm_backward_weight(pool, layer_norm_backward_weight_arguments<Policy>{.rows = s.rows,
                                                                                                .width = s.in,
                                                                                                .input = v.x.data(),
                                                                                                .mean = v.mean.data(),
                                                                                                .rstd = v.rstd.data(),
                                                                                                .output_gradient = v.dy.data(),
                                                                                                .gamma_gradient = {},
                                                                                                .beta_gradient = to});
            break;
        case 5:
            host::rms_norm_backward_weight(
                pool, rms_norm_backward_weight_arguments<Policy>{
                          .rows = s.rows, .width = s.in, .input = v.x.data(), .rstd = v.rstd.data(), .output_gradient = v.dy.data(), .gamma_gradient = to});
            break;
        case 6:
            host::embedding_backward_weight(pool, embedding_backward_weight_arguments<Policy>{.batch = 1,
                                                                                              .length = s.rows,
                                                                                              .width = s.in,
                                                                                              .vocabulary = 9,
                                                                                              .tokens = v.ids.data(),
                                                                                              .output_gradient = v.dy.data(),
                                                                                              .drop = {},
                                                                                              .token_gradient = to,
                                                                                              .position_gradient = {}});
            break;
        default:
            host::embedding_backward_weight(pool, embedding_backward_weight_arguments<Policy>{.batch = 1,
                                                                                              .length = s.rows,
                                                                                              .width = s.in,
                                                                                              .vocabulary = 9,
                                                                                              .tokens = v.ids.data(),
                                                                                              .output_gradient = v.dy.data(),
                                                                                              .drop = {},
                                                                                              .token_gradient = {},
                                                                                              .position_gradient = to});
            break;
        }
    };
}

std::vector<operation> operations(shape s, values const& v)
{
    std::vector<operation> all;
    operation const tensors[] = {
        {"weight", s.in, s.out, {}, {}}, {"weight, out in", s.out, s.in, {}, {}},          {"bias", 1, s.out, {}, {}},  {"gamma", 1, s.in, {}, {}},
        {"beta", 1, s.in, {}, {}},       {"gamma of a root mean square", 1, s.in, {}, {}}, {"tokens", 9, s.in, {}, {}}, {"positions", s.rows, s.in, {}, {}}};
    for (int which = 0; which < 8; ++which) {
        auto one = tensors[which];
        one.in_64 = call<fp32>(s, v, which);
        one.in_32 = call<fp32_i32>(s, v, which);
        all.push_back(one);
    }
    return all;
}

values values_of(shape s, bool trouble)
{
    auto const n = s.rows * std::max(s.in, s.out);
    values v{normal(n, 1), normal(n, 2, 50.0F), normal(s.rows, 3, 0.1F), normal(s.rows, 4, 0.1F, 1.0F), tokens(s.rows, 9, 5)};
    if (trouble) {  // an element that reaches the bound of its row, whatever is made of it
        v.dy.front() = 3e30F;
    }
    return v;
}

}  // namespace

TEST_CASE("row sums: 32-bit gradients match 64-bit ones")
{
    for (auto const& s : shapes) {
        for (bool const trouble : {false, true}) {
            auto const v = values_of(s, trouble);
            for (auto const& op : operations(s, v)) {
                INFO(op.name << ", " << s.rows << " rows, " << s.in << " to " << s.out << ", trouble " << trouble);
                row_buffer found{op.rows, op.width, 6};
                check_threads_change_no_bit([&](tile_pool& pool) {
                    found = row_buffer{op.rows, op.width, 6};
                    op.in_32(pool, found.target());
                    op.in_32(pool, found.target());
                    return found;
                });
                tile_pool pool{1};
                check_as_in_64_bits(found, [&](exact_buffer& all) {
                    op.in_64(pool, all.target());
                    op.in_64(pool, all.target());
                });
                bool const any =
                    std::any_of(found.states.begin(), found.states.end(), [&](auto const& state) { return overflowed(state, found.contributions); });
                CHECK(any == trouble);
            }
        }
    }
}

TEST_CASE("row sums: only the row with the NaN is flagged")
{
    shape const s{4, 6, 5};
    auto v = values_of(s, false);
    v.dy[0] = std::numeric_limits<float>::quiet_NaN();
    v.ids = {3, 1, 2, 1};
    tile_pool pool{1};
    row_buffer table{9, s.in}, bias{1, s.out};
    call<fp32_i32>(s, v, 6)(pool, table.target());
    call<fp32_i32>(s, v, 2)(pool, bias.target());
    for (std::size_t r = 0; r < 9; ++r) {
        CHECK(not_finite(table.states[r]) == (r == 3));
    }
    CHECK(not_finite(bias.states.front()));
}

TEST_CASE("row sums: one contribution within rounding and half a unit")
{
    shape const s{20, 24, 30};
    auto const v = values_of(s, false);
    tile_pool pool{2};
    row_buffer found{s.in, s.out, 6};
    call<fp32_i32>(s, v, 0)(pool, found.target());
    doubles const x = wide(v.x), dy = wide(v.dy);
    doubles expected(size(s.in * s.out)), sizes(size(s.in * s.out));
    definition::linear_backward_weight<fp64>(
        {.rows = s.rows, .in = s.in, .out = s.out, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = {expected.data()}});
    doubles const ax = magnitudes(x), ady = magnitudes(dy);
    definition::linear_backward_weight<fp64>(
        {.rows = s.rows, .in = s.in, .out = s.out, .input = ax.data(), .output_gradient = ady.data(), .weight_gradient = {sizes.data()}});
    floats values(found.sums.size());
    host::exact_rows_convert(pool, {.rows = s.in, .source = found.target(), .gradient = values.data()});
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        sizes[i] = (static_cast<double>(s.rows) + 1) * u * sizes[i] + std::ldexp(0.5, -found.states[i / size(s.out)].scale_log2);
    }
    check_within(values, expected, sizes);
}

TEST_CASE("row sums: adding and converting match, in place too")
{
    for (auto const& [rows, width] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 7}, {3, 20000}, {40000, 1}}) {
        INFO(rows << " x " << width);
        auto const g = normal(rows * width, 7, 100.0F);
        row_buffer a{rows, width}, b{rows, width};
        definition::exact_rows_accumulate<float>({.rows = rows, .gradient = g.data(), .target = a.target()});
        definition::exact_rows_accumulate<float>({.rows = rows, .gradient = g.data(), .target = b.target()});
        definition::exact_rows_accumulate<float>({.rows = rows, .gradient = g.data(), .target = b.target()});
        auto expected = b;
        definition::exact_rows_add({.rows = rows, .source = a.sums.data(), .source_states = a.states.data(), .target = expected.target()});
        floats floats_of(a.sums.size());
        definition::exact_rows_convert({.rows = rows, .source = expected.target(), .gradient = floats_of.data()});
        check_threads_change_no_bit([&](tile_pool& pool) {
            auto sum = b;
            host::exact_rows_add(pool, {.rows = rows, .source = a.sums.data(), .source_states = a.states.data(), .target = sum.target()});
            CHECK(sum == expected);
            auto found = poison(rows * width);
            host::exact_rows_convert(pool, {.rows = rows, .source = sum.target(), .gradient = found.data()});
            CHECK(bits(found) == bits(floats_of));
            host::exact_rows_convert(pool, {.rows = rows, .source = sum.target(), .gradient = reinterpret_cast<float*>(sum.sums.data())});
            return sum.sums;
        });
    }
}
