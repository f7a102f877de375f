#pragma once
// SPDX-License-Identifier: Apache-2.0

// How long the marked steps of a rank took, which was the slowest, and in which class of time it differs most from the others. Marks are the
// host's: work that a step launched may run on the device after its mark.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/analyze/device/device_account.hpp"
#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/analyze/distribution.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A class of time, and how much more of it there is than usual.
struct grown_class {
    time_class in{};
    whole_nanoseconds by{};

    friend constexpr bool operator==(grown_class const&, grown_class const&) = default;
};

struct step_times {
    distribution times;
    std::int64_t slowest = 0;            ///< number of the slowest step, the first of equals
    std::optional<grown_class> because;  ///< of the slowest step against the median of the others; nothing where no class has grown

    friend constexpr bool operator==(step_times const&, step_times const&) = default;
};

/// The class that stands out of the others' by most: against the median of each class. @pre place < accounts.size()
template <class OnlyWhenCalled = void>
std::optional<grown_class> most_grown(std::vector<device_account> const& accounts, std::size_t place)
{
    std::optional<grown_class> most;
    std::vector<whole_nanoseconds> others;
    for (std::size_t c = 0; c < time_class_names.size() && accounts.size() > 1; ++c) {
        auto const in = static_cast<time_class>(c);
        others.clear();
        for (std::size_t k = 0; k < accounts.size(); ++k) {
            if (k != place) {
                others.push_back(time_in(accounts[k], in));
            }
        }
        auto const by = time_in(accounts[place], in) - median_of(others);
        if (by > whole_nanoseconds{} && (!most || by > most->by)) {
            most = grown_class{in, by};
        }
    }
    return most;
}

/// @pre the trace is in order. Cost: linear, and six medians of the steps.
template <class OnlyWhenCalled = void>
step_times steps_of(rank_trace const& trace)
{
    step_times summary;
    std::vector<whole_nanoseconds> times;
    std::vector<whole_nanoseconds> bounds;  // begin and end of each step: its window is every other one
    std::size_t slowest = 0;
    for (auto const& step : trace.steps) {
        times.push_back(step.end - step.begin);
        slowest = times.back() > times[slowest] ? times.size() - 1 : slowest;
        bounds.push_back(bounds.empty() ? step.begin : std::max(step.begin, bounds.back()));
        bounds.push_back(std::max(step.end, bounds.back()));
    }
    if (times.empty()) {
        return summary;
    }
    summary.slowest = trace.steps[slowest].number;
    summary.times = distribution_of(std::move(times));
    auto const windows = accounts_between(trace, bounds);
    std::vector<device_account> accounts;
    for (std::size_t k = 0; k < windows.size(); k += 2) {
        accounts.push_back(windows[k]);
    }
    summary.because = most_grown(accounts, slowest);
    return summary;
}

}  // namespace rheo::inline v0
