// SPDX-License-Identifier: Apache-2.0
// residual_add, and residual_norm against its parts: fusion changes no bit.
#include <tuple>

#include "kernels/residual_add/residual_add.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

dropout some_dropout(double probability)
{
    return {.probability = probability, .key = {.seed = 5, .step = step_id{3}, .microbatch = microbatch_id{1}, .layer = layer_id{2}, .op = op_id{4}}};
}

struct shape {
    std::int64_t rows;
    std::int64_t width;
};
constexpr shape shapes[] = {{1, 1}, {1, 5}, {3, 64}, {33, 100}, {70, 769}};

}  // namespace

TEST_CASE("dropout: drops its share, keeps the mean; p = 0 keeps all")
{
    definition::dropout_factor<double> const factor{some_dropout(0.25)};
    int dropped = 0;
    for (std::int64_t i = 0; i < 65536; ++i) {
        double const f = factor(i);
        CHECK((f == 0.0 || f == 1.0 / 0.75));
        dropped += f == 0.0 ? 1 : 0;
    }
    // mean 16384, deviation sqrt(65536 * 3/16) = 111; six of them
    CHECK(std::abs(dropped - 16384) < 666);
    definition::dropout_factor<double> const none{some_dropout(0.0)};
    CHECK(none(3) == 1.0);
    static_assert(dropout_threshold({.probability = 0.5}) == 0x80000000U && dropout_threshold({.probability = 0.0}) == 0);
    static_assert(dropout_threshold({.probability = 0.99999999999}) == 0xffffffffU);
}

TEST_CASE("residual add: gradient is the derivative")
{
    auto stream = wide(normal(40, 1));
    auto branch = wide(normal(40, 2));
    auto const dy = wide(normal(40, 3));
    doubles y(40);
    doubles db(40);
    auto const drop = some_dropout(0.3);
    auto const loss = [&] {
        definition::residual_add_forward<fp64>({.rows = 4, .width = 10, .stream = stream.data(), .branch = branch.data(), .drop = drop, .output = y.data()});
        return dot(y, dy);
    };
    definition::residual_add_backward<fp64>({.rows = 4, .width = 10, .output_gradient = dy.data(), .drop = drop, .branch_gradient = db.data()});
    check_derivative(branch, db, loss);
    check_derivative(stream, dy, loss);
}

TEST_CASE("residual add: host is the definition, bit for bit")
{
    // one product and one sum per element, each rounded where the definition rounds: no bound is needed
    for (auto const& s : shapes) {
        for (double const p : {0.0, 0.1}) {
            std::int64_t const n = s.rows * s.width;
            auto const stream = normal(n, 1);
            auto const branch = normal(n, 2);
            auto expected = poison(n);
            auto expected_gradient = poison(n);
            definition::residual_add_forward<fp32>(
                {.rows = s.rows, .width = s.width, .stream = stream.data(), .branch = branch.data(), .drop = some_dropout(p), .output = expected.data()});
            definition::residual_add_backward<fp32>(
                {.rows = s.rows, .width = s.width, .output_gradient = branch.data(), .drop = some_dropout(p), .branch_gradient = expected_gradient.data()});
            check_threads_change_no_bit([&](tile_pool& pool) {
                auto y = poison(n);
                auto db = poison(n);
                host::residual_add_forward(
                    pool, {.rows = s.rows, .width = s.width, .stream = stream.data(), .branch = branch.data(), .drop = some_dropout(p), .output = y.data()});
                host::residual_add_backward(
                    pool, {.rows = s.rows, .width = s.width, .output_gradient = branch.data(), .drop = some_dropout(p), .branch_gradient = db.data()});
                CHECK(bits(y) == bits(expected));
                CHECK(bits(db) == bits(expected_gradient));
                auto in_place = branch;
                host::residual_add_forward(
                    pool,
                    {.rows = s.rows, .width = s.width, .stream = stream.data(), .branch = in_place.data(), .drop = some_dropout(p), .output = in_place.data()});
                CHECK(bits(in_place) == bits(expected));
                in_place = branch;
                host::residual_add_backward(
                    pool, {.rows = s.rows, .width = s.width, .output_gradient = in_place.data(), .drop = some_dropout(p), .branch_gradient = in_place.data()});
                CHECK(bits(in_place) == bits(expected_gradient));
                return bits(y);
            });
        }
    }
}

