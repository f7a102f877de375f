// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear/linear.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t in;
    std::int64_t out;
};
// one of everything, widths that are no multiple of a chunk, several tiles of any grid
constexpr shape shapes[] = {{1, 8, 8}, {3, 17, 33}, {40, 64, 104}, {130, 72, 200}};
constexpr weight_order orders[] = {weight_order::in_out, weight_order::out_in};

template <class T>
struct inputs {
    std::vector<T> x, w, b, dy, before;

    explicit inputs(shape const& s)
        : x{stored<T>(normal(s.rows * s.in, 1))},
          w{stored<T>(normal(s.in * s.out, 2))},
          b{stored<T>(normal(s.out, 3))},
          dy{stored<T>(normal(s.rows * s.out, 4))},
          before{stored<T>(normal(s.rows * s.in, 5))}
    {
    }
};

/// The definition in double of the same stored values, and of their magnitudes, which the errors are in proportion to.
struct reference {
    doubles y, activated, dx, dw, db;

    template <class T>
    reference(shape const& s, weight_order order, inputs<T> const& in, bool magnitudes_only)
        : y(size(s.rows * s.out)), activated(y.size()), dw(size(s.in * s.out)), db(size(s.out))
    {
        auto const as = [&](std::vector<T> const& values) { return magnitudes_only ? magnitudes(widened(values)) : widened(values); };
        auto const x = as(in.x), w = as(in.w), b = as(in.b), dy = as(in.dy);
        dx = as(in.before);
        definition::linear_forward<fp64>({.rows = s.rows,
                                          .in = s.in,
                                          .out = s.out,
                                          .order = order,
                                          .input = x.data(),
                                          .weight = w.data(),
                                          .bias = b.data(),
                                          .output = y.data(),
                                          .activated = activated.data()});
        definition::linear_backward_input<fp64>({.rows = s.rows,
                                                 .in = s.in,
                                                 .out = s.out,
                                                 .order = order,
                                                 .weight = w.data(),
                                                 .output_gradient = dy.data(),
                                                 .input_gradient = dx.data(),
                                                 .accumulate = true});
        definition::linear_backward_weight<fp64>(
            {.rows = s.rows, .in = s.in, .out = s.out, .order = order, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = {dw.data()}});
        definition::linear_backward_bias<fp64>({.rows = s.rows, .out = s.out, .output_gradient = dy.data(), .bias_gradient = {db.data()}});
    }
};

}  // namespace

