// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope.hpp"

#include <cmath>
#include <cstring>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0 {

namespace {

/// base^(-2 i / width), i.e. the width-th root of base^-2, i times: the root by Newton's method, whose steps are the same everywhere.
double root_of_base(double base, std::int64_t width)
{
    // y^width = base^-2 in logarithms' stead: y is in (0, 1], f(y) = y^width - base^-2 is convex, so from 1 down it converges
    double const wanted = 1.0 / (base * base);
    double y = 1.0;
    for (int round = 0; round < 4000; ++round) {
        double power = 1.0;
        for (std::int64_t k = 1; k < width; ++k) {
            power *= y;
        }
        double const next = y - (power * y - wanted) / (static_cast<double>(width) * power);
        if (!(next < y)) {
            break;
        }
        y = next;
    }
    return y;
}

struct turned {
    double cosine;
    double sine;
};

/// Of 2 pi `turns`, |turns| <= 1/2, by Taylor's series to the 27th power: the rest is below 3e-15.
turned turn_by(double turns)
{
    double const y = turns * 6.283185307179586477;
    double const square = y * y;
    turned result{1.0, 1.0};
    for (int k = 26; k >= 2; k -= 2) {
        result.cosine = 1.0 - result.cosine * (square / (k * (k - 1)));
        result.sine = 1.0 - result.sine * (square / (k * (k + 1)));
    }
    result.sine *= y;
    return result;
}

}  // namespace

void fill_rope_table(std::int64_t positions, std::int64_t head_width, double base, float* table, rope_scaling const& scaling)
{
    expects(head_width > 0 && head_width % 2 == 0, "the width of a head that is turned is even");
    expects(base >= 1, "the base of the rotary embedding is at least 1");
    expects(error_of(scaling).empty(), "the scaling of the rotary embedding has the factors of its kind");
    double const root = root_of_base(base, head_width);
    std::int64_t const half = head_width / 2;
    double turns_per_position = 0.15915494309189533577;  // 1 / (2 pi): element 0 turns by one radian
    for (std::int64_t i = 0; i < half; ++i, turns_per_position *= root) {
        double const scaled = scaled_turns(scaling, turns_per_position);
        for (std::int64_t p = 0; p < positions; ++p) {
            double const turns = static_cast<double>(p) * scaled;
            auto const t = turn_by(turns - std::floor(turns + 0.5));
            table[p * head_width + i] = static_cast<float>(t.cosine);
            table[p * head_width + half + i] = static_cast<float>(t.sine);
        }
    }
}

namespace host {

using namespace detail;

void rope(tile_pool& pool, rope_arguments<> const& a)
{
    expects(a.head_width % 2 == 0, "the width of a head that is turned is even");
    constexpr std::int64_t row_tile = 16;
    std::int64_t const half = a.head_width / 2;
    std::int64_t const width = (a.turned + a.kept) * a.head_width;
    auto const turn = a.back ? loops().turn_back : loops().turn;
    pool.run(tiles_in(a.rows, row_tile), [&](std::int64_t t, int) {
        auto const rows = range_of(t, row_tile, a.rows);
        for (std::int64_t r = rows.begin; r < rows.begin + rows.count; ++r) {
            float const* const cosines = a.table + (a.first + r % a.length) * a.head_width;
            float const* const x = a.input + r * width;
            float* const y = a.output + r * width;
            for (std::int64_t h = 0; h < a.turned; ++h) {
                turn(half, cosines, cosines + half, x + h * a.head_width, y + h * a.head_width);
            }
            if (x != y) {
                std::int64_t const values = a.turned * a.head_width;
                std::memcpy(y + values, x + values, static_cast<std::size_t>(width - values) * sizeof(float));
            }
        }
    });
}

}  // namespace host
}  // namespace rheo::inline v0
