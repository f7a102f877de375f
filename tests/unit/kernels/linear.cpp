// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear/linear.hpp"

#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t in;
    std::int64_t out;
};

// one row, widths that are no multiple of a vector, more than one tile each way of every grid
constexpr shape shapes[] = {{1, 1, 1}, {1, 5, 7}, {3, 17, 33}, {64, 48, 100}, {300, 65, 401}, {20, 400, 790}, {2, 200, 3100}};

linear_forward_arguments<> forward_of(shape s, weight_order order, floats const& x, floats const& w, floats const& b)
{
    return {.rows = s.rows, .in = s.in, .out = s.out, .order = order, .input = x.data(), .weight = w.data(), .bias = b.data(), .output = nullptr};
}

}  // namespace

TEST_CASE("linear: gradients are the derivatives")
{
    std::int64_t const rows = 3;
    std::int64_t const in = 4;
    std::int64_t const out = 5;
    for (auto const order : {weight_order::in_out, weight_order::out_in}) {
        auto x = wide(normal(rows * in, 1));
        auto w = wide(normal(in * out, 2));
        auto b = wide(normal(out, 3));
        auto const dy = wide(normal(rows * out, 4));
        doubles y(size(rows * out));
        auto const loss = [&] {
            definition::linear_forward<fp64>(
                {.rows = rows, .in = in, .out = out, .order = order, .input = x.data(), .weight = w.data(), .bias = b.data(), .output = y.data()});
            return dot(y, dy);
        };
        doubles dx(x.size());
        definition::linear_backward_input<fp64>(
            {.rows = rows, .in = in, .out = out, .order = order, .weight = w.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
        check_derivative(x, dx, loss);
        doubles dw(w.size());
        definition::linear_backward_weight<fp64>(
            {.rows = rows, .in = in, .out = out, .order = order, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = {dw.data()}});
        check_derivative(w, dw, loss);
        doubles db(b.size());
        definition::linear_backward_bias<fp64>({.rows = rows, .out = out, .output_gradient = dy.data(), .bias_gradient = {db.data()}});
        check_derivative(b, db, loss);
    }
}

TEST_CASE("linear: host forward agrees with the definition in double")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        for (auto const order : {weight_order::in_out, weight_order::out_in}) {
            INFO(s.rows << " x " << s.in << " x " << s.out << ", order " << static_cast<int>(order));
            auto const x = normal(s.rows * s.in, 1);
            auto const w = normal(s.in * s.out, 2);
            auto const b = normal(s.out, 3);
            auto const xd = wide(x);
            auto const wd = wide(w);
            auto const bd = wide(b);
            doubles expected(size(s.rows * s.out));
            doubles activated(expected.size());
            linear_forward_arguments<fp64> reference{.rows = s.rows,
                                                     .in = s.in,
                                                     .out = s.out,
                                                     .order = order,
                                                     .input = xd.data(),
                                                     .weight = wd.data(),
                                                     .bias = bd.data(),
                                                     .output = expected.data(),
                                                     .activated = activated.data()};
            definition::linear_forward(reference);
            // |error| <= (in + 1) u (sum |x w| + |b|): in products and sums, one more for the bias (Higham, chapter 3)
            doubles bound(expected.size());
            auto const xa = magnitudes(xd);
            auto const wa = magnitudes(wd);
            auto const ba = magnitudes(bd);
            definition::linear_forward<fp64>(
                {.rows = s.rows, .in = s.in, .out = s.out, .order = order, .input = xa.data(), .weight = wa.data(), .bias = ba.data(), .output = bound.data()});
            for (auto& e : bound) {
                e *= static_cast<double>(s.in + 2) * u;
            }
            auto y = poison(s.rows * s.out);
            auto arguments = forward_of(s, order, x, w, b);
            arguments.output = y.data();
            host::linear_forward(pool, arguments);
            check_within(y, expected, bound);

            // fused GELU: the pre-activation is that of the unfused product, bit for bit, and so is the activation
            auto pre = poison(s.rows * s.out);
            auto fused = poison(s.rows * s.out);
            arguments.output = pre.data();
            arguments.activated = fused.data();
            host::linear_forward(pool, arguments);
            CHECK(bits(pre) == bits(y));
            auto alone = poison(s.rows * s.out);
            host::gelu_forward(pool, {.count = s.rows * s.out, .input = y.data(), .output = alone.data()});
            CHECK(bits(fused) == bits(alone));
            // |gelu'| < 1.13 passes the error of the pre-activation on; gelu itself adds 1e-6 |x| (see tests/unit/kernels/gelu.cpp)
            for (std::size_t i = 0; i < bound.size(); ++i) {
                bound[i] = 1.13 * bound[i] + 1e-6 * std::fabs(expected[i]);
            }
            check_within(fused, activated, bound);

            arguments = forward_of(s, order, x, w, b);
            arguments.bias = nullptr;
            arguments.output = y.data();
            reference.bias = nullptr;
            reference.activated = nullptr;
            definition::linear_forward(reference);
            host::linear_forward(pool, arguments);
            for (std::size_t i = 0; i < bound.size(); ++i) {
                bound[i] += 1e-30;
            }
            check_within(y, expected, bound);
        }
    }
}