TEMPLATE_TEST_CASE("cuda linear: matches double in each direction", "", float, bfloat16)
{
    using T = TestType;
    cuda::products products;
    for (auto const& s : shapes) {
        for (auto const order : orders) {
            INFO(s.rows << " x " << s.in << " x " << s.out << ", order " << static_cast<int>(order));
            inputs<T> const in{s};
            reference const r{s, order, in, false};
            reference const size_of{s, order, in, true};
            device::array<T> const x{in.x}, w{in.w}, b{in.b}, dy{in.dy}, dx{in.before};
            device::array<T> const y{s.rows * s.out}, activated{s.rows * s.out};
            device_sums const dw{exact_buffer{s.in * s.out}};
            device::scratch const scratch{cuda::linear_backward_weight_workspace_bytes(s.in, s.out)};
            auto const queue = device::queue();
            cuda::linear_forward<policy<T>>(queue, scratch, products,
                                            {.rows = s.rows,
                                             .in = s.in,
                                             .out = s.out,
                                             .order = order,
                                             .input = x.data(),
                                             .weight = w.data(),
                                             .bias = b.data(),
                                             .output = y.data(),
                                             .activated = activated.data()});
            cuda::linear_backward_input<policy<T>>(queue, scratch, products,
                                                   {.rows = s.rows,
                                                    .in = s.in,
                                                    .out = s.out,
                                                    .order = order,
                                                    .weight = w.data(),
                                                    .output_gradient = dy.data(),
                                                    .input_gradient = dx.data(),
                                                    .accumulate = true});
            cuda::linear_backward_weight<policy<T>>(
                queue, scratch, products,
                {.rows = s.rows, .in = s.in, .out = s.out, .order = order, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = dw.target()});
            // n terms and one more in float, in any order: n u of the magnitudes; what is stored is rounded once
            auto const bound_of = [&](doubles const& expected, doubles const& whole, std::int64_t terms, double rounding, double fixed) {
                doubles bound(expected.size());
                for (std::size_t i = 0; i < bound.size(); ++i) {
                    bound[i] = static_cast<double>(terms + 2) * u * whole[i] + rounding * (std::fabs(expected[i]) + u * whole[i]) + fixed;
                }
                return bound;
            };
            check_within(single(y.host()), r.y, bound_of(r.y, size_of.y, s.in, roundoff<T>, 0));
            // where a sum continues, kernels of cuBLASLt for Hopper round the product, too, before they add it
            auto continued = bound_of(r.dx, size_of.dx, s.out, roundoff<T>, 0);
            for (std::size_t i = 0; i < continued.size(); ++i) {
                continued[i] += roundoff<T> * std::fabs(r.dx[i] - static_cast<double>(static_cast<float>(in.before[i])));
            }
            check_within(single(dx.host()), r.dx, continued);
            auto const weight = dw.host();
            check_within(weight.values(), r.dw, bound_of(r.dw, size_of.dw, s.rows, u, fixed_error(weight)));
            CHECK((!weight.state.overflow && !weight.state.not_finite));
            // The GELU reads what was stored; as an epilogue, the sum before that. Its slope is at most 1.13, and the library may take the hyperbolic
            // tangent of the device, which is within 2^-11.
            auto const table = products.table();
            bool const epilogue = std::any_of(table.begin(), table.end(), [&](cuda::product_choice const& c) {
                return c.shape.gelu && c.shape.rows == s.rows && c.shape.columns == s.out && c.shape.right_transposed == (order == weight_order::out_in) &&
                       c.algorithm != decltype(c.algorithm){};
            });
            CHECK((!epilogue || (sizeof(T) == 2 && s.out % 8 == 0)));
            auto const pre = widened(y.host());
            auto const after = single(activated.host());
            for (std::size_t i = 0; i < after.size(); ++i) {
                double const from = epilogue ? r.y[i] : pre[i];
                double const tolerance = epilogue ? 1.13 * static_cast<double>(s.in + 2) * u * size_of.y[i] + 0x1p-11 * std::fabs(from) : 0;
                CHECK(after[i] == Approx(definition::gelu(from)).margin(1e-6 + tolerance).epsilon(2 * roundoff<T>));
            }
            for (auto const* a : {&x, &w, &b, &dy, &dx, &y, &activated}) {
                CHECK(a->margins_kept());
            }
            CHECK(scratch.counters_are_zero());
        }
    }
}

TEMPLATE_TEST_CASE("cuda linear: back through a GELU in one pass", "", float, bfloat16)
{
    using T = TestType;
    cuda::products products;
    for (auto const& s : shapes) {
        for (auto const order : orders) {
            INFO(s.rows << " x " << s.in << " x " << s.out << ", order " << static_cast<int>(order));
            inputs<T> const in{s};
            device::array<T> const w{in.w}, dy{in.dy}, before{in.before}, whole{s.rows * s.in}, plain{s.rows * s.in}, apart{s.rows * s.in};
            device::scratch const scratch{cuda::linear_backward_weight_workspace_bytes(s.in, s.out)};
            auto const back = [&](device::array<T> const& to, T const* pre_activation) {
                cuda::linear_backward_input<policy<T>>(device::queue(), scratch, products,
                                                       {.rows = s.rows,
                                                        .in = s.in,
                                                        .out = s.out,
                                                        .order = order,
                                                        .weight = w.data(),
                                                        .output_gradient = dy.data(),
                                                        .input_gradient = to.data(),
                                                        .pre_activation = pre_activation});
            };
            back(whole, before.data());
            back(plain, nullptr);
            cuda::gelu_backward<policy<T>>(device::queue(),
                                           {.count = s.rows * s.in, .input = before.data(), .output_gradient = plain.data(), .input_gradient = apart.data()});
            CHECK((whole.margins_kept() && before.margins_kept()));
            auto const table = products.table();
            bool const epilogue = std::any_of(table.begin(), table.end(), [&](cuda::product_choice const& c) {
                return c.shape.gelu_slope && c.shape.rows == s.rows && c.shape.columns == s.in && c.shape.right_transposed == (order == weight_order::in_out) &&
                       c.algorithm != decltype(c.algorithm){};
            });
            CHECK((!epilogue || (sizeof(T) == 2 && s.in % 8 == 0)));
            if (!epilogue) {
                CHECK(all_bits(whole.host()) == all_bits(apart.host()));
                continue;
            }
            // The sum, of s.out terms, is not rounded before the slope, which is at most 1.13; the library may take the hyperbolic tangent of the device.
            auto const dyd = widened(in.dy), wd = widened(in.w), x = widened(in.before);
            auto const size_of_dy = magnitudes(dyd), size_of_w = magnitudes(wd);
            doubles dx(x.size()), size_of_dx(x.size()), bound(x.size());
            definition::linear_backward_input<fp64>(
                {.rows = s.rows, .in = s.in, .out = s.out, .order = order, .weight = wd.data(), .output_gradient = dyd.data(), .input_gradient = dx.data()});
            definition::linear_backward_input<fp64>({.rows = s.rows,
                                                     .in = s.in,
                                                     .out = s.out,
                                                     .order = order,
                                                     .weight = size_of_w.data(),
                                                     .output_gradient = size_of_dy.data(),
                                                     .input_gradient = size_of_dx.data()});
            for (std::size_t i = 0; i < x.size(); ++i) {
                double const slope = definition::gelu_derivative(x[i]);
                bound[i] =
                    1.13 * static_cast<double>(s.out + 2) * u * size_of_dx[i] + 0x1p-9 * std::fabs(dx[i]) + 2 * roundoff<T> * std::fabs(slope * dx[i]) + 1e-6;
                dx[i] *= slope;
            }
            check_within(single(whole.host()), dx, bound);
        }
    }
}

