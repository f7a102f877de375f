#pragma once
// SPDX-License-Identifier: Apache-2.0

// Numbers over steps as curves: one axis, a few curves with names, marks where something happened. More points
// than the picture is wide are thinned to the least and the largest of each column, so a spike is never lost.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/trace/svg.hpp"

namespace rheo::inline v0 {

struct svg_sample {
    double x = 0;
    double y = 0;

    friend constexpr bool operator==(svg_sample, svg_sample) = default;
};

struct svg_curve {
    std::string name;
    std::string_view colour;
    std::vector<svg_sample> samples;  ///< ascending in x; what is not finite is left out
};

struct svg_mark {
    double x = 0;
    std::string what;
};

struct svg_curves {
    std::vector<svg_curve> curves;
    std::vector<svg_mark> marks;
    bool from_zero = false;  ///< the axis begins at 0
};

namespace detail {

struct range_of_values {
    double least = std::numeric_limits<double>::max();
    double most = std::numeric_limits<double>::lowest();

    void take(double value)
    {
        least = std::min(least, value);
        most = std::max(most, value);
    }
    /// Halves, because the difference of two large values may be none.
    double part(double value) const { return most > least ? (value / 2 - least / 2) / (most / 2 - least / 2) : 0.5; }
};

template <class OnlyWhenCalled = void>
std::string format_value(double value)
{
    std::array<char, 64> text{};
    bool const is_large = std::abs(value) >= 1e3 && std::abs(value) < 1e8;  // whole numbers read better than powers of ten
    auto const end = is_large ? std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 0).ptr
                              : std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4).ptr;
    return {text.data(), end};
}

/// The least and the largest of each column, in their order.
template <class OnlyWhenCalled = void>
std::vector<svg_point> thinned(std::vector<svg_point> const& points)
{
    std::vector<svg_point> result;
    for (std::size_t i = 0; i < points.size();) {
        auto least = i;
        auto most = i;
        auto const column = std::floor(points[i].x.count);
        for (; i < points.size() && std::floor(points[i].x.count) <= column; ++i) {
            least = points[i].y < points[least].y ? i : least;
            most = points[most].y < points[i].y ? i : most;
        }
        result.push_back(points[std::min(least, most)]);
        if (least != most) {
            result.push_back(points[std::max(least, most)]);
        }
    }
    return result;
}

}  // namespace detail

/// Draws the curves; without a single finite sample a picture that says so.
template <class OnlyWhenCalled = void>
std::string draw_curves(svg_curves const& what)
{
    constexpr double width = 960;
    constexpr double height = 220;
    constexpr double left = 60;
    constexpr double bottom = height - 20;
    constexpr double top = 22;
    svg_picture picture{{{width}, {height}}};
    detail::range_of_values xs;
    detail::range_of_values ys;
    for (auto const& curve : what.curves) {
        for (auto const s : curve.samples) {
            if (std::isfinite(s.x) && std::isfinite(s.y)) {
                xs.take(s.x);
                ys.take(s.y);
            }
        }
    }
    if (xs.least > xs.most) {
        picture.text({{left}, {height / 2}}, "nothing to draw");
        return picture.str();
    }
    if (what.from_zero) {
        ys.take(0);
    }
    auto const place = [&](svg_sample s) { return svg_point{{left + xs.part(s.x) * (width - left - 8)}, {bottom - ys.part(s.y) * (bottom - top)}}; };
    for (int i = 0; i <= 4; ++i) {
        auto const value = ys.least * (1 - i / 4.0) + ys.most * (i / 4.0);
        auto const y = place({xs.least, value}).y;
        picture.line({{left}, y}, {{width - 8}, y}, "#ddd");
        picture.text({{left - 6}, {y.count + 4}}, detail::format_value(value), svg_anchor::end);
    }
    picture.text({{left}, {height - 5}}, detail::format_value(xs.least));
    picture.text({{width - 8}, {height - 5}}, detail::format_value(xs.most), svg_anchor::end);
    for (auto const& mark : what.marks) {
        auto const x = place({std::clamp(mark.x, xs.least, xs.most), ys.least}).x;
        picture.line({x, {top}}, {x, {bottom}}, "#e45756");
        picture.box({{x.count - 3}, {top - 3}}, {{x.count + 3}, {top + 3}}, "#e45756", mark.what);
    }
    double name_at = left;
    for (auto const& curve : what.curves) {
        std::vector<svg_point> points;
        for (auto const s : curve.samples) {
            if (std::isfinite(s.x) && std::isfinite(s.y)) {
                points.push_back(place(s));
            }
        }
        picture.curve(detail::thinned(points), curve.colour);
        picture.text({{name_at}, {12}}, curve.name, svg_anchor::start, curve.colour);
        name_at += 12 + 6.5 * static_cast<double>(curve.name.size());
    }
    return picture.str();
}

}  // namespace rheo::inline v0
