// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope.hpp"

#include <cmath>

#include "rheo/units/expects.hpp"
#include "support.hpp"
#include "support/rope_frequency.hpp"

using namespace rheo;
using namespace support;

namespace {

struct shape {
    std::int64_t sequences;
    std::int64_t length;
    std::int64_t turned;
    std::int64_t kept;
    std::int64_t head_width;

    std::int64_t rows() const { return sequences * length; }
    std::int64_t floats() const { return rows() * (turned + kept) * head_width; }
};
constexpr shape shapes[] = {{1, 1, 1, 1, 2}, {2, 9, 3, 1, 10}, {3, 40, 5, 2, 64}};

floats table_of(std::int64_t positions, std::int64_t head_width, double base = 10000)
{
    auto table = poison(positions * head_width);
    fill_rope_table(positions, head_width, base, table.data());
    return table;
}

template <class T>
rope_arguments<std::is_same_v<T, double> ? fp64 : fp32> arguments(shape const& s, std::vector<T> const& table, std::vector<T> const& x, std::vector<T>& y,
                                                                  bool back)
{
    return {.rows = s.rows(),
            .length = s.length,
            .turned = s.turned,
            .kept = s.kept,
            .head_width = s.head_width,
            .table = table.data(),
            .input = x.data(),
            .output = y.data(),
            .back = back};
}

}  // namespace

