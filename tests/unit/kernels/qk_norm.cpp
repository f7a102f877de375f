// SPDX-License-Identifier: Apache-2.0
// The norm of a head is rms_norm of its row: the host's bits are those of that kernel; gradients of the definition are derivatives.
#include "kernels/qk_norm/qk_norm.hpp"

#include <tuple>

#include "kernels/rms_norm/rms_norm.hpp"
#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t width;  ///< of a head

    std::int64_t all() const { return heads + 2 * kv_heads; }
    std::int64_t normed() const { return heads + kv_heads; }
    std::int64_t elements() const { return rows * all() * width; }
};
constexpr shape shapes[] = {{1, 1, 1, 2}, {3, 4, 2, 6}, {33, 3, 3, 64}, {21, 6, 1, 100}};

struct inputs {
    floats x, query_gamma, key_gamma, dy;

    explicit inputs(shape s)
        : x{normal(s.elements(), 1, 2.0F)}, query_gamma{normal(s.width, 2, 0.3F, 1.0F)}, key_gamma{normal(s.width, 3, 0.3F, 1.0F)}, dy{normal(s.elements(), 4)}
    {
    }
};

struct reference {
    doubles output, rstd, input_gradient, query_gradient, key_gradient;

    reference(shape s, doubles const& x, doubles const& query_gamma, doubles const& key_gamma, doubles const& dy)
        : output(x.size()), rstd(size(s.normed() * s.rows)), input_gradient(x.size()), query_gradient(size(s.width)), key_gradient(size(s.width))
    {
        definition::qk_norm_forward<fp64>({.rows = s.rows,
                                           .heads = s.heads,
                                           .kv_heads = s.kv_heads,
                                           .head_width = s.width,
                                           .input = x.data(),
                                           .query_gamma = query_gamma.data(),
                                           .key_gamma = key_gamma.data(),
                                           .output = output.data(),
                                           .rstd = rstd.data()});
        definition::qk_norm_backward_input<fp64>({.rows = s.rows,
                                                  .heads = s.heads,
                                                  .kv_heads = s.kv_heads,
                                                  .head_width = s.width,
                                                  .input = x.data(),
                                                  .query_gamma = query_gamma.data(),
                                                  .key_gamma = key_gamma.data(),
                                                  .rstd = rstd.data(),
                                                  .output_gradient = dy.data(),
                                                  .input_gradient = input_gradient.data()});
        definition::qk_norm_backward_weight<fp64>({.rows = s.rows,
                                                   .heads = s.heads,
                                                   .kv_heads = s.kv_heads,
                                                   .head_width = s.width,
                                                   .input = x.data(),
                                                   .rstd = rstd.data(),
                                                   .output_gradient = dy.data(),
                                                   .query_gradient = {query_gradient.data()},
                                                   .key_gradient = {key_gradient.data()}});
    }
};

struct result {
    floats output, rstd, input_gradient;
    exact_buffer query_gradient, key_gradient;

    result(tile_pool& pool, shape s, inputs const& in)
        : output(poison(s.elements())), rstd(poison(s.normed() * s.rows)), input_gradient(poison(s.elements())), query_gradient(s.width), key_gradient(s.width)
    {
        host::qk_norm_forward(pool, {.rows = s.rows,
                                     .heads = s.heads,
                                     .kv_heads = s.kv_heads,
                                     .head_width = s.width,
                                     .input = in.x.data(),
                                     .query_gamma = in.query_gamma.data(),
                                     .key_gamma = in.key_gamma.data(),
                                     .output = output.data(),
                                     .rstd = rstd.data()});
        backward(pool, s, in, in.dy.data(), input_gradient.data());
        weights(pool, s, in, query_gradient.target(), key_gradient.target());
    }

    void backward(tile_pool& pool, shape s, inputs const& in, float const* dy, float* dx) const
    {
        host::qk_norm_backward_input(pool, {.rows = s.rows,
                                            .heads = s.heads,
                                            .kv_heads = s.kv_heads,
                                            .head_width = s.width,
                                            .input = in.x.data(),
                                            .query_gamma = in.query_gamma.data(),
                                            .key_gamma = in.key_gamma.data(),
                                            .rstd = rstd.data(),
                                            .output_gradient = dy,
                                            .input_gradient = dx});
    }
    void weights(tile_pool& pool, shape s, inputs const& in, gradient_sum_of<dtype::i64> queries, gradient_sum_of<dtype::i64> keys) const
    {
        host::qk_norm_backward_weight(pool, {.rows = s.rows,
                                             .heads = s.heads,
                                             .kv_heads = s.kv_heads,
                                             .head_width = s.width,
                                             .input = in.x.data(),
                                             .rstd = rstd.data(),
                                             .output_gradient = in.dy.data(),
                                             .query_gradient = queries,
                                             .key_gradient = keys});
    }
};

