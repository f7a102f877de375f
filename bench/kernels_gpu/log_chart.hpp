#pragma once
// SPDX-License-Identifier: Apache-2.0

// Points over two logarithmic axes, each with a sentence that shows when one points at it, and the roofs that they stand under
// (Williams, Waterman, Patterson: "Roofline", 2009).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/trace/svg.hpp"

namespace bench {

struct chart_point {
    double x;
    double y;
    std::string says = {};
};

struct chart_series {
    std::string name;
    std::vector<chart_point> points;
    bool is_line = false;
};

struct log_chart {
    std::string x_name;
    std::string y_name;
    std::vector<chart_series> series;
};

namespace detail {

struct decades {
    double least = std::numeric_limits<double>::max();
    double most = std::numeric_limits<double>::lowest();

    void take(double value)
    {
        least = std::min(least, std::floor(std::log10(value)));
        most = std::max({most, std::ceil(std::log10(value)), least + 1});
    }
    double part(double value) const { return (std::log10(value) - least) / (most - least); }
};

inline std::string power_of_ten(double exponent)
{
    char text[32];
    std::snprintf(text, sizeof text, "%g", std::pow(10.0, exponent));
    return text;
}

}  // namespace detail

/// Draws what is positive of the chart.
inline std::string drawn(log_chart const& what)
{
    using rheo::svg_point;
    constexpr double width = 960;
    constexpr double height = 420;
    constexpr double left = 70;
    constexpr double bottom = height - 40;
    constexpr double top = 12;
    constexpr std::array<std::string_view, 8> colours{"#444", "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b"};
    detail::decades xs;
    detail::decades ys;
    auto const shows = [](chart_point const& p) { return std::isfinite(p.x) && std::isfinite(p.y) && p.x > 0 && p.y > 0; };
    for (auto const& s : what.series) {
        for (auto const& p : s.points) {
            if (shows(p)) {
                xs.take(p.x);
                ys.take(p.y);
            }
        }
    }
    rheo::svg_picture picture{{{width}, {height}}};
    if (xs.least > xs.most) {
        picture.text({{left}, {height / 2}}, "nothing to draw");
        return picture.str();
    }
    auto const place = [&](double x, double y) { return svg_point{{left + xs.part(x) * (width - left - 180)}, {bottom - ys.part(y) * (bottom - top)}}; };
    for (double e = xs.least; e <= xs.most; ++e) {
        auto const at = place(std::pow(10.0, e), std::pow(10.0, ys.least));
        picture.line(at, {at.x, {top}}, "#ddd");
        picture.text({at.x, {bottom + 14}}, detail::power_of_ten(e), rheo::svg_anchor::middle);
    }
    for (double e = ys.least; e <= ys.most; ++e) {
        auto const at = place(std::pow(10.0, xs.least), std::pow(10.0, e));
        picture.line(at, {{width - 180}, at.y}, "#ddd");
        picture.text({{left - 6}, {at.y.count + 4}}, detail::power_of_ten(e), rheo::svg_anchor::end);
    }
    picture.text({{left}, {height - 6}}, what.x_name);
    picture.text({{left + 4}, {top + 10}}, what.y_name);
    double line = top + 10;
    for (std::size_t i = 0; i < what.series.size(); ++i) {
        auto const colour = colours[i % colours.size()];
        auto const& s = what.series[i];
        std::vector<svg_point> points;
        for (auto const& p : s.points) {
            if (!shows(p)) {
                continue;
            }
            auto const at = place(p.x, p.y);
            points.push_back(at);
            if (!p.says.empty()) {
                picture.box({{at.x.count - 3}, {at.y.count - 3}}, {{at.x.count + 3}, {at.y.count + 3}}, colour, p.says);
            }
        }
        if (s.is_line && points.size() > 1) {
            picture.curve(points, colour);
        }
        picture.box({{width - 170}, {line - 8}}, {{width - 162}, {line}}, colour);
        picture.text({{width - 156}, {line}}, s.name);
        line += 16;
    }
    return picture.str();
}

}  // namespace bench