TEST_CASE("rope: the table is what the mathematics library says")
{
    for (std::int64_t const width : {2, 10, 64, 128}) {
        for (double const base : {1.0, 100.0, 10000.0, 500000.0}) {
            std::int64_t const positions = 300;
            auto const table = table_of(positions, width, base);
            double largest = 0;
            for (std::int64_t p = 0; p < positions; ++p) {
                for (std::int64_t i = 0; i < width / 2; ++i) {
                    double const angle = static_cast<double>(p) * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
                    largest = std::max(largest, std::fabs(static_cast<double>(table[size(p * width + i)]) - std::cos(angle)));
                    largest = std::max(largest, std::fabs(static_cast<double>(table[size(p * width + width / 2 + i)]) - std::sin(angle)));
                }
            }
            INFO("width " << width << ", base " << base);
            CHECK(largest <= 6e-8);
        }
    }
    auto const far = table_of(1'000'000, 2);
    CHECK(std::fabs(static_cast<double>(far[2 * 999'999]) - std::cos(999'999.0)) <= 6e-8);
    floats none;
    CHECK_THROWS_AS(fill_rope_table(1, 3, 10000, none.data()), precondition_error);
    CHECK_THROWS_AS(fill_rope_table(1, 2, 0.5, none.data()), precondition_error);
}

TEST_CASE("rope: scaled as Hugging Face's rules have it")
{
    auto const llama3 = [](int factor, int context) { return rope_scaling{rope_scaling_kind::llama3, factor, 1000, 4000, context}; };
    int kept = 0, divided = 0, between = 0;
    for (auto const& s : {rope_scaling{.kind = rope_scaling_kind::linear, .factor_per_mille = 4000},
                          rope_scaling{.kind = rope_scaling_kind::linear, .factor_per_mille = 1001}, llama3(8000, 8192), llama3(32000, 256)}) {
        std::int64_t const positions = 300, width = 128;
        auto table = poison(positions * width);
        fill_rope_table(positions, width, 500000, table.data(), s);
        double largest = 0;
        for (std::int64_t i = 0; i < width / 2; ++i) {
            double const plain = std::pow(500000.0, -2.0 * static_cast<double>(i) / static_cast<double>(width));
            double const frequency = reference::rope_frequency(plain, s);
            double const share = s.kind == rope_scaling_kind::linear ? 0 : frequency / plain;
            kept += share == 1 ? 1 : 0;
            divided += share > 0 && share <= 1000.0 / s.factor_per_mille * (1 + 1e-12) ? 1 : 0;
            between += share > 1000.0 / s.factor_per_mille * (1 + 1e-12) && share < 1 ? 1 : 0;
            for (std::int64_t p = 0; p < positions; ++p) {
                double const angle = static_cast<double>(p) * frequency;
                largest = std::max(largest, std::fabs(static_cast<double>(table[size(p * width + i)]) - std::cos(angle)));
                largest = std::max(largest, std::fabs(static_cast<double>(table[size(p * width + width / 2 + i)]) - std::sin(angle)));
            }
        }
        CHECK(largest <= 6e-8);
    }
    CHECK((kept > 10 && divided > 10 && between > 10));
    auto none = poison(300 * 128), same = none;
    fill_rope_table(300, 128, 10000, none.data());
    fill_rope_table(300, 128, 10000, same.data(), {});
    CHECK(bits(none) == bits(same));
    CHECK_THROWS_AS(fill_rope_table(1, 2, 10, none.data(), {.kind = rope_scaling_kind::linear}), precondition_error);
    CHECK_THROWS_AS(fill_rope_table(1, 2, 10, none.data(), {.kind = rope_scaling_kind::llama3, .factor_per_mille = 8000}), precondition_error);
}

TEST_CASE("rope: scores depend on distances only; inverse undoes")
{
    shape const s{1, 40, 2, 1, 16};
    auto const table = wide(table_of(s.length, s.head_width));
    auto const one = wide(normal(s.head_width * (s.turned + s.kept), 1));
    doubles x;
    for (std::int64_t r = 0; r < s.rows(); ++r) {
        x.insert(x.end(), one.begin(), one.end());
    }
    auto y = x;
    definition::rope(arguments(s, table, x, y, false));
    auto const score = [&](std::int64_t i, std::int64_t j) {
        double sum = 0;
        for (std::int64_t c = 0; c < s.head_width; ++c) {
            sum += y[size(i * 48 + c)] * y[size(j * 48 + 16 + c)];
        }
        return sum;
    };
    for (std::int64_t i = 5; i < s.length; ++i) {
        CHECK(std::fabs(score(i, i - 5) - score(5, 0)) <= 1e-5);  // the table is in float: 16 products of order one, each off by 4 * 6e-8
    }
    CHECK(std::fabs(score(9, 0) - score(5, 0)) > 1e-3);
    auto z = y;
    definition::rope(arguments(s, table, y, z, true));
    for (std::size_t i = 0; i < x.size(); ++i) {
        REQUIRE(std::fabs(z[i] - x[i]) <= 1e-6);
        REQUIRE((i % 48 < 32 || y[i] == x[i]));  // values are copied
    }
}

TEST_CASE("rope: back is the gradient of forth")
{
    shape const s{2, 3, 2, 1, 4};
    auto const table = wide(table_of(s.length, s.head_width));
    auto x = wide(normal(s.floats(), 1));
    auto const dy = wide(normal(s.floats(), 2));
    doubles y(x.size());
    doubles dx(x.size());
    definition::rope(arguments(s, table, dy, dx, true));
    check_derivative(x, dx, [&] {
        definition::rope(arguments(s, table, x, y, false));
        return dot(y, dy);
    });
}

TEST_CASE("rope: host matches double, in place, threads, slices")
{
    for (auto const& s : shapes) {
        auto const table = table_of(s.length, s.head_width);
        auto const x = normal(s.floats(), 1);
        for (bool const back : {false, true}) {
            doubles expected(x.size());
            definition::rope(arguments(s, wide(table), wide(x), expected, back));
            check_threads_change_no_bit([&](tile_pool& pool) {
                auto y = poison(s.floats());
                host::rope(pool, arguments(s, table, x, y, back));
                check_within(y, expected, 3 * u * 10);  // two products and their sum of values below 5
                auto in_place = x;
                host::rope(pool, arguments(s, table, in_place, in_place, back));
                CHECK(bits(in_place) == bits(y));
                return bits(y);
            });
        }
    }
    shape const s{1, 12, 2, 1, 6};
    tile_pool pool{1};
    auto const table = table_of(s.length, s.head_width);
    auto const x = normal(s.floats(), 1);
    auto whole = poison(s.floats());
    host::rope(pool, arguments(s, table, x, whole, false));
    auto sliced = poison(s.floats());
    for (std::int64_t first = 0; first < 12; first += 4) {
        std::int64_t const begin = first * 3 * 6;
        host::rope(pool, {.rows = 4,
                          .length = 4,
                          .first = first,
                          .turned = 2,
                          .kept = 1,
                          .head_width = 6,
                          .table = table.data(),
                          .input = x.data() + begin,
                          .output = sliced.data() + begin});
    }
    CHECK(bits(sliced) == bits(whole));
}
