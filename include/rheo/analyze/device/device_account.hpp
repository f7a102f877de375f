#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where the time of a device went, for all of a trace or for windows of it. What runs at once is counted once: times are lengths of unions of
// intervals, found by one pass over events that are sorted by their begins.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rheo/analyze/device/gap.hpp"
#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct device_account {
    whole_nanoseconds span{};           ///< from the first begin to the last end
    whole_nanoseconds busy{};           ///< something runs
    whole_nanoseconds compute{};        ///< kernels that compute run
    whole_nanoseconds communication{};  ///< kernels that communicate run
    whole_nanoseconds overlap{};        ///< both at once
    whole_nanoseconds host_wait{};      ///< idle, because the next launch came late
    whole_nanoseconds kernel_wait{};    ///< idle between kernels
    whole_nanoseconds other_wait{};     ///< idle for another reason

    friend constexpr bool operator==(device_account const&, device_account const&) = default;
};

/// Time with nothing running.
constexpr whole_nanoseconds idle(device_account const& account) { return account.span - account.busy; }

/// Communication beside which nothing is computed.
constexpr whole_nanoseconds exposed(device_account const& account) { return account.communication - account.overlap; }

/// Each nanosecond of a span is in exactly one class.
enum class time_class : std::uint8_t { computation, communication, copies, host_wait, kernel_wait, other_wait };

inline constexpr std::array<std::string_view, 6> time_class_names{"computation", "exposed communication", "exposed copies",
                                                                  "host wait",   "kernel wait",           "other wait"};

constexpr std::string_view name_of(time_class c) { return time_class_names[static_cast<std::size_t>(c)]; }

constexpr whole_nanoseconds time_in(device_account const& account, time_class c)
{
    switch (c) {
    case time_class::computation: return account.compute;
    case time_class::communication: return exposed(account);
    case time_class::copies: return account.busy - account.compute - exposed(account);
    case time_class::host_wait: return account.host_wait;
    case time_class::kernel_wait: return account.kernel_wait;
    case time_class::other_wait: break;
    }
    return account.other_wait;
}

constexpr device_account& operator+=(device_account& sum, device_account const& account)
{
    sum.span += account.span;
    sum.busy += account.busy;
    sum.compute += account.compute;
    sum.communication += account.communication;
    sum.overlap += account.overlap;
    sum.host_wait += account.host_wait;
    sum.kernel_wait += account.kernel_wait;
    sum.other_wait += account.other_wait;
    return sum;
}

namespace detail {

/// A union of intervals that come by their begins; each part that is new is added to the windows in which it lies.
class window_union {
public:
    using member = whole_nanoseconds device_account::*;

    constexpr window_union(array_view<whole_nanoseconds const> bounds, array_view<device_account> accounts) : bounds_{bounds}, accounts_{accounts} {}

    /// @pre begins ascend
    constexpr void add(whole_nanoseconds begin, whole_nanoseconds end, member to)
    {
        begin = std::max(begin, until_);
        if (begin >= end) {
            return;
        }
        until_ = end;
        begin = std::max(begin, bounds_.front());
        while (begin < end && window_ < accounts_.size()) {
            auto const stop = std::min(end, bounds_[window_ + 1]);
            if (stop > begin) {
                accounts_[window_].*to += stop - begin;
                begin = stop;
            }
            window_ += bounds_[window_ + 1] <= begin ? 1 : 0;
        }
    }

private:
    array_view<whole_nanoseconds const> bounds_;
    array_view<device_account> accounts_;
    whole_nanoseconds until_{INT64_MIN};
    std::size_t window_ = 0;
};

}  // namespace detail

/// The last end of what ran. @pre there are events
template <class OnlyWhenCalled = void>
whole_nanoseconds last_end(rank_trace const& trace)
{
    auto const ends_before = [](device_event const& a, device_event const& b) { return a.end < b.end; };
    return std::max_element(trace.events.begin(), trace.events.end(), ends_before)->end;
}

/// The accounts of the windows between neighbouring bounds; of a window outside of the trace's span counts what is inside.
/// @pre the trace is in order; bounds ascend, and there are two at least. Cost: linear in events and windows.
template <class OnlyWhenCalled = void>
std::vector<device_account> accounts_between(rank_trace const& trace, array_view<whole_nanoseconds const> bounds)
{
    expects(bounds.size() > 1, "a window has two bounds");
    std::vector<device_account> accounts(bounds.size() - 1);
    if (trace.events.empty()) {
        return accounts;
    }
    array_view<device_account> const view{accounts};
    detail::window_union busy{bounds, view};
    detail::window_union compute{bounds, view};
    detail::window_union communication{bounds, view};
    detail::window_union either{bounds, view};
    detail::window_union idle{bounds, view};
    auto const first = trace.events.front().begin;
    auto until = first;
    for (auto const& event : trace.events) {
        if (event.begin > until) {
            auto const cause = cause_of_gap(trace, event, until);
            idle.add(until, event.begin,
                     cause == gap_cause::host_wait     ? &device_account::host_wait
                     : cause == gap_cause::kernel_wait ? &device_account::kernel_wait
                                                       : &device_account::other_wait);
        }
        until = std::max(until, event.end);
        busy.add(event.begin, event.end, &device_account::busy);
        if (event.work == device_work::compute) {
            compute.add(event.begin, event.end, &device_account::compute);
        } else if (event.work == device_work::communication) {
            communication.add(event.begin, event.end, &device_account::communication);
        }
        if (event.work != device_work::memory) {
            either.add(event.begin, event.end, &device_account::overlap);
        }
    }
    for (std::size_t k = 0; k < accounts.size(); ++k) {
        auto& account = accounts[k];
        account.overlap = account.compute + account.communication - account.overlap;
        account.span = std::max(whole_nanoseconds{}, std::min(bounds[k + 1], until) - std::max(bounds[k], first));
    }
    return accounts;
}

/// The account of the whole trace. @pre the trace is in order. Cost: linear.
template <class OnlyWhenCalled = void>
device_account account_of(rank_trace const& trace)
{
    if (trace.events.empty()) {
        return {};
    }
    std::array const bounds{trace.events.front().begin, last_end(trace)};
    return accounts_between(trace, bounds).front();
}

}  // namespace rheo::inline v0
