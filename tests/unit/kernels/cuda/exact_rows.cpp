// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact_rows/exact_rows.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t width;
};
// rows of a warp, of several, of several tiles, and of no whole chunks
constexpr shape shapes[] = {{1, 1}, {3, 7}, {300, 8}, {5, 264}, {2, 1000}, {1, 5000}, {2, 9000}};

/// Where there is trouble, a row in the middle has a value beyond its bound (1), and the last row one that is not finite (2).
template <class T>
std::vector<T> gradient(shape s, int trouble)
{
    auto values = normal(s.rows * s.width, 1, 1000.0F);
    if ((trouble & 1) != 0) {
        values[size((s.rows - 1) * s.width / 2)] = -3e20F;
    }
    if ((trouble & 2) != 0) {
        values[size(s.rows * s.width - 1)] = std::numeric_limits<float>::quiet_NaN();
    }
    return stored<T>(values);
}

}  // namespace

TEMPLATE_TEST_CASE("cuda exact rows: accumulation and flags match", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        for (int const trouble : {0, 1, 2, 3}) {
            INFO(s.rows << " x " << s.width << ", trouble " << trouble);
            auto const g = gradient<T>(s, trouble);
            row_buffer expected{s.rows, s.width};
            exact_rows_accumulate_arguments<T> const once{.rows = s.rows, .gradient = g.data(), .target = expected.target()};
            definition::exact_rows_accumulate(once);
            definition::exact_rows_accumulate(once);
            for (std::size_t const offset : {0U, 1U}) {
                auto const d = same_in_every_order([&] {
                    device::array<T> const from{g, offset};
                    device_rows const to{row_buffer{s.rows, s.width}, offset};
                    exact_rows_accumulate_arguments<T> const a{.rows = s.rows, .gradient = from.data(), .target = to.target()};
                    cuda::exact_rows_accumulate(device::queue(), a);
                    cuda::exact_rows_accumulate(device::queue(), a);
                    CHECK(from.margins_kept());
                    return to.host();
                });
                CHECK(d == expected);
            }
        }
    }
}

TEST_CASE("cuda exact rows: sums, verdicts and next scales match")
{
    for (auto const& s : shapes) {
        for (int const trouble : {0, 1, 2, 3}) {
            INFO(s.rows << " x " << s.width << ", trouble " << trouble);
            auto const g = gradient<float>(s, trouble);
            auto const more = gradient<float>({s.rows, s.width}, 0);
            row_buffer first{s.rows, s.width}, second{s.rows, s.width};
            definition::exact_rows_accumulate<float>({.rows = s.rows, .gradient = g.data(), .target = first.target()});
            definition::exact_rows_accumulate<float>({.rows = s.rows, .gradient = more.data(), .target = second.target()});
            for (std::size_t const offset : {0U, 1U}) {
                device_rows const on_first{first, offset}, on_second{second};
                device::array<float> const floats_of{s.rows * s.width, offset};
                device::array<accumulator_state> const verdict{std::vector<accumulator_state>(1)};
                cuda::exact_rows_add(device::queue(),
                                     {.rows = s.rows, .source = on_first.sums.data(), .source_states = on_first.states.data(), .target = on_second.target()});
                cuda::exact_rows_convert(device::queue(), {.rows = s.rows, .source = on_second.target(), .gradient = floats_of.data()});
                cuda::exact_rows_judge(device::queue(), {.rows = s.rows, .states = on_second.states.data(), .contributions = 8, .verdict = verdict.data()});
                auto const added = on_second.host();
                cuda::exact_rows_begin(device::queue(), {.rows = s.rows, .states = on_second.states.data(), .contributions = 8});

                auto sum = second;
                definition::exact_rows_add({.rows = s.rows, .source = first.sums.data(), .source_states = first.states.data(), .target = sum.target()});
                CHECK(added == sum);
                floats values(sum.sums.size());
                definition::exact_rows_convert({.rows = s.rows, .source = sum.target(), .gradient = values.data()});
                CHECK(bits(floats_of.host()) == bits(values));
                accumulator_state judged{};
                definition::exact_rows_judge({.rows = s.rows, .states = sum.states.data(), .contributions = 8, .verdict = &judged});
                CHECK(verdict.host().front() == judged);
                CHECK((judged.overflow == (trouble == 1 || (trouble == 3 && s.rows > 1)) && judged.not_finite == (trouble >= 2)));
                definition::exact_rows_begin({.rows = s.rows, .states = sum.states.data(), .contributions = 8});
                CHECK(on_second.states.host() == sum.states);
                CHECK((floats_of.margins_kept() && verdict.margins_kept()));
            }
        }
    }
}
