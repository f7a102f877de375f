// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include <tuple>

#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t vocabulary;
};
constexpr shape shapes[] = {{1, 1}, {1, 3}, {7, 50}, {13, 257}, {5, 5003}};

/// Targets, every fifth ignored.
int32s targets_of(shape s)
{
    auto targets = tokens(s.rows, static_cast<std::int32_t>(s.vocabulary), 3);
    for (std::size_t r = 4; r < targets.size(); r += 5) {
        targets[r] = ignored_target;
    }
    return targets;
}

}  // namespace

static_assert(mean_loss({.fixed = 3 << 24, .targets = 2, .not_finite = true}) != mean_loss({.fixed = 3 << 24, .targets = 2, .not_finite = true}));  // NaN
static_assert(mean_loss({}) == 0.0 && mean_loss({.fixed = 3 << 24, .targets = 2}) == 1.5);
static_assert((loss_sum{1, 2, false} + loss_sum{10, 20, true}) == loss_sum{11, 22, true});

TEST_CASE("cross entropy: gradient is the derivative")
{
    shape const s{6, 9};
    auto x = wide(normal(s.rows * s.vocabulary, 1));
    auto const targets = targets_of(s);
    doubles lse(size(s.rows));
    doubles gradient(x.size());
    loss_sum ignored;
    definition::cross_entropy_forward<fp64>(
        {.rows = s.rows, .vocabulary = s.vocabulary, .logits = x.data(), .targets = targets.data(), .log_sum_exp = lse.data(), .loss = &ignored});
    definition::cross_entropy_backward<fp64>({.rows = s.rows,
                                              .vocabulary = s.vocabulary,
                                              .logits = x.data(),
                                              .targets = targets.data(),
                                              .log_sum_exp = lse.data(),
                                              .logits_gradient = gradient.data()});
    // the recorded loss is rounded to 2^-24 nat, too coarse for differences: take the same loss before its rounding
    check_derivative(x, gradient, [&] {
        double loss = 0;
        for (std::int64_t r = 0; r < s.rows; ++r) {
            if (targets[size(r)] != ignored_target) {
                loss += definition::log_sum_exp_of(x.data() + r * s.vocabulary, s.vocabulary) - x[size(r * s.vocabulary + targets[size(r)])];
            }
        }
        return loss;
    });
    double loss = 0;
    for (std::int64_t r = 0; r < s.rows; ++r) {
        loss += targets[size(r)] == ignored_target ? 0.0 : lse[size(r)] - x[size(r * s.vocabulary + targets[size(r)])];
    }
    CHECK(ignored.targets == 5);
    CHECK(std::fabs(static_cast<double>(ignored.fixed) / loss_units_per_nat - loss) <= 5 * 0.5 / loss_units_per_nat);
}

TEST_CASE("cross entropy: host matches double; fused equals unfused")
{
    tile_pool pool{2};
    for (auto const& s : shapes) {
        INFO(s.rows << " x " << s.vocabulary);
        auto const x = normal(s.rows * s.vocabulary, 1, 3.0F);
        auto const targets = targets_of(s);
        auto const xd = wide(x);
        doubles lse(size(s.rows));
        doubles expected(x.size());
        loss_sum expected_loss;
        definition::cross_entropy_forward<fp64>(
            {.rows = s.rows, .vocabulary = s.vocabulary, .logits = xd.data(), .targets = targets.data(), .log_sum_exp = lse.data(), .loss = &expected_loss});
        definition::cross_entropy_backward<fp64>({.rows = s.rows,
                                                  .vocabulary = s.vocabulary,
                                                  .logits = xd.data(),
                                                  .targets = targets.data(),
                                                  .log_sum_exp = lse.data(),
                                                  .logits_gradient = expected.data()});
        auto host_lse = poison(s.rows);
        auto gradient = poison(std::ssize(x));
        loss_sum loss{.fixed = 100, .targets = 1};
        host::cross_entropy_forward(
            pool, {.rows = s.rows, .vocabulary = s.vocabulary, .logits = x.data(), .targets = targets.data(), .log_sum_exp = host_lse.data(), .loss = &loss});
        host::cross_entropy_backward(pool, {.rows = s.rows,
                                            .vocabulary = s.vocabulary,
                                            .logits = x.data(),
                                            .targets = targets.data(),
                                            .log_sum_exp = host_lse.data(),
                                            .logits_gradient = gradient.data()});
        CHECK(loss.targets == expected_loss.targets + 1);
        CHECK_FALSE(loss.not_finite);
        // each row's log sum exp is within 1e-6 (tests/unit/kernels/loops.cpp), and rounded to fixed point twice
        CHECK(std::fabs(static_cast<double>(loss.fixed - 100 - expected_loss.fixed)) <=
              static_cast<double>(expected_loss.targets) * (1e-6 * loss_units_per_nat + 1));
        // p = exp(x - lse): the argument is off by 1e-6 and u (|x| + |lse|) < 2e-6, the exponential by 3e-7, one subtraction
        doubles bound(expected.size());
        for (std::size_t i = 0; i < bound.size(); ++i) {
            bound[i] = 4e-6 * (expected[i] < 0 ? expected[i] + 1 : expected[i]) + u;
        }
        check_within(gradient, expected, bound);
        auto fused = x;
        loss_sum fused_loss{.fixed = 100, .targets = 1};
        host::cross_entropy_fused(pool, {.rows = s.rows, .vocabulary = s.vocabulary, .logits = fused.data(), .targets = targets.data(), .loss = &fused_loss});
        CHECK(bits(fused) == bits(gradient));
        CHECK(fused_loss == loss);
        check_threads_change_no_bit([&](tile_pool& threads) {
            auto in_place = x;
            loss_sum sum;
            host::cross_entropy_fused(threads,
                                      {.rows = s.rows, .vocabulary = s.vocabulary, .logits = in_place.data(), .targets = targets.data(), .loss = &sum});
            return std::tuple{bits(in_place), sum.fixed, sum.targets};
        });
    }
}

TEST_CASE("cross entropy: diverged row is flagged, bad target rejected")
{
    tile_pool pool{2};
    floats x{0.0F, 0.0F, std::numeric_limits<float>::quiet_NaN(), 0.0F, 3e6F, 0.0F};
    int32s const targets{0, 1, 1};
    loss_sum loss;
    host::cross_entropy_forward(pool, {.rows = 3, .vocabulary = 2, .logits = x.data(), .targets = targets.data(), .loss = &loss});
    CHECK(loss.not_finite);
    CHECK(loss.targets == 3);
    CHECK(loss.fixed == std::llround(std::log(2.0) * loss_units_per_nat));
    for (std::int32_t const bad : {2, -2}) {
        int32s const wrong{bad, 0, 0};
        CHECK_THROWS_AS(host::cross_entropy_fused(pool, {.rows = 3, .vocabulary = 2, .logits = x.data(), .targets = wrong.data(), .loss = &loss}),
                        precondition_error);
    }
}
