#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the row of one stage takes at least, whatever the other stages are: a microbatch has to come through all layers before it, and the last one to
// go back through them; the row computes all its items; and from each forward to the backward of the same microbatch passes the way
// through all layers behind the stage and back, which the row may not be able to fill with what its order puts in between. Stages
// that are neither first nor slowest are bound by it as well, so the least that a partition can have in its worst row
// is nearer to the makespan than the slowest stage is.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/program.hpp"

namespace rheo::inline v0::detail {

/// From a forward to its backward: what the row computes in between, and how often that is so, in windows of which no two overlap.
struct row_window {
    std::int64_t forwards;
    std::int64_t backwards;
    std::int64_t times;

    friend constexpr bool operator==(row_window const&, row_window const&) = default;
};

/// The windows of a row of whole forwards and backwards of one stage: the first one, the last one, and those that fit between them.
template <class OnlyWhenCalled = void>
constexpr std::vector<row_window> windows_of(std::vector<instruction> const& row)
{
    std::size_t items = 0;
    std::size_t first_backward = row.size();
    std::size_t last_forward = row.size();
    for (std::size_t i = 0; i < row.size(); ++i) {
        items = std::max(items, static_cast<std::size_t>(row[i].item) + 1);
        if (row[i].kind == instruction_kind::forward) {
            last_forward = i;
        } else if (first_backward == row.size()) {
            first_backward = i;
        }
    }
    std::vector<std::size_t> forward_at(items, row.size());
    std::vector<std::size_t> backward_at(items, row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        auto& at = row[i].kind == instruction_kind::forward ? forward_at : backward_at;
        at[static_cast<std::size_t>(row[i].item)] = i;
    }
    std::vector<row_window> windows;
    auto const add = [&](std::size_t from, std::size_t to) {
        row_window window{0, 0, 1};
        for (auto i = from + 1; i < to; ++i) {
            ++(row[i].kind == instruction_kind::forward ? window.forwards : window.backwards);
        }
        for (auto& known : windows) {
            if (known.forwards == window.forwards && known.backwards == window.backwards) {
                ++known.times;
                return;
            }
        }
        windows.push_back(window);
    };
    if (first_backward == row.size() || last_forward == row.size()) {
        return windows;
    }
    auto const item_at = [&](std::size_t i) { return static_cast<std::size_t>(row[i].item); };
    auto const last_ends = backward_at[item_at(last_forward)];
    add(forward_at[item_at(first_backward)], first_backward);
    for (auto i = first_backward + 1; i < last_forward; ++i) {
        if (row[i].kind == instruction_kind::forward && backward_at[item_at(i)] < last_forward) {
            add(i, backward_at[item_at(i)]);
            i = backward_at[item_at(i)];
        }
    }
    if (first_backward < last_forward && last_ends < row.size()) {
        add(last_forward, last_ends);
    }
    return windows;
}

/// How long a row stands still in its windows, when a forward and a backward take so long and the way behind the stage and back so long.
template <class OnlyWhenCalled = void>
constexpr std::int64_t idle_in(std::vector<row_window> const& windows, std::int64_t forward, std::int64_t backward, std::int64_t behind)
{
    std::int64_t idle = 0;
    for (auto const& window : windows) {
        idle += window.times * std::max<std::int64_t>(0, behind - window.forwards * forward - window.backwards * backward);
    }
    return idle;
}

}  // namespace rheo::inline v0::detail
