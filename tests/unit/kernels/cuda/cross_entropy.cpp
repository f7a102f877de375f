// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t vocabulary;
};

template <class T>
struct inputs {
    shape s;
    std::vector<T> logits;
    int32s targets;

    explicit inputs(shape of)
        : s{of}, logits{stored<T>(normal(of.rows * of.vocabulary, 1, 4.0F))}, targets{tokens(of.rows, static_cast<std::int32_t>(of.vocabulary), 2)}
    {
        if (of.rows > 2) {
            targets[1] = ignored_target;
        }
    }
};

struct outputs {
    floats log_sum, gradient;
    loss_sum loss;
    friend bool operator==(outputs const& a, outputs const& b)
    {
        return all_bits(a.log_sum, a.gradient) == all_bits(b.log_sum, b.gradient) && a.loss == b.loss;
    }
};

template <class T>
outputs computed(inputs<T> const& in, std::size_t offset = 0)
{
    auto const [rows, vocabulary] = in.s;
    device::array<T> const logits{in.logits, offset}, gradient{rows * vocabulary}, both{in.logits, offset}, in_place{in.logits};
    device::array<std::int32_t> const targets{in.targets};
    device::array<float> const log_sum{rows};
    device::array<loss_sum> const loss{std::vector<loss_sum>(3)};
    auto const q = device::queue();
    cuda::cross_entropy_forward<policy<T>>(
        q, {.rows = rows, .vocabulary = vocabulary, .logits = logits.data(), .targets = targets.data(), .log_sum_exp = log_sum.data(), .loss = loss.data()});
    cuda::cross_entropy_forward<policy<T>>(
        q, {.rows = rows, .vocabulary = vocabulary, .logits = logits.data(), .targets = targets.data(), .loss = loss.data() + 2});
    cuda::cross_entropy_backward<policy<T>>(q, {.rows = rows,
                                                .vocabulary = vocabulary,
                                                .logits = logits.data(),
                                                .targets = targets.data(),
                                                .log_sum_exp = log_sum.data(),
                                                .logits_gradient = gradient.data()});
    cuda::cross_entropy_backward<policy<T>>(q, {.rows = rows,
                                                .vocabulary = vocabulary,
                                                .logits = in_place.data(),
                                                .targets = targets.data(),
                                                .log_sum_exp = log_sum.data(),
                                                .logits_gradient = in_place.data()});
    cuda::cross_entropy_fused<policy<T>>(q,
                                         {.rows = rows, .vocabulary = vocabulary, .logits = both.data(), .targets = targets.data(), .loss = loss.data() + 1});
    auto const losses = loss.host();
    CHECK((losses[0] == losses[1] && losses[0] == losses[2]));
    CHECK(all_bits(both.host(), in_place.host()) == all_bits(gradient.host(), gradient.host()));
    CHECK((logits.margins_kept() && gradient.margins_kept() && both.margins_kept() && targets.margins_kept() && log_sum.margins_kept() && loss.margins_kept()));
    return {single(log_sum.host()), single(gradient.host()), losses[0]};
}

}  // namespace

TEMPLATE_TEST_CASE("cuda cross entropy: matches double; fused equals both", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{1, 1}, shape{3, 7}, shape{5, 33}, shape{3, 1000}, shape{2, 20008}}) {
        INFO(s.rows << " x " << s.vocabulary);
        inputs<T> const in{s};
        auto const d = same_in_every_order([&] { return computed(in); });
        CHECK(computed(in, 1) == d);
        auto const wide_logits = as<double>(in.logits);
        doubles log_sum(size(s.rows)), gradient(wide_logits.size());
        loss_sum loss;
        definition::cross_entropy_forward<fp64>({.rows = s.rows,
                                                 .vocabulary = s.vocabulary,
                                                 .logits = wide_logits.data(),
                                                 .targets = in.targets.data(),
                                                 .log_sum_exp = log_sum.data(),
                                                 .loss = &loss});
        definition::cross_entropy_backward<fp64>({.rows = s.rows,
                                                  .vocabulary = s.vocabulary,
                                                  .logits = wide_logits.data(),
                                                  .targets = in.targets.data(),
                                                  .log_sum_exp = log_sum.data(),
                                                  .logits_gradient = gradient.data()});
        // A thread adds at most 20008 / 512 + 8 exponentials, each with 2 roundings and that of its argument, of size 32 at most; every new largest value and each of the
        // tree's ten levels scale the sum once more. What is relative to the sum is absolute in its logarithm.
        double const log_error = (20008.0 / 512 + 8 + 34 + 10 * 36) * u;
        check_within(d.log_sum, log_sum, log_error + u * 64);
        CHECK(d.loss.targets == loss.targets);
        CHECK(!d.loss.not_finite);
        CHECK(std::fabs(static_cast<double>(d.loss.fixed - loss.fixed)) <= static_cast<double>(s.rows) * (log_error * loss_units_per_nat + 1));
        doubles bound(gradient.size());
        for (std::size_t i = 0; i < bound.size(); ++i) {
            double const p = std::fabs(gradient[i]);
            bound[i] = (log_error + 64 * u + 40 * u) * (p + 1e-30) + roundoff<T> * p + 2 * u * (std::fabs(gradient[i]) < 1e-3 || gradient[i] > 0 ? p : 1);
        }
        check_within(d.gradient, gradient, bound);
    }
}

TEST_CASE("cuda cross entropy: losses add up; NaN is flagged, left out")
{
    inputs<float> in{{4, 600}};
    in.targets = {3, 5, ignored_target, 7};
    auto const good = computed(in);
    in.logits[600 + 5] = -std::numeric_limits<float>::infinity();
    auto const infinite = computed(in);
    CHECK((infinite.loss.not_finite && infinite.loss.targets == 3 && infinite.loss.fixed < good.loss.fixed));
    in.logits[600 + 5] = std::numeric_limits<float>::quiet_NaN();
    CHECK(computed(in).loss == infinite.loss);
    in.targets = int32s(4, ignored_target);
    auto const none = computed(in);
    CHECK(none.loss == loss_sum{});
    CHECK(none.gradient == floats(4 * 600, 0.0F));
}
