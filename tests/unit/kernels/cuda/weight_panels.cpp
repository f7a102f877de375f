// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear/weight_panels.hpp"

#include <set>

#include "kernels/linear/linear.hpp"
#include "kernels/linear/linear_products.hpp"
#include "laws.hpp"

using namespace rheo;
using namespace laws;
using cuda::for_panels;
using cuda::weight_panel;
using cuda::weight_panels;
using cuda::weight_panels_of;

namespace {

constexpr std::int64_t panels_in(weight_panels const& all)
{
    std::int64_t count = 0;
    for_panels(all, [&](weight_panel const&) { ++count; });
    return count;
}

/// Every element is in one panel, panels stay within their limits and begin at whole steps, and there is one where one is enough.
constexpr bool lawful(std::int64_t rows, std::int64_t columns)
{
    auto const all = weight_panels_of(rows, columns);
    std::int64_t elements = 0;
    std::int64_t row = 0;
    std::int64_t column = 0;
    bool result = true;
    for_panels(all, [&](weight_panel const& p) {
        result = result && p.first_row == row && p.first_column == column && p.rows > 0 && p.columns > 0;
        result = result && p.first_row % cuda::panel_row_step == 0 && p.first_column % cuda::panel_column_step == 0;
        result = result && p.rows * p.columns <= cuda::panel_elements && p.rows <= all.panel_rows && p.columns <= all.panel_columns;
        elements += p.rows * p.columns;
        column += p.columns;
        if (column == columns) {
            column = 0;
            row += p.rows;
        }
    });
    return result && elements == rows * columns && row == rows && all.rows == rows && all.columns == columns;
}

// small; one panel and a little more; odd; flat and high; of models
constexpr std::int64_t sizes[][2] = {{1, 1},      {2048, 2048}, {2049, 2048}, {2048, 2049},  {3001, 4497},  {8, 100000},   {100000, 3},
                                     {768, 3072}, {1600, 6400}, {50257, 768}, {50257, 1600}, {4096, 12288}, {4096, 22016}, {11008, 4096}};
static_assert([] {
    for (auto const& [rows, columns] : sizes) {
        if (!lawful(rows, columns)) {
            return false;
        }
    }
    return true;
}());

// GPT-2 124M: one product but for the table of tokens; Llama 7B: squares, each a wave of tiles
static_assert(panels_in(weight_panels_of(768, 2304)) == 1 && panels_in(weight_panels_of(768, 3072)) == 1 && panels_in(weight_panels_of(3072, 768)) == 1);
static_assert(weight_panels_of(50304, 768) == weight_panels{50304, 768, 5120, 768});
static_assert(weight_panels_of(1600, 4800) == weight_panels{1600, 4800, 1600, 2560});
static_assert(weight_panels_of(4096, 4096) == weight_panels{4096, 4096, 2048, 2048} && panels_in(weight_panels_of(4096, 12288)) == 12);
static_assert(panels_in(weight_panels_of(0, 8)) == 0 && panels_in(weight_panels_of(8, 0)) == 0);
static_assert(cuda::panel_bytes(768) == 3072 && cuda::panel_bytes(std::int64_t{4096} * 22016) == 16 << 20);

/// Small whole numbers: products and sums are exact in any order.
template <class T>
std::vector<T> whole_numbers(std::int64_t count, unsigned seed)
{
    std::vector<T> values;
    for (std::int64_t i = 0; i < count; ++i) {
        seed = seed * 1664525U + 1013904223U;
        values.push_back(static_cast<T>(static_cast<float>(static_cast<int>(seed >> 28) - 8)));
    }
    return values;
}

auto buffer_for(linear_backward_weight_arguments<fp32> const& a) { return exact_buffer{a.in * a.out, 20}; }
auto buffer_for(linear_backward_weight_arguments<bf16> const& a) { return exact_buffer{a.in * a.out, 20}; }
template <dtype_policy Policy>
row_buffer buffer_for(linear_backward_weight_arguments<Policy> const& a)
{
    bool const in_out = a.order == weight_order::in_out;
    return {in_out ? a.in : a.out, in_out ? a.out : a.in};
}
auto on_device(exact_buffer const& buffer) { return device_sums{buffer}; }
auto on_device(row_buffer const& buffer) { return device_rows{buffer}; }

struct weight_shape {
    std::int64_t rows;
    std::int64_t in;
    std::int64_t out;
    weight_order order;
    std::int64_t apart = 0;  ///< elements between two rows of the gradient
};

/// Two contributions by panels are those of the definition, and the table has the products that linear_products.hpp says.
template <dtype_policy Policy>
void check_panels(weight_shape const& s, std::int64_t panels, std::int64_t more_workspace = 0)
{
    INFO(s.rows << " x " << s.in << " x " << s.out << ", order " << static_cast<int>(s.order));
    using T = storage_t<Policy>;
    auto const x = whole_numbers<T>(s.rows * s.in, 1), dy = whole_numbers<T>(s.rows * (s.out + s.apart), 2);
    linear_backward_weight_arguments<Policy> a{.rows = s.rows,
                                               .in = s.in,
                                               .out = s.out,
                                               .order = s.order,
                                               .input = x.data(),
                                               .output_gradient = dy.data(),
                                               .weight_gradient = {},
                                               .output_gradient_row = s.apart == 0 ? 0 : s.out + s.apart};
    auto expected = buffer_for(a);
    auto const to = on_device(expected);
    a.weight_gradient = expected.target();
    definition::linear_backward_weight(a);
    definition::linear_backward_weight(a);
    device::array<T> const x_there{x}, dy_there{dy};
    a.input = x_there.data();
    a.output_gradient = dy_there.data();
    a.weight_gradient = to.target();
    device::scratch const scratch{cuda::linear_backward_weight_workspace_bytes(s.in, s.out) + more_workspace};
    cuda::products by;
    cuda::linear_backward_weight(device::queue(), scratch, by, a);
    cuda::linear_backward_weight(device::queue(), scratch, by, a);
    CHECK((to.host() == expected));
    CHECK((x_there.margins_kept() && dy_there.margins_kept()));
    auto const all = cuda::linear_weight_panels(s.in, s.out, s.order);
    CHECK(panels_in(all) == panels);
    std::set<cuda::product_shape> shapes, chosen;
    for_panels(all, [&](weight_panel const& p) { shapes.insert(cuda::linear_backward_weight_product(s.rows, all, p, Policy.storage)); });
    for (auto const& choice : by.table()) {
        chosen.insert(choice.shape);
    }
    CHECK(chosen == shapes);
}

}  // namespace

