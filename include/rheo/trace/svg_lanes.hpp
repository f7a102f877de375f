#pragma once
// SPDX-License-Identifier: Apache-2.0

// Events drawn as lanes on one axis of time: a lane per rank, a box per event, waits left blank. The same
// drawing shows a rehearsed step and a measured one, so the two can be laid beside each other.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/trace/event.hpp"
#include "rheo/trace/svg.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The colour of an activity; transfers are grey, votes and waits light, each phase of a recovery its own.
constexpr std::string_view colour_of(activity a)
{
    using enum activity;
    switch (a) {
    case forward: return "#4c78a8";
    case backward:
    case input_gradient: return "#54a24b";
    case weight_gradient: return "#9ecb8f";
    case recompute: return "#a0cbe8";
    case post_reduction:
    case await_reduction: return "#f2cf5b";
    case decide: return "#d8d8d8";
    case update: return "#b279a2";
    case evaluate: return "#83bcb6";
    case detect: return "#e45756";
    case revoke: return "#ff9da6";
    case shrink: return "#f58518";
    case link: return "#eeca3b";
    case exchange: return "#72b7b2";
    case plan: return "#9d755d";
    case copy: return "#4c78a8";
    case merge: return "#b279a2";
    case first_instruction: return "#54a24b";
    default: return "#bab0ac";
    }
}

/// What one drawing shows: events of the lanes' ranks that overlap the span of time.
struct svg_lanes {
    std::vector<rank_id> ranks;  ///< from top to bottom
    seconds begin;
    seconds end;
    bool numbered = true;        ///< microbatches in the boxes that are wide enough
    svg_length width{960};       ///< of the drawing, ranks' names among it

    friend constexpr bool operator==(svg_lanes const&, svg_lanes const&) = default;
};

namespace detail {

inline constexpr svg_length lane_height{20};
inline constexpr svg_length lanes_left{60};

/// A time for people: three digits and the unit that suits it.
template <class OnlyWhenCalled = void>
std::string format_time(seconds time)
{
    auto const [value, unit] = time < seconds{1e-3}  ? std::pair{in_microseconds(time), " us"}
                               : time < seconds{1.0} ? std::pair{in_milliseconds(time), " ms"}
                                                     : std::pair{time.count, " s"};
    std::array<char, 64> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 3).ptr;
    return std::string(text.data(), end) + unit;
}

}  // namespace detail

/// Draws the events. Of events that overlap on a rank the later one in the list lies on top.
/// @pre the span of time is not empty, the drawing is wider than the ranks' names
template <class OnlyWhenCalled = void>
std::string draw_lanes(array_view<trace_event const> events, svg_lanes const& what)
{
    using namespace detail;
    expects(what.begin < what.end, "a drawing of lanes needs a span of time");
    expects(what.width.count >= 2 * lanes_left.count, "a drawing of lanes needs room beside the ranks' names");
    auto const height = lane_height.count * static_cast<double>(what.ranks.size());
    svg_picture picture{{what.width, {height + 18}}};
    auto const place = [&](seconds t) {
        auto const part = std::clamp((t - what.begin) / (what.end - what.begin), 0.0, 1.0);
        return svg_length{lanes_left.count + part * (what.width.count - lanes_left.count - 4)};
    };
    for (std::size_t lane = 0; lane < what.ranks.size(); ++lane) {
        auto const top = lane_height.count * static_cast<double>(lane);
        picture.text({{lanes_left.count - 6}, {top + 14}}, "rank " + std::to_string(what.ranks[lane].value), svg_anchor::end);
        picture.box({lanes_left, {top + 1}}, {{what.width.count - 4}, {top + lane_height.count - 1}}, "#f4f4f4");
        for (auto const& e : events) {
            if (e.rank != what.ranks[lane] || e.end <= what.begin || e.start >= what.end) {
                continue;
            }
            auto const from = place(e.start);
            auto const to = svg_length{std::max(place(e.end).count, from.count + 0.3)};
            picture.box({from, {top + 1}}, {to, {top + lane_height.count - 1}}, colour_of(e.what), label_of(e) + ": " + format_time(e.end - e.start));
            if (what.numbered && e.item != no_item && to.count - from.count > 18 && is_work(static_cast<instruction_kind>(e.what))) {
                picture.text({{(from.count + to.count) / 2}, {top + 14}}, std::to_string(e.item), svg_anchor::middle, "#fff");
            }
        }
    }
    picture.text({lanes_left, {height + 13}}, "0");
    picture.text({{what.width.count - 4}, {height + 13}}, format_time(what.end - what.begin), svg_anchor::end);
    return picture.str();
}

}  // namespace rheo::inline v0