TEMPLATE_TEST_CASE("cuda linear: bias gradient is the exact column sum", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{1, 1, 1}, shape{3, 1, 7}, shape{300, 1, 130}, shape{1300, 1, 9}}) {
        inputs<T> const in{s};
        auto const d = same_in_every_order([&] {
            device::array<T> const dy{in.dy};
            device_sums const sums{exact_buffer{s.out}};
            device::scratch const scratch{cuda::linear_backward_bias_workspace_bytes(s.rows, s.out)};
            linear_backward_bias_arguments<policy<T>> const arguments{
                .rows = s.rows, .out = s.out, .output_gradient = dy.data(), .bias_gradient = sums.target()};
            cuda::linear_backward_bias(device::queue(), scratch, arguments);
            CHECK(scratch.counters_are_zero());
            return sums.host();
        });
        reference const r{s, weight_order::in_out, in, false};
        reference const whole{s, weight_order::in_out, in, true};
        doubles bound(r.db.size());
        for (std::size_t i = 0; i < bound.size(); ++i) {
            bound[i] = (18 + static_cast<double>(s.rows) / 256 + 4) * u * whole.db[i] + fixed_error(d);  // as in rms_norm.cpp
        }
        check_within(d.values(), r.db, bound);
    }
}

TEMPLATE_TEST_CASE("cuda linear: fused weight and bias gradients: same bits", "", float, bfloat16)
{
    using T = TestType;
    cuda::products by;
    for (auto const& s : {shape{1, 8, 8}, shape{3, 17, 33}, shape{300, 9, 72}}) {
        for (auto const order : orders) {
            for (int const wanted : {3, 1, 2, 0}) {  // weight, bias
                INFO(s.rows << " x " << s.in << " x " << s.out << ", order " << static_cast<int>(order) << ", wanted " << wanted);
                inputs<T> const in{s};
                auto const run = [&](bool one_pass) {
                    device::array<T> const x{in.x}, dy{in.dy};
                    device_sums const dw{exact_buffer{s.in * s.out}}, db{exact_buffer{s.out, 28}};
                    device::scratch const scratch{cuda::linear_backward_parameters_workspace_bytes(s.rows, s.in, s.out)};
                    auto const to_bias = (wanted & 2) != 0 ? db.target() : gradient_sum<bf16>{};
                    linear_backward_weight_arguments<policy<T>> const a{.rows = s.rows,
                                                                        .in = s.in,
                                                                        .out = s.out,
                                                                        .order = order,
                                                                        .input = x.data(),
                                                                        .output_gradient = dy.data(),
                                                                        .weight_gradient = (wanted & 1) != 0 ? dw.target() : gradient_sum<bf16>{}};
                    if (one_pass) {
                        cuda::linear_backward_parameters(device::queue(), scratch, by, a, to_bias);
                    } else {
                        if ((wanted & 1) != 0) {
                            cuda::linear_backward_weight(device::queue(), scratch, by, a);
                        }
                        if ((wanted & 2) != 0) {
                            cuda::linear_backward_bias<policy<T>>(device::queue(), scratch,
                                                                  {.rows = s.rows, .out = s.out, .output_gradient = dy.data(), .bias_gradient = to_bias});
                        }
                    }
                    CHECK((x.margins_kept() && dy.margins_kept() && scratch.counters_are_zero()));
                    return std::pair{dw.host(), db.host()};
                };
                CHECK((wanted == 3 ? same_in_every_order([&] { return run(true); }) : run(true)) == run(false));
            }
        }
    }
}

