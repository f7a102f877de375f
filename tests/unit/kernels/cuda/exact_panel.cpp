// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact/exact_panel.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

/// A panel and where it begins in its tensor.
struct place {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t tensor_rows;
    std::int64_t width;
    std::int64_t first_row;
    std::int64_t first_column;
};
// all of a tensor, rows of it, columns, both, runs of several blocks; what is whole in pairs and chunks, and what is not
constexpr place places[] = {{3, 7, 3, 7, 0, 0},        {2, 64, 5, 64, 1, 0}, {5, 8, 5, 24, 0, 8},       {3, 16, 7, 40, 2, 24},
                            {2, 4100, 3, 8200, 1, 64}, {3, 17, 4, 41, 1, 5}, {2, 4101, 3, 4200, 0, 99}, {40, 4, 42, 12, 2, 8}};

/// Where there is trouble, a value in the middle is beyond its bound (1), and the last one not finite (2).
floats gradient(place const& p, int trouble)
{
    auto values = normal(p.rows * p.columns, 1, 1000.0F);
    if ((trouble & 1) != 0) {
        values[size(p.rows * p.columns / 2)] = -3e20F;
    }
    if ((trouble & 2) != 0) {
        values.back() = std::numeric_limits<float>::quiet_NaN();
    }
    return values;
}

gradient_sum_of<dtype::i64> from(gradient_sum_of<dtype::i64> target, place const& p)
{
    target.sums += p.first_row * p.width + p.first_column;
    return target;
}

gradient_sum_of<dtype::i32> from(gradient_sum_of<dtype::i32> target, place const& p)
{
    target.sums += p.first_row * p.width + p.first_column;
    target.states += p.first_row;
    return target;
}

template <dtype Accumulate>
exact_panel_arguments<Accumulate> panel(place const& p, float const* gradient, gradient_sum_of<Accumulate> const& target)
{
    return {.rows = p.rows, .columns = p.columns, .gradient = gradient, .target = from(target, p), .width = p.width};
}

/// The same twice, by the definition and on the device; all around the panel stays as it was.
template <class OnDevice>
void check_panel(place const& p, auto const& before)
{
    for (int const trouble : {0, 1, 2, 3}) {
        INFO(p.rows << " x " << p.columns << " of " << p.tensor_rows << " x " << p.width << ", trouble " << trouble);
        auto const g = gradient(p, trouble);
        auto expected = before;
        for (int i = 0; i < 2; ++i) {
            definition::exact_accumulate_panel(panel(p, g.data(), expected.target()));
        }
        for (std::size_t const offset : {0U, 1U}) {
            auto const d = same_in_every_order([&] {
                device::array<float> const there{g, offset};
                OnDevice const to{before};
                for (int i = 0; i < 2; ++i) {
                    cuda::exact_accumulate_panel(device::queue(), panel(p, there.data(), to.target()));
                }
                CHECK(there.margins_kept());
                return to.host();
            });
            CHECK((d == expected));
        }
    }
}

/// Sums that are not zero, each another one.
template <class Sum>
void fill(std::vector<Sum>& sums)
{
    for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] = static_cast<Sum>(i * 7 + 1);
    }
}

}  // namespace

TEST_CASE("cuda exact panel: sums of 64 bits as by the definition")
{
    for (auto const& p : places) {
        exact_buffer before{p.tensor_rows * p.width, 20};
        fill(before.sums);
        check_panel<device_sums>(p, before);
    }
}

TEST_CASE("cuda exact panel: sums of 32 bits as by the definition")
{
    for (auto const& p : places) {
        row_buffer before{p.tensor_rows, p.width};
        fill(before.sums);
        check_panel<device_rows>(p, before);
    }
}

TEST_CASE("cuda exact panel: panels wider than the tensor are rejected")
{
    using Catch::Matchers::ContainsSubstring;
    exact_buffer b{16};
    CHECK_THROWS_WITH(cuda::exact_accumulate_panel(
                          device::queue(), exact_panel_arguments<dtype::i64>{.rows = 1, .columns = 9, .gradient = nullptr, .target = b.target(), .width = 8}),
                      ContainsSubstring("no wider than its tensor"));
    row_buffer r{2, 8};
    CHECK_THROWS_WITH(cuda::exact_accumulate_panel(
                          device::queue(), exact_panel_arguments<dtype::i32>{.rows = 1, .columns = 4, .gradient = nullptr, .target = r.target(), .width = 16}),
                      ContainsSubstring("as wide as their tensor"));
}