TEST_CASE("linear: host gradients agree with the definition in double")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        for (auto const order : {weight_order::in_out, weight_order::out_in}) {
            INFO(s.rows << " x " << s.in << " x " << s.out << ", order " << static_cast<int>(order));
            auto const x = normal(s.rows * s.in, 1);
            auto const w = normal(s.in * s.out, 2);
            auto const dy = normal(s.rows * s.out, 3);
            auto const old = normal(s.rows * s.in, 4);
            auto const xd = wide(x);
            auto const wd = wide(w);
            auto const dyd = wide(dy);
            auto const wa = magnitudes(wd);
            auto const xa = magnitudes(xd);
            auto const dya = magnitudes(dyd);
            for (bool const accumulate : {false, true}) {
                auto expected = wide(old);
                auto bound = magnitudes(expected);
                definition::linear_backward_input<fp64>({.rows = s.rows,
                                                         .in = s.in,
                                                         .out = s.out,
                                                         .order = order,
                                                         .weight = wd.data(),
                                                         .output_gradient = dyd.data(),
                                                         .input_gradient = expected.data(),
                                                         .accumulate = accumulate});
                definition::linear_backward_input<fp64>({.rows = s.rows,
                                                         .in = s.in,
                                                         .out = s.out,
                                                         .order = order,
                                                         .weight = wa.data(),
                                                         .output_gradient = dya.data(),
                                                         .input_gradient = bound.data(),
                                                         .accumulate = accumulate});
                for (auto& e : bound) {
                    e *= static_cast<double>(s.out + 2) * u;
                }
                auto dx = accumulate ? old : poison(s.rows * s.in);
                host::linear_backward_input(pool, {.rows = s.rows,
                                                   .in = s.in,
                                                   .out = s.out,
                                                   .order = order,
                                                   .weight = w.data(),
                                                   .output_gradient = dy.data(),
                                                   .input_gradient = dx.data(),
                                                   .accumulate = accumulate});
                check_within(dx, expected, bound);
                if (!accumulate) {  // in one pass back through a GELU, with the bits of two
                    auto both = poison(s.rows * s.in);
                    host::linear_backward_input(pool, {.rows = s.rows,
                                                       .in = s.in,
                                                       .out = s.out,
                                                       .order = order,
                                                       .weight = w.data(),
                                                       .output_gradient = dy.data(),
                                                       .input_gradient = both.data(),
                                                       .pre_activation = old.data()});
                    host::gelu_backward(pool, {.count = s.rows * s.in, .input = old.data(), .output_gradient = dx.data(), .input_gradient = dx.data()});
                    CHECK(bits(both) == bits(dx));
                }
            }
            doubles expected(w.size());
            doubles bound(w.size());
            definition::linear_backward_weight<fp64>({.rows = s.rows,
                                                      .in = s.in,
                                                      .out = s.out,
                                                      .order = order,
                                                      .input = xd.data(),
                                                      .output_gradient = dyd.data(),
                                                      .weight_gradient = {expected.data()}});
            definition::linear_backward_weight<fp64>({.rows = s.rows,
                                                      .in = s.in,
                                                      .out = s.out,
                                                      .order = order,
                                                      .input = xa.data(),
                                                      .output_gradient = dya.data(),
                                                      .weight_gradient = {bound.data()}});
            exact_buffer dw{s.in * s.out};
            host::linear_backward_weight(
                pool,
                {.rows = s.rows, .in = s.in, .out = s.out, .order = order, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = dw.target()});
            for (auto& e : bound) {
                e = e * static_cast<double>(s.rows + 2) * u + fixed_error(dw);
            }
            check_within(dw.values(), expected, bound);
            CHECK_FALSE((dw.state.overflow || dw.state.not_finite));

            doubles bias(size(s.out));
            doubles bias_bound(size(s.out));
            definition::linear_backward_bias<fp64>({.rows = s.rows, .out = s.out, .output_gradient = dyd.data(), .bias_gradient = {bias.data()}});
            definition::linear_backward_bias<fp64>({.rows = s.rows, .out = s.out, .output_gradient = dya.data(), .bias_gradient = {bias_bound.data()}});
            exact_buffer db{s.out};
            host::linear_backward_bias(pool, {.rows = s.rows, .out = s.out, .output_gradient = dy.data(), .bias_gradient = db.target()});
            for (auto& e : bias_bound) {
                e = e * static_cast<double>(s.rows + 1) * u + fixed_error(db);
            }
            check_within(db.values(), bias, bias_bound);
        }
    }
}