TEST_CASE("residual norm: fused equals its parts, any threads")
{
    for (auto const& s : shapes) {
        for (double const p : {0.0, 0.1}) {
            std::int64_t const n = s.rows * s.width;
            auto const drop = some_dropout(p);
            auto const stream = normal(n, 1);
            auto const branch = normal(n, 2);
            auto const gamma = normal(s.width, 3);
            auto const beta = normal(s.width, 4);
            auto const dy = normal(n, 5);
            auto const bypass = normal(n, 6);
            tile_pool one{1};
            auto residual = poison(n);
            auto y = poison(n);
            auto mean = poison(s.rows);
            auto rstd = poison(s.rows);
            auto dstream = poison(n);
            auto dbranch = poison(n);
            host::residual_add_forward(
                one, {.rows = s.rows, .width = s.width, .stream = stream.data(), .branch = branch.data(), .drop = drop, .output = residual.data()});
            host::layer_norm_forward(one, {.rows = s.rows,
                                           .width = s.width,
                                           .input = residual.data(),
                                           .gamma = gamma.data(),
                                           .beta = beta.data(),
                                           .output = y.data(),
                                           .mean = mean.data(),
                                           .rstd = rstd.data()});
            host::layer_norm_backward_input(one, {.rows = s.rows,
                                                  .width = s.width,
                                                  .input = residual.data(),
                                                  .gamma = gamma.data(),
                                                  .mean = mean.data(),
                                                  .rstd = rstd.data(),
                                                  .output_gradient = dy.data(),
                                                  .bypass_gradient = bypass.data(),
                                                  .input_gradient = dstream.data()});
            host::residual_add_backward(one,
                                        {.rows = s.rows, .width = s.width, .output_gradient = dstream.data(), .drop = drop, .branch_gradient = dbranch.data()});
            auto const parts = std::tuple{bits(residual), bits(y), bits(mean), bits(rstd), bits(dstream), bits(dbranch)};
            check_threads_change_no_bit([&](tile_pool& pool) {
                auto r = poison(n);
                auto out = poison(n);
                auto m = poison(s.rows);
                auto rs = poison(s.rows);
                auto ds = poison(n);
                auto db = poison(n);
                host::residual_norm_forward(pool, {.rows = s.rows,
                                                   .width = s.width,
                                                   .stream = stream.data(),
                                                   .branch = branch.data(),
                                                   .drop = drop,
                                                   .gamma = gamma.data(),
                                                   .beta = beta.data(),
                                                   .residual = r.data(),
                                                   .output = out.data(),
                                                   .mean = m.data(),
                                                   .rstd = rs.data()});
                host::residual_norm_backward(pool, {.rows = s.rows,
                                                    .width = s.width,
                                                    .residual = r.data(),
                                                    .gamma = gamma.data(),
                                                    .mean = m.data(),
                                                    .rstd = rs.data(),
                                                    .output_gradient = dy.data(),
                                                    .bypass_gradient = bypass.data(),
                                                    .drop = drop,
                                                    .stream_gradient = ds.data(),
                                                    .branch_gradient = db.data()});
                auto const fused = std::tuple{bits(r), bits(out), bits(m), bits(rs), bits(ds), bits(db)};
                CHECK(fused == parts);
                return fused;
            });
        }
    }
}

TEST_CASE("residual norm: gradients are the derivatives")
{
    std::int64_t const rows = 3;
    std::int64_t const width = 6;
    auto stream = wide(normal(rows * width, 1));
    auto branch = wide(normal(rows * width, 2));
    auto const gamma = wide(normal(width, 3));
    auto const beta = wide(normal(width, 4));
    auto const dy = wide(normal(rows * width, 5));
    auto const dr = wide(normal(rows * width, 6));
    doubles r(size(rows * width));
    doubles y(r.size());
    doubles mean(size(rows));
    doubles rstd(size(rows));
    auto const drop = some_dropout(0.3);
    auto const loss = [&] {
        definition::residual_norm_forward<fp64>({.rows = rows,
                                                 .width = width,
                                                 .stream = stream.data(),
                                                 .branch = branch.data(),
                                                 .drop = drop,
                                                 .gamma = gamma.data(),
                                                 .beta = beta.data(),
                                                 .residual = r.data(),
                                                 .output = y.data(),
                                                 .mean = mean.data(),
                                                 .rstd = rstd.data()});
        return dot(y, dy) + dot(r, dr);
    };
    loss();
    doubles ds(r.size());
    doubles db(r.size());
    definition::residual_norm_backward<fp64>({.rows = rows,
                                              .width = width,
                                              .residual = r.data(),
                                              .gamma = gamma.data(),
                                              .mean = mean.data(),
                                              .rstd = rstd.data(),
                                              .output_gradient = dy.data(),
                                              .bypass_gradient = dr.data(),
                                              .drop = drop,
                                              .stream_gradient = ds.data(),
                                              .branch_gradient = db.data()});
    check_derivative(stream, ds, loss);
    check_derivative(branch, db, loss);
}

TEST_CASE("residual: dropout refuses a probability that is none")
{
    for (double const p : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
        CHECK_THROWS_AS(dropout_threshold({.probability = p}), precondition_error);
    }
}
