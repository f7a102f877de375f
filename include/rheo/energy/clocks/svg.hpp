#pragma once
// SPDX-License-Identifier: Apache-2.0

// Pictures: the frontier with its fastest, chosen and least-energy points, and below it the pipeline at the chosen
// point, a box per computation coloured by its clock. One SVG, no fonts but the reader's own.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/schedule/core/text.hpp"

namespace rheo::inline v0 {

namespace detail {

inline std::string fixed_number(double value, int digits)
{
    char text[64];
    return std::string{text, std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits).ptr};
}

inline std::string svg_text(double x, double y, std::string_view anchor, std::string const& content)
{
    return "<text x=\"" + fixed_number(x, 1) + "\" y=\"" + fixed_number(y, 1) + "\" text-anchor=\"" + std::string{anchor} + "\">" + content + "</text>\n";
}

/// From blue, the lowest clock, to red, the highest.
inline std::string colour_of(double share)
{
    auto const mix = [&](int low, int high) { return std::to_string(low + static_cast<int>(share * (high - low))); };
    return "rgb(" + mix(90, 225) + "," + mix(150, 110) + "," + mix(215, 90) + ")";
}

/// Round numbers of a scale: about five steps of 1, 2 or 5 times a power of ten.
template <class OnlyWhenCalled = void>
std::vector<double> round_numbers(double from, double to)
{
    double step = std::pow(10.0, std::floor(std::log10((to - from) / 4.0)));
    for (double const factor : {2.0, 2.5, 2.0}) {
        step *= (to - from) / step > 7.0 ? factor : 1.0;
    }
    std::vector<double> result;
    for (double value = std::ceil(from / step) * step; value <= to && result.size() < 20; value += step) {
        result.push_back(value);
    }
    return result;
}

inline std::string short_number(double value)
{
    char text[64];
    return std::string{text, std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6).ptr};
}

template <class OnlyWhenCalled = void>
std::string frontier_panel(frontier const& f, clocked_plan const& chosen, double width, double height)
{
    auto const energy = [&](frontier_vertex const& v) { return total_energy(f, v.cost, time_of(f, v.time)).count; };
    auto const chosen_energy = total_energy(f, chosen.cost, chosen.time).count;
    double low = chosen_energy;
    double high = chosen_energy;
    for (auto const& v : f.vertices) {
        low = std::min(low, energy(v));
        high = std::max(high, energy(v));
    }
    auto const from = std::min(fastest_time(f), chosen.time).count;
    auto const to = std::max({slowest_time(f).count, chosen.time.count, from * (1.0 + 1e-9)});
    high = std::max(high, low + 1e-9);
    double const bottom = height - 60.0;
    auto const x = [&](double time) { return 80.0 + (time - from) / (to - from) * (width - 150.0); };
    auto const y = [&](double value) { return 45.0 + (high - value) / (high - low) * (bottom - 60.0); };
    std::string text;
    auto const line = [&](double x1, double y1, double x2, double y2) {
        text += "<line x1=\"" + fixed_number(x1, 1) + "\" y1=\"" + fixed_number(y1, 1) + "\" x2=\"" + fixed_number(x2, 1) + "\" y2=\"" + fixed_number(y2, 1) +
                "\" stroke=\"#ddd\"/>\n";
    };
    for (auto const value : round_numbers(low, high)) {
        line(70.0, y(value), width - 60.0, y(value));
        text += svg_text(64.0, y(value) + 4.0, "end", short_number(value));
    }
    for (auto const time : round_numbers(from, to)) {
        line(x(time), 35.0, x(time), bottom + 6.0);
        text += svg_text(x(time), bottom + 20.0, "middle", short_number(time));
    }
    text += "<polyline fill=\"none\" stroke=\"#555\" stroke-width=\"2\" points=\"";
    for (auto const& v : f.vertices) {
        text += fixed_number(x(time_of(f, v.time).count), 2) + "," + fixed_number(y(energy(v)), 2) + " ";
    }
    text += "\"/>\n";
    auto const names = [](std::string const& name, double time, double value) {
        return name + " " + fixed_number(time, 4) + " s, " + fixed_number(value, 1) + " J";
    };
    auto const dot = [&](double time, double value, std::string const& look) {
        text += "<circle cx=\"" + fixed_number(x(time), 2) + "\" cy=\"" + fixed_number(y(value), 2) + "\" " + look + "/>\n";
    };
    auto const fastest = fastest_time(f).count;
    auto const slowest = slowest_time(f).count;
    auto const most = energy(f.vertices.back());
    auto const least = energy(f.vertices.front());
    dot(fastest, most, "r=\"5\" fill=\"#c33\"");
    dot(slowest, least, "r=\"5\" fill=\"#393\"");
    dot(chosen.time.count, chosen_energy, "r=\"8\" fill=\"none\" stroke=\"#36c\" stroke-width=\"3\"");
    // Names stand above the curve, which falls to the right; that of the chosen point gives way to the two others.
    text += svg_text(x(fastest) + 14.0, y(most) + 4.0, "start", names("fastest", fastest, most));
    text += svg_text(x(slowest), y(least) - 12.0, "end", names("least energy", slowest, least));
    auto const right = x(chosen.time.count) > width - 400.0;
    auto const near_first = x(chosen.time.count) < 400.0 && y(chosen_energy) < y(most) + 14.0;
    text += svg_text(x(chosen.time.count) + (right ? 0.0 : 14.0), near_first ? y(most) - 14.0 : y(chosen_energy) - (right ? 30.0 : 4.0),
                     right ? "end" : "start", names("chosen, at real clocks", chosen.time.count, chosen_energy));
    return text + svg_text(width / 2, height - 22.0, "middle", "time of an iteration in s against its energy in J");
}

