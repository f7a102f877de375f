// SPDX-License-Identifier: Apache-2.0
// The inner loops: every instruction set level gives the same bits, at every length; exponential and the rest stay
// within their stated errors over their whole range.
#include "kernels/detail/loops.hpp"

#include <cstring>
#include <string>

#include "rheo/tensor/random.hpp"
#include "support.hpp"

using namespace rheo;
using namespace support;
using detail::loop_table;

namespace {

/// Everything a table computes on n elements, as bits.
std::vector<std::uint32_t> everything(loop_table const& table, std::int64_t n)
{
    std::vector<std::uint32_t> all;
    auto const keep = [&](floats const& values) {
        auto const b = bits(values);
        all.insert(all.end(), b.begin(), b.end());
    };
    auto const keep_double = [&](double value) {
        auto const b = std::bit_cast<std::uint64_t>(value);
        all.push_back(static_cast<std::uint32_t>(b));
        all.push_back(static_cast<std::uint32_t>(b >> 32));
    };
    auto const x = normal(n, 1, 3.0F);
    auto const y = normal(n, 2, 2.0F);
    auto out = poison(n);
    table.add(n, x.data(), y.data(), out.data());
    keep(out);
    auto in_place = x;
    table.add_gelu(n, y.data(), in_place.data(), out.data());
    keep(in_place);
    keep(out);
    table.gelu(n, x.data(), out.data());
    keep(out);
    table.gelu_backward(n, x.data(), y.data(), out.data());
    keep(out);
    detail::stream_parts const stream{{1, 2}, {3, 4}};
    std::vector<std::uint32_t> words(size((n + 63) / 64 * 64));
    table.random_strips(stream, 5, (n + 63) / 64, words.data());
    all.insert(all.end(), words.begin(), words.end());
    detail::drop_rule const rule{words.data(), 1U << 30, 1.25F};
    table.drop(n, x.data(), rule, out.data());
    keep(out);
    table.add_dropped(n, x.data(), y.data(), rule, out.data());
    keep(out);
    float mean = 0;
    float rstd = 0;
    table.norm_forward(n, 1e-5F, x.data(), y.data(), x.data(), out.data(), &mean, &rstd);
    keep(out);
    keep({mean, rstd, table.dot(n, x.data(), y.data())});
    table.norm_backward(n, x.data(), y.data(), mean, rstd, x.data(), nullptr, out.data());
    keep(out);
    table.norm_backward(n, x.data(), y.data(), mean, rstd, x.data(), y.data(), out.data());
    keep(out);
    table.rms_forward(n, 1e-5F, x.data(), y.data(), out.data(), &rstd);
    keep(out);
    keep({rstd});
    table.rms_backward(n, x.data(), y.data(), rstd, x.data(), nullptr, out.data());
    keep(out);
    table.rms_backward(n, x.data(), y.data(), rstd, x.data(), y.data(), out.data());
    keep(out);
    table.swiglu(n, x.data(), y.data(), out.data());
    keep(out);
    auto second = poison(n);
    table.swiglu_backward(n, x.data(), y.data(), x.data(), out.data(), second.data());
    keep(out);
    keep(second);
    auto const pairs = normal(2 * n, 7);
    auto turned = poison(2 * n);
    table.turn(n, x.data(), y.data(), pairs.data(), turned.data());
    keep(turned);
    table.turn_back(n, x.data(), y.data(), pairs.data(), turned.data());
    keep(turned);
    if (n <= 64) {
        auto const matrix = normal(n * 70, 3);
        auto const means = normal(70, 4);
        auto other = poison(n);
        table.column_sums(70, n, n, matrix.data(), out.data());
        keep(out);
        table.norm_column_sums(70, n, n, matrix.data(), means.data(), means.data(), matrix.data(), out.data(), other.data());
        keep(out);
        keep(other);
        table.rms_column_sums(70, n, n, matrix.data(), means.data(), matrix.data(), out.data());
        keep(out);
    }
    if (n <= 64) {
        auto const rows = normal(7 * n, 8);
        auto const weights = normal(n * 19, 9);
        auto products = poison(7 * 19);
        table.product_in_rows({7, n, 19, rows.data(), n, weights.data(), 19, products.data(), 19});
        keep(products);
        table.dots_in_rows({7, n, 19, rows.data(), n, weights.data(), n, products.data(), 19});
        keep(products);
    }
    in_place = x;
    keep({table.softmax(n, 0.7F, in_place.data())});
    keep(in_place);
    in_place = x;
    table.probabilities(n, 0.7F, 2.5F, in_place.data());
    keep(in_place);
    in_place = y;
    table.score_gradient(n, x.data(), 0.3F, 0.2F, in_place.data());
    keep(in_place);
    keep_double(table.log_sum_exp(n, x.data()));
    float largest = 0;
    keep_double(table.sum_of_exp(n, x.data(), &largest));
    keep({largest});
    doubles const parts(size(n), 3.0);
    keep_double(table.joined_log_sum_exp(n, parts.data(), x.data()));
    table.exp_minus(n, x.data(), 1.5F, out.data());
    keep(out);
    all.push_back(table.largest_magnitude(n, x.data()));
    std::vector<std::int64_t> sums(size(n), 77);
    table.add_fixed(n, x.data(), 0x1p40, sums.data());
    table.add_integers(n, sums.data(), sums.data());
    for (auto const s : sums) {
        keep_double(std::bit_cast<double>(s));
    }
    table.to_floats(n, sums.data(), 0x1p-41, out.data());
    keep(out);
    auto m = normal(n, 5, 0.1F);
    auto v = normal(n, 6, 0.01F, 0.1F);
    auto master = x;
    for (auto& value : v) {
        value = std::fabs(value);
    }
    table.adamw(n, {0.5F, 0.9F, 0.1F, 0.999F, 0.001F, 1.2F, 1.1F, 1e-8F, 0.1F, 1e-3F}, y.data(), m.data(), v.data(), master.data());
    keep(m);
    keep(v);
    keep(master);
    keep_double(table.sum_of_squares(n, x.data()));
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    table.digest(99, ~std::uint64_t{0} - 5, n, x.data(), &high, &low);
    keep_double(std::bit_cast<double>(high));
    keep_double(std::bit_cast<double>(low));
    table.normal_values(stream, 13, n, 0.1, 2.0, out.data());
    keep(out);
    return all;
}

}  // namespace