TEST_CASE("linear: weight gradients add up exactly")
{
    tile_pool pool{2};
    shape const s{40, 50, 800};
    auto const run = [&](exact_buffer& dw, unsigned seed) {
        auto const x = normal(s.rows * s.in, seed);
        auto const dy = normal(s.rows * s.out, seed + 1);
        host::linear_backward_weight(
            pool, {.rows = s.rows, .in = s.in, .out = s.out, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = dw.target()});
    };
    exact_buffer ab{s.in * s.out};
    run(ab, 10);
    run(ab, 20);
    exact_buffer ba{s.in * s.out};
    run(ba, 20);
    run(ba, 10);
    CHECK(ab == ba);
    exact_buffer a{s.in * s.out};
    exact_buffer b{s.in * s.out};
    run(a, 10);
    run(b, 20);
    host::exact_add(pool, {.count = s.in * s.out, .source = b.sums.data(), .target = a.sums.data()});
    a.state = joined(a.state, b.state);
    CHECK(a == ab);
}

TEST_CASE("linear: overflow and NaN are flagged, the rest added")
{
    tile_pool pool{2};
    shape const s{2, 3, 5};
    floats x(size(s.rows * s.in), 1.0F);
    floats dy(size(s.rows * s.out), 1.0F);
    dy[0] = 1e20F;
    exact_buffer dw{s.in * s.out};
    host::linear_backward_weight(pool,
                                 {.rows = s.rows, .in = s.in, .out = s.out, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = dw.target()});
    CHECK(dw.state.overflow);
    CHECK_FALSE(dw.state.not_finite);
    CHECK(dw.state.max_abs == 1e20F);
    CHECK(dw.sums[0] == 0);
    CHECK(dw.sums[1] == std::int64_t{2} << 30);
    dy[0] = std::numeric_limits<float>::quiet_NaN();
    exact_buffer other{s.in * s.out};
    host::linear_backward_weight(
        pool, {.rows = s.rows, .in = s.in, .out = s.out, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = other.target()});
    CHECK(other.state.not_finite);
    CHECK_FALSE(other.state.overflow);
    CHECK(other.state.max_abs == 2.0F);
}

TEST_CASE("linear: threads change no bit")
{
    shape const s{300, 400, 900};
    auto const x = normal(s.rows * s.in, 1);
    auto const w = normal(s.in * s.out, 2);
    auto const b = normal(s.out, 3);
    auto const dy = normal(s.rows * s.out, 4);
    for (auto const order : {weight_order::in_out, weight_order::out_in}) {
        check_threads_change_no_bit([&](tile_pool& pool) {
            auto y = poison(s.rows * s.out);
            auto activated = poison(s.rows * s.out);
            auto arguments = forward_of(s, order, x, w, b);
            arguments.output = y.data();
            arguments.activated = activated.data();
            host::linear_forward(pool, arguments);
            auto dx = poison(s.rows * s.in);
            host::linear_backward_input(
                pool,
                {.rows = s.rows, .in = s.in, .out = s.out, .order = order, .weight = w.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
            exact_buffer dw{s.in * s.out};
            host::linear_backward_weight(
                pool,
                {.rows = s.rows, .in = s.in, .out = s.out, .order = order, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = dw.target()});
            exact_buffer db{s.out};
            host::linear_backward_bias(pool, {.rows = s.rows, .out = s.out, .output_gradient = dy.data(), .bias_gradient = db.target()});
            floats plain(w.size());
            host::linear_backward_weight(pool, linear_backward_weight_arguments<fp32_inexact>{.rows = s.rows,
                                                                                              .in = s.in,
                                                                                              .out = s.out,
                                                                                              .order = order,
                                                                                              .input = x.data(),
                                                                                              .output_gradient = dy.data(),
                                                                                              .weight_gradient = {plain.data()}});
            return std::tuple{bits(y), bits(activated), bits(dx), dw, db, bits(plain)};
        });
    }
}
