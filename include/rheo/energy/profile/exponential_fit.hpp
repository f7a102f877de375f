#pragma once
// SPDX-License-Identifier: Apache-2.0

// The published cost model (Chung et al., Perseus, SOSP 2024, section 4.1, and the package lowtime), for comparison:
// times floored to a unit, options filtered by a noisy Pareto test, the dearest option of each bucket kept, then
// a exp(b q) + c fitted by least squares. It is smooth and it is not the device: between options it promises what
// the device may miss by joules. Where lowtime tries 54 beginnings and keeps the best, we minimise over b alone, as
// a and c follow from b by linear least squares (variable projection; Golub and Pereyra 1973). At run time only.

#include <cmath>
#include <cstddef>
#include <vector>

#include "rheo/energy/profile/cost_curve.hpp"

namespace rheo::inline v0 {

/// An option as the published method sees it.
struct bucketed_option {
    ticks time;   ///< floored
    double cost;  ///< J, e - P_b x the floored time
    seconds real_time;
    clock_option measured;
};

/// a exp(b q) + c in joules, q in ticks.
struct exponential_model {
    double a;
    double b;
    double c;
    double error;  ///< mean of the squares
};

/// Options that no other beats in both time and cost once theirs are multiplied by `noise`, the dearest of each
/// bucket, fastest first. @pre options not empty
template <class OnlyWhenCalled = void>
std::vector<bucketed_option> bucketed(std::vector<clock_option> const& options, watts blocking, seconds unit, double noise = 1.0)
{
    auto const tick = detail::whole_unit(unit);
    std::vector<bucketed_option> all;
    for (auto const& option : options) {
        ticks const time{static_cast<std::int32_t>(static_cast<std::int64_t>(option.time.count * 1e9) / tick)};
        all.push_back({time, (option.energy - blocking * (time.count * unit)).count, option.time, option});
    }
    std::vector<bucketed_option> kept;
    for (auto const& option : all) {
        bool beaten = false;
        for (auto const& other : all) {
            beaten = beaten || (other.real_time < option.real_time * noise && other.measured.energy < option.measured.energy * noise);
        }
        if (beaten) {
            continue;
        }
        if (!kept.empty() && kept.back().time == option.time) {
            if (option.measured.energy > kept.back().measured.energy) {
                kept.back() = option;
            }
        } else {
            kept.push_back(option);
        }
    }
    return kept;
}

namespace detail {

/// The best a and c for a rate b, by linear least squares.
template <class OnlyWhenCalled = void>
exponential_model fit_for_rate(std::vector<bucketed_option> const& points, double b)
{
    auto const n = static_cast<double>(points.size());
    double const origin = points.front().time.count;  // exp near 1: a is scaled back at the end
    double mean_x = 0.0;
    double mean_y = 0.0;
    for (auto const& p : points) {
        mean_x += std::exp(b * (p.time.count - origin)) / n;
        mean_y += p.cost / n;
    }
    double xx = 0.0;
    double xy = 0.0;
    for (auto const& p : points) {
        auto const x = std::exp(b * (p.time.count - origin)) - mean_x;
        xx += x * x;
        xy += x * (p.cost - mean_y);
    }
    auto const a = xx > 0.0 ? xy / xx : 0.0;
    auto const c = mean_y - a * mean_x;
    double error = 0.0;
    for (auto const& p : points) {
        auto const miss = a * std::exp(b * (p.time.count - origin)) + c - p.cost;
        error += miss * miss / n;
    }
    return {a * std::exp(-b * origin), b, c, error};
}

}  // namespace detail

/// The least-squares fit with a falling exponential. @pre points not empty
template <class OnlyWhenCalled = void>
exponential_model fit_exponential(std::vector<bucketed_option> const& points)
{
    double const span = points.back().time.count - points.front().time.count;
    if (span <= 0.0) {
        return {0.0, 0.0, points.front().cost, 0.0};
    }
    auto const rate = [&](double x) { return -std::exp(x) / span; };  // x = ln(decay over the whole span)
    double best = std::log(1e-3);
    exponential_model model = detail::fit_for_rate(points, rate(best));
    for (int k = 1; k <= 400; ++k) {
        auto const x = std::log(1e-3) + k * (std::log(1e3) - std::log(1e-3)) / 400;
        if (auto const tried = detail::fit_for_rate(points, rate(x)); tried.error < model.error && tried.a >= 0.0) {
            model = tried;
            best = x;
        }
    }
    auto const step = (std::log(1e3) - std::log(1e-3)) / 400;
    double low = best - step;
    double high = best + step;
    double const golden = 0.6180339887498949;
    for (int k = 0; k < 80; ++k) {
        auto const left = high - golden * (high - low);
        auto const right = low + golden * (high - low);
        if (detail::fit_for_rate(points, rate(left)).error <= detail::fit_for_rate(points, rate(right)).error) {
            high = right;
        } else {
            low = left;
        }
    }
    return detail::fit_for_rate(points, rate((low + high) / 2));
}

/// The model at a time, in joules.
inline double cost_of(exponential_model const& model, ticks time) { return model.a * std::exp(model.b * time.count) + model.c; }

/// The published cost of an operation: a breakpoint at every tick between its fastest and its slowest bucket. As
/// published, fewer than four options are taken again with a noise factor of 0.95. @pre options not empty
template <class OnlyWhenCalled = void>
cost_curve exponential_curve(std::vector<clock_option> const& options, watts blocking, seconds unit)
{
    expects(!options.empty(), "an operation without options has no cost");
    auto points = bucketed(options, blocking, unit);
    if (points.size() <= 3) {
        points = bucketed(options, blocking, unit, 0.95);
    }
    auto const model = fit_exponential(points);
    std::vector<ticks> times;
    std::vector<nanojoules> costs;
    for (auto time = points.front().time; time <= points.back().time; time += ticks{1}) {
        times.push_back(time);
        costs.push_back(in_whole_nanojoules(joules{cost_of(model, time)}));
    }
    return detail::curve_through(times, costs);
}

}  // namespace rheo::inline v0