/// One head of a matrix, as rows of its own.
floats head_of(floats const& matrix, shape s, std::int64_t head)
{
    floats rows;
    for (std::int64_t r = 0; r < s.rows; ++r) {
        auto const first = matrix.begin() + (r * s.all() + head) * s.width;
        rows.insert(rows.end(), first, first + s.width);
    }
    return rows;
}

}  // namespace

TEST_CASE("qk norm: gradients are the derivatives")
{
    shape const s{3, 4, 2, 6};
    inputs const in{s};
    auto x = wide(in.x);
    auto query_gamma = wide(in.query_gamma);
    auto key_gamma = wide(in.key_gamma);
    auto const dy = wide(in.dy);
    reference const r{s, x, query_gamma, key_gamma, dy};
    auto const loss = [&] { return dot(reference{s, x, query_gamma, key_gamma, dy}.output, dy); };
    check_derivative(x, r.input_gradient, loss);
    check_derivative(query_gamma, r.query_gradient, loss);
    check_derivative(key_gamma, r.key_gradient, loss);
}

TEST_CASE("qk norm: a head has the bits of rms norm of its rows")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        INFO(s.heads << " heads of " << s.width);
        inputs const in{s};
        result const all{pool, s, in};
        for (std::int64_t h = 0; h < s.all(); ++h) {
            auto const x = head_of(in.x, s, h);
            auto const dy = head_of(in.dy, s, h);
            if (h >= s.normed()) {
                CHECK(bits(head_of(all.output, s, h)) == bits(x));
                CHECK(bits(head_of(all.input_gradient, s, h)) == bits(dy));
                continue;
            }
            auto const& gamma = h < s.heads ? in.query_gamma : in.key_gamma;
            auto y = poison(s.rows * s.width), dx = y, rstd = poison(s.rows);
            host::rms_norm_forward(pool, {.rows = s.rows, .width = s.width, .input = x.data(), .gamma = gamma.data(), .output = y.data(), .rstd = rstd.data()});
            host::rms_norm_backward_input(pool, {.rows = s.rows,
                                                 .width = s.width,
                                                 .input = x.data(),
                                                 .gamma = gamma.data(),
                                                 .rstd = rstd.data(),
                                                 .output_gradient = dy.data(),
                                                 .input_gradient = dx.data()});
            CHECK(bits(head_of(all.output, s, h)) == bits(y));
            CHECK(bits(head_of(all.input_gradient, s, h)) == bits(dx));
            CHECK(bits(floats(all.rstd.begin() + h * s.rows, all.rstd.begin() + (h + 1) * s.rows)) == bits(rstd));
        }
    }
}

TEST_CASE("qk norm: weight gradients match double")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        inputs const in{s};
        result const h{pool, s, in};
        reference const r{s, wide(in.x), wide(in.query_gamma), wide(in.key_gamma), wide(in.dy)};
        // As of rms_norm's test, with the heads' sums added one after the other.
        double const error = (static_cast<double>(s.width) / 64 + 12) / 2 + 8 + static_cast<double>(s.rows + s.heads);
        auto const check = [&](exact_buffer const& got, doubles const& expected, std::int64_t first, std::int64_t last) {
            doubles bound(expected.size());
            for (std::int64_t c = 0; c < s.width; ++c) {
                for (std::int64_t row = 0; row < s.rows; ++row) {
                    for (auto head = first; head < last; ++head) {
                        auto const i = size((row * s.all() + head) * s.width + c);
                        bound[size(c)] += error * u * std::fabs(double(in.dy[i]) * double(in.x[i])) * r.rstd[size(head * s.rows + row)];
                    }
                }
                bound[size(c)] += 1e-7 * std::fabs(expected[size(c)]) + fixed_error(got);
            }
            check_within(got.values(), expected, bound);
        };
        check(h.query_gradient, r.query_gradient, 0, s.heads);
        check(h.key_gradient, r.key_gradient, s.heads, s.normed());
    }
}

TEST_CASE("qk norm: threads change no bit; one sum alone; in place")
{
    for (auto const& s : shapes) {
        inputs const in{s};
        check_threads_change_no_bit([&](tile_pool& pool) {
            result const h{pool, s, in};
            auto in_place = in.dy;
            h.backward(pool, s, in, in_place.data(), in_place.data());
            CHECK(bits(in_place) == bits(h.input_gradient));
            exact_buffer queries{s.width}, keys{s.width};
            h.weights(pool, s, in, queries.target(), {});
            h.weights(pool, s, in, {}, keys.target());
            CHECK(queries == h.query_gradient);
            CHECK(keys == h.key_gradient);
            return std::tuple{bits(h.output), bits(h.rstd), bits(h.input_gradient), h.query_gradient, h.key_gradient};
        });
    }
}