TEST_CASE("cuda linear: 32-bit weight gradient within half a unit")
{
    cuda::products by;
    for (auto const& s : shapes) {
        for (auto const order : orders) {
            INFO(s.rows << " x " << s.in << " x " << s.out << ", order " << static_cast<int>(order));
            inputs<bfloat16> const in{s};
            reference const r{s, order, in, false};
            reference const size_of{s, order, in, true};
            auto const width = order == weight_order::in_out ? s.out : s.in;
            device::array<bfloat16> const x{in.x}, dy{in.dy};
            device::array<std::int32_t> const sums{std::vector<std::int32_t>(size(s.in * s.out))};
            device::array<row_sum_state> const states{std::vector<row_sum_state>(size(s.in * s.out / width), {.scale_log2 = 15})};
            device::scratch const scratch{cuda::linear_backward_weight_workspace_bytes(s.in, s.out)};
            cuda::linear_backward_weight<bf16_i32>(device::queue(), scratch, by,
                                                   {.rows = s.rows,
                                                    .in = s.in,
                                                    .out = s.out,
                                                    .order = order,
                                                    .input = x.data(),
                                                    .output_gradient = dy.data(),
                                                    .weight_gradient = {.sums = sums.data(), .states = states.data(), .width = width, .contributions = 8}});
            floats values;
            for (auto const sum : sums.host()) {
                values.push_back(value_of(sum, 15));
            }
            doubles bound(values.size());
            for (std::size_t i = 0; i < bound.size(); ++i) {
                bound[i] = static_cast<double>(s.rows + 2) * u * size_of.dw[i] + 0x1p-16;
            }
            check_within(values, r.dw, bound);
            CHECK((sums.margins_kept() && states.margins_kept()));
            auto const after = states.host();
            CHECK(std::none_of(after.begin(), after.end(), [](row_sum_state const& state) { return not_finite(state) || overflowed(state, 8); }));
        }
    }
}

TEST_CASE("cuda linear: algorithm table covers shapes, transferable")
{
    shape const s{3, 8, 16};
    inputs<bfloat16> const in{s};
    device::array<bfloat16> const x{in.x}, w{in.w}, y{s.rows * s.out};
    device::scratch const scratch{cuda::linear_backward_weight_workspace_bytes(s.in, s.out)};
    auto const multiply = [&](cuda::products& by, weight_order order) {
        cuda::linear_forward<bf16>(device::queue(), scratch, by,
                                   {.rows = s.rows, .in = s.in, .out = s.out, .order = order, .input = x.data(), .weight = w.data(), .output = y.data()});
    };
    cuda::products first;
    CHECK(first.table().empty());
    multiply(first, weight_order::out_in);
    multiply(first, weight_order::in_out);
    multiply(first, weight_order::in_out);
    auto const table = first.table();
    REQUIRE(table.size() == 2);
    CHECK(table[0].shape < table[1].shape);
    cuda::products second;
    second.adopt(table);
    CHECK(second.table() == table);
    multiply(second, weight_order::in_out);
    CHECK(second.table() == table);
}

TEST_CASE("cuda linear: invalid arguments are rejected")
{
    using Catch::Matchers::ContainsSubstring;
    cuda::products by;
    bfloat16 y[8];
    CHECK_THROWS_WITH(cuda::linear_forward<bf16>({}, {}, by, {.rows = 1, .in = 8, .out = 8, .input = nullptr, .weight = nullptr, .output = y}),
                      ContainsSubstring("workspace is too small"));
    CHECK_THROWS_WITH(cuda::linear_forward<bf16>({}, {}, by, {.rows = 1, .in = 8, .out = 8, .input = nullptr, .weight = nullptr}),
                      ContainsSubstring("its output, or a partial one"));
    CHECK_THROWS_WITH(
        cuda::linear_backward_weight<bf16>({}, {}, by, {.rows = 1, .in = 8, .out = 8, .input = nullptr, .output_gradient = nullptr, .weight_gradient = {}}),
        ContainsSubstring("workspace is too small"));
}
