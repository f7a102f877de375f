#pragma once
// SPDX-License-Identifier: Apache-2.0

// A program as a picture for browsers: a line per rank, time to the right, colours for forward, whole
// backward, input gradient and weight gradient, and a pale grey for idle. Two that are computed at once
// share their time, one above the other.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/draw/draw.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

constexpr std::string_view colour_of(instruction_kind kind)
{
    constexpr std::string_view colours[] = {"#7fb2e5", "#8fce91", "#b9dfa0", "#f3c678"};
    return colours[static_cast<std::size_t>(kind)];
}

inline constexpr std::string_view idle_colour = "#eeeeee";

/// A length in hundredths as decimal text, without <cmath> or locale.
inline std::string decimal(double value)
{
    auto const hundredths = static_cast<long>(value * 100.0 + 0.5);
    auto const fraction = std::to_string(hundredths % 100);
    return std::to_string(hundredths / 100) + "." + (fraction.size() == 1 ? "0" : "") + fraction;
}

inline std::string svg_box(double x, double y, double width, double height, instruction i, bool with_stage)
{
    auto const label = label_of(i, with_stage);
    std::string box = "<rect x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" width=\"" + decimal(width) + "\" height=\"" + decimal(height) + "\" fill=\"" +
                      std::string{colour_of(i.kind)} + "\" stroke=\"#555\" stroke-width=\"0.5\"><title>" + label + "</title></rect>";
    if (width > 6.5 * static_cast<double>(label.size())) {
        box += "<text x=\"" + decimal(x + width / 2) + "\" y=\"" + decimal(y + height / 2 + 4) + "\">" + label + "</text>";
    }
    return box + "\n";
}

}  // namespace detail

/// The picture of one pipeline at these costs, about `width` pixels wide. @pre the program is sound under the transport
template <class Transport = shared_memory>
std::string to_svg(program const& p, stage_costs const& costs, double width = 960.0)
{
    auto const times = make_timeline<Transport>(array_view{&p, 1}, {{costs}, {}});
    expects(times.sound.ok, "a program that hangs cannot be drawn");
    constexpr double height = 22.0;
    constexpr double margin = 30.0;
    auto const end = makespan(times);
    auto const scale = end > seconds{0.0} ? (width - margin) / end.count : 0.0;
    bool const with_stage = p.placement.size() > p.rows.size();
    auto const total = detail::decimal(height * static_cast<double>(times.rows.size() + 1));
    // With a viewBox, pages can scale it.
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + detail::decimal(width) + ' ' + total + "\" width=\"" +
                      detail::decimal(width) + "\" height=\"" + total + "\" font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n";
    for (std::size_t row = 0; row < times.rows.size(); ++row) {
        auto const y = height * static_cast<double>(row);
        svg += "<text x=\"" + detail::decimal(margin / 2) + "\" y=\"" + detail::decimal(y + 14) + "\">" + std::to_string(row) + "</text>\n";
        svg += "<rect x=\"" + detail::decimal(margin) + "\" y=\"" + detail::decimal(y + 1) + "\" width=\"" + detail::decimal(end.count * scale) +
               "\" height=\"" + detail::decimal(height - 2) + "\" fill=\"" + std::string{detail::idle_colour} + "\"/>\n";
        auto const& is = times.rows[row].instructions;
        for (std::size_t k = 0; k < is.size(); ++k) {
            if (!is_work(is[k].instruction.kind)) {
                continue;
            }
            bool const upper = k > 0 && is[k - 1].instruction.kind == instruction_kind::overlap;
            bool const lower = k > 1 && is[k - 2].instruction.kind == instruction_kind::overlap;
            auto const share = upper || lower ? height / 2 - 1 : height - 2;
            svg += detail::svg_box(margin + is[k].start.count * scale, y + (lower ? height / 2 : 1), (is[k].end - is[k].start).count * scale, share,
                                   is[k].instruction, with_stage);
        }
    }
    constexpr std::string_view words[] = {"F forward", "B backward", "I input gradient", "W weight gradient", "idle"};
    for (std::size_t k = 0; k < std::size(words); ++k) {
        auto const x = margin + 125.0 * static_cast<double>(k);
        auto const y = height * static_cast<double>(times.rows.size()) + 6;
        auto const colour = k < 4 ? detail::colour_of(static_cast<instruction_kind>(k)) : detail::idle_colour;
        svg += "<rect x=\"" + detail::decimal(x) + "\" y=\"" + detail::decimal(y) + "\" width=\"10\" height=\"10\" fill=\"" + std::string{colour} +
               "\"/><text text-anchor=\"start\" x=\"" + detail::decimal(x + 14) + "\" y=\"" + detail::decimal(y + 9) + "\">" + std::string{words[k]} +
               "</text>\n";
    }
    return svg + "</svg>\n";
}

}  // namespace rheo::inline v0