TEST_CASE("cuda weight panels: several, and smaller ones at the edges")
{
    // two rows and two columns of panels, the last of each smaller
    check_panels<bf16_i32>({3, 3000, 4504, weight_order::in_out}, 4);
    check_panels<fp32>({2, 4504, 3000, weight_order::out_in}, 4);
}

TEST_CASE("cuda weight panels: sizes that no chunk divides")
{
    check_panels<bf16>({2, 3001, 4497, weight_order::in_out}, 4);
    check_panels<fp32_i32>({2, 4497, 3001, weight_order::out_in}, 4);
}

TEST_CASE("cuda weight panels: whole rows, and gradients that lie apart")
{
    check_panels<bf16_i32>({2, 2600, 2560, weight_order::in_out, 24}, 2);
    check_panels<fp32>({2, 2560, 2600, weight_order::out_in, 4}, 2);
}

TEST_CASE("cuda weight panels: a larger workspace changes nothing")
{
    check_panels<bf16_i32>({1, 2600, 2560, weight_order::in_out}, 2, std::int64_t{64} << 20);
}

TEMPLATE_TEST_CASE("cuda weight panels: beside a bias, both gradients as apart", "", float, bfloat16)
{
    using T = TestType;
    std::int64_t const rows = 3;
    std::int64_t const in = sizeof(T) == 2 ? 2600 : 2049;
    std::int64_t const out = sizeof(T) == 2 ? 2560 : 2053;
    auto const x = whole_numbers<T>(rows * in, 1), dy = whole_numbers<T>(rows * out, 2);
    exact_buffer dw{in * out, 20}, db{out, 20};
    device_sums const dw_there{dw}, db_there{db};
    definition::linear_backward_weight<policy<T>>(
        {.rows = rows, .in = in, .out = out, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = dw.target()});
    definition::linear_backward_bias<policy<T>>({.rows = rows, .out = out, .output_gradient = dy.data(), .bias_gradient = db.target()});
    device::array<T> const x_there{x}, dy_there{dy};
    device::scratch const scratch{cuda::linear_backward_parameters_workspace_bytes(rows, in, out)};
    cuda::products by;
    cuda::linear_backward_parameters<policy<T>>(
        device::queue(), scratch, by,
        {.rows = rows, .in = in, .out = out, .input = x_there.data(), .output_gradient = dy_there.data(), .weight_gradient = dw_there.target()},
        db_there.target());
    CHECK((dw_there.host() == dw));
    CHECK((db_there.host() == db));
    CHECK(scratch.counters_are_zero());
}
