// SPDX-License-Identifier: Apache-2.0
// The reduction of a step's totals, tried against the plain meaning of each field: random ranks are packed, reduced value by value as all_reduce
// does it, and unpacked.
#include "executor/train/parts/step_totals.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "rheo/units/expects.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr step_totals::sizes some{.tensors = 5, .scales = 7, .members = 4, .metered = 3};

step_totals random_totals(std::mt19937_64& random)
{
    auto const below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    auto const number = [&] { return std::ldexp(static_cast<double>(random() >> 11), below(100) - 80); };
    step_totals t{some};
    std::generate(t.squares.begin(), t.squares.end(), number);
    std::generate(t.magnitudes.begin(), t.magnitudes.end(), [&] { return static_cast<float>(number()); });
    std::generate(t.slowness.begin(), t.slowness.end(), [&] { return below(3) == 0 ? 0.0 : 1.0 + below(5); });
    std::generate(t.meter_known.begin(), t.meter_known.end(), [&] { return below(2); });
    std::generate(t.meter_count.begin(), t.meter_count.end(), number);
    std::generate(t.leaving.begin(), t.leaving.end(), [&] { return below(4) == 0; });
    t.changed_file = below(2) == 0 ? std::nullopt : std::optional{static_cast<std::size_t>(below(3))};
    t.overflow = below(4) == 0;
    t.stop_requested = below(4) == 0;
    t.checkpoint_wanted = below(4) == 0;
    t.not_finite = below(2) == 0 ? std::nullopt : std::optional{not_finite_place{microbatch_id{below(100000)}, layer_id{below(1000)}}};
    t.device_clocks = static_cast<std::size_t>(below(90));
    t.loss = {below(1 << 30) - (std::int64_t{1} << 50), below(1 << 30), below(4) == 0};
    t.contributions = std::int64_t{below(1 << 30)} << 20;
    t.computing = {(std::int64_t{below(1 << 30)} << 30) - 17};
    return t;
}

/// As all_reduce combines them.
step_scalars reduced(step_scalars a, step_scalars const& b)
{
    for (std::size_t i = 0; i < a.maxima.size(); ++i) {
        a.maxima[i] = std::max(a.maxima[i], b.maxima[i]);
    }
    for (std::size_t i = 0; i < a.sums.size(); ++i) {
        a.sums[i] += b.sums[i];
    }
    return a;
}

template <class T>
std::vector<T> largest(std::vector<T> a, std::vector<T> const& b)
{
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = std::max<T>(a[i], b[i]);
    }
    return a;
}

/// What two ranks have together, field by field.
step_totals together(step_totals a, step_totals const& b)
{
    a.squares = largest(a.squares, b.squares);
    a.magnitudes = largest(a.magnitudes, b.magnitudes);
    a.slowness = largest(a.slowness, b.slowness);
    a.meter_known = largest(a.meter_known, b.meter_known);
    a.meter_count = largest(a.meter_count, b.meter_count);
    a.changed_file = std::max(a.changed_file, b.changed_file);  // none is less than any
    a.overflow = a.overflow || b.overflow;
    a.stop_requested = a.stop_requested || b.stop_requested;
    a.checkpoint_wanted = a.checkpoint_wanted || b.checkpoint_wanted;
    for (std::size_t i = 0; i < a.leaving.size(); ++i) {
        a.leaving[i] = a.leaving[i] || b.leaving[i];
    }
    auto const order = [](not_finite_place p) { return std::pair{p.microbatch.value, p.layer.value}; };
    if (b.not_finite && (!a.not_finite || order(*b.not_finite) < order(*a.not_finite))) {
        a.not_finite = b.not_finite;
    }
    a.device_clocks = std::min(a.device_clocks, b.device_clocks);
    a.loss = a.loss + b.loss;
    a.contributions += b.contributions;
    a.computing.count += b.computing.count;
    return a;
}

}  // namespace

TEST_CASE("step totals: unpacked as they were packed")
{
    std::mt19937_64 random{1};
    for (int i = 0; i < 1000; ++i) {
        auto const totals = random_totals(random);
        step_totals back{some};
        unpack(packed(totals), back);
        REQUIRE(back == totals);
    }
    step_totals other{{.tensors = 5, .scales = 7, .members = 4, .metered = 2}};
    CHECK_THROWS_AS(unpack(packed(step_totals{some}), other), precondition_error);
}

TEST_CASE("step totals: reduced by value as by field")
{
    std::mt19937_64 random{2};
    for (int i = 0; i < 1000; ++i) {
        auto expected = random_totals(random);
        auto scalars = packed(expected);
        for (auto ranks = 1 + random() % 5; ranks > 1; --ranks) {
            auto const other = random_totals(random);
            scalars = reduced(std::move(scalars), packed(other));
            expected = together(std::move(expected), other);
        }
        step_totals found{some};
        unpack(scalars, found);
        REQUIRE(found == expected);
    }
}

TEST_CASE("step totals: norm of the gradient per target")
{
    step_totals totals{{.tensors = 2}};
    totals.squares = {36.0, 64.0};
    CHECK(totals.targets() == 1.0);  // where none counted
    CHECK(totals.gradient_norm() == 10.0);
    totals.loss.targets = 5;
    CHECK(totals.gradient_norm() == 2.0);
    totals.not_finite = {microbatch_id{0}, layer_id{0}};
    CHECK(std::isnan(totals.gradient_norm()));
}