template <class OnlyWhenCalled = void>
std::string pipeline_panel(frontier const& f, clocked_plan const& chosen, double width, double top, double row_height)
{
    auto const& network = f.activities.network;
    std::vector<double> begins(static_cast<std::size_t>(network.events));
    double lowest = 1e300;
    double highest = 0.0;
    for (auto const& option : chosen.options) {
        lowest = std::min(lowest, option.clock.count);
        highest = std::max(highest, option.clock.count);
    }
    for (auto const& arc : network.arcs) {
        auto const time = arc.operation < 0 ? static_cast<double>(arc.nanoseconds) * 1e-9 : chosen.options[static_cast<std::size_t>(arc.operation)].time.count;
        auto& end = begins[static_cast<std::size_t>(arc.to)];
        end = std::max(end, begins[static_cast<std::size_t>(arc.from)] + time);
    }
    auto const scale = (width - 150.0) / std::max(chosen.time.count, 1e-9);
    std::string text;
    for (int row = 0; row < network.rows; ++row) {
        text += svg_text(64.0, top + (row + 0.7) * row_height, "end", std::to_string(row));
    }
    for (std::size_t k = 0; k < network.operations.size(); ++k) {
        auto const& o = network.operations[k];
        auto const& option = chosen.options[k];
        auto const begin = begins[static_cast<std::size_t>(network.arcs[static_cast<std::size_t>(o.arc)].from)];
        auto const share = highest > lowest ? (option.clock.count - lowest) / (highest - lowest) : 1.0;
        text += "<rect x=\"" + fixed_number(80.0 + begin * scale, 2) + "\" y=\"" + fixed_number(top + o.row * row_height, 1) + "\" width=\"" +
                fixed_number(option.time.count * scale, 2) + "\" height=\"" + fixed_number(row_height - 2.0, 1) + "\" fill=\"" + colour_of(share) +
                "\" stroke=\"#fff\" stroke-width=\"0.5\"><title>" + to_string(o.instruction) + " at " + fixed_number(option.clock.count, 0) + " MHz, " +
                fixed_number(in_milliseconds(option.time), 2) + " ms</title></rect>\n";
        if (auto const wide = option.time.count * scale; wide >= 14.0) {  // forwards by number alone, as there are two or three kinds
            auto const number = std::to_string(o.instruction.item);
            auto const name = o.instruction.kind == instruction_kind::forward || wide < 22.0
                                  ? number
                                  : to_string(o.instruction).substr(std::to_string(o.instruction.stage).size());
            text += "<text x=\"" + fixed_number(80.0 + (begin + option.time.count / 2) * scale, 1) + "\" y=\"" +
                    fixed_number(top + (o.row + 0.62) * row_height, 1) + "\" text-anchor=\"middle\" font-size=\"9\" fill=\"#fff\">" + name + "</text>\n";
        }
    }
    return text + svg_text(width / 2, top + network.rows * row_height + 20.0, "middle",
                           "the pipeline at the chosen point, a row per rank; forwards by their microbatch; " + fixed_number(lowest, 0) + " MHz blue to " +
                               fixed_number(highest, 0) + " MHz red");
}

}  // namespace detail

/// The picture of a frontier and of one plan of it. @pre the plan was made from the frontier
template <class OnlyWhenCalled = void>
std::string to_svg(frontier const& f, clocked_plan const& chosen)
{
    double const width = 1000.0;
    double const curve = 360.0;
    double const row = 26.0;
    auto const height = curve + 20.0 + f.activities.network.rows * row + 40.0;
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + detail::fixed_number(width, 0) + " " + detail::fixed_number(height, 0) +
           "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" +
           detail::frontier_panel(f, chosen, width, curve) + detail::pipeline_panel(f, chosen, width, curve + 20.0, row) + "</svg>\n";
}

}  // namespace rheo::inline v0