TEST_CASE("loops: same bits at each instruction set and length")
{
    auto const& baseline = *detail::loops_of_level("baseline");
    CHECK(std::string{baseline.level} == "baseline");
    for (char const* level : {"v3", "v4"}) {
        auto const* table = detail::loops_of_level(level);
        if (table == nullptr) {
            WARN("this processor or build has no level " << level);
            continue;
        }
        CHECK(std::string{table->level} == level);
        for (std::int64_t const n : {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 1023, 1500, 2049}) {
            INFO(level << " at length " << n);
            CHECK(everything(*table, n) == everything(baseline, n));
        }
    }
    CHECK(detail::loops_of_level("v5") == nullptr);
}

TEST_CASE("exp: relative error below 3e-7")
{
    floats x;
    for (float v = -87.32F; v < 88.0F; v += 0.00137F) {
        x.push_back(v);
    }
    auto y = poison(std::ssize(x));
    detail::loops().exp_minus(std::ssize(x), x.data(), 0.0F, y.data());
    doubles expected;
    doubles bound;
    for (float const v : x) {
        expected.push_back(std::exp(static_cast<double>(v)));
        bound.push_back(3e-7 * expected.back());
    }
    check_within(y, expected, bound);
    floats const special{-88.0F, -1e30F, -std::numeric_limits<float>::infinity(), 0.0F, 1e30F, std::numeric_limits<float>::quiet_NaN()};
    floats out(6);
    detail::loops().exp_minus(6, special.data(), 0.0F, out.data());
    CHECK((out[0] == 0.0F && out[1] == 0.0F && out[2] == 0.0F && out[3] == 1.0F));
    CHECK((std::isfinite(out[4]) && std::isnan(out[5])));
}

TEST_CASE("loops: random strips are the words of the stream")
{
    random_key const key{.seed = 9, .step = step_id{4}};
    auto const stream = stream_of(key);
    std::uint64_t const first = (std::uint64_t{1} << 30) - 1;  // the counter's low half wraps within
    std::vector<std::uint32_t> words(192);
    detail::loops().random_strips({{stream.key[0], stream.key[1]}, {stream.high[0], stream.high[1]}}, first, 3, words.data());
    for (std::size_t i = 0; i < words.size(); ++i) {
        CHECK(words[i] == random_word(stream, first * 64 + i));
    }
}

TEST_CASE("log sum exp: error below 1e-6; NaN passes")
{
    // each exponential is within 3e-7; blocks of 1024 in 32 lanes add up to 37 roundings (2e-6 at worst, all of one sign;
    // random signs give some 4e-7), and x - largest is rounded once: u * |x - largest| of exponents where it matters, < 1e-6
    for (std::int64_t const n : {1, 3, 16, 50, 1000, 1024, 1025, 50257}) {
        auto const x = normal(n, static_cast<unsigned>(n), 2.0F);
        double sum = 0;
        for (float const v : x) {
            sum += std::exp(static_cast<double>(v));
        }
        CHECK(std::fabs(detail::loops().log_sum_exp(n, x.data()) - std::log(sum)) < 1e-6);
        auto broken = x;
        broken[size(n / 2)] = std::numeric_limits<float>::quiet_NaN();
        CHECK(std::isnan(detail::loops().log_sum_exp(n, broken.data())));
        broken[size(n / 2)] = std::numeric_limits<float>::infinity();
        CHECK(std::isnan(detail::loops().log_sum_exp(n, broken.data())));
    }
    floats const far{1000.0F, -1000.0F, 999.0F};
    CHECK(detail::loops().log_sum_exp(3, far.data()) == Approx(1000.0 + std::log1p(std::exp(-1.0))).epsilon(1e-9));
}
