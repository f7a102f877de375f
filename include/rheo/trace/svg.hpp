#pragma once
// SPDX-License-Identifier: Apache-2.0

// A picture as SVG text, with the few shapes that the drawings here are made of. Coordinates are in units of
// the picture, which takes the width it is given; numbers are written with a tenth of a unit, so the same
// picture is the same text on every machine.

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

/// A length or place in a picture's own units.
struct svg_length {
    double count = 0;

    friend constexpr auto operator<=>(svg_length, svg_length) = default;
};

struct svg_point {
    svg_length x;
    svg_length y;

    friend constexpr bool operator==(svg_point, svg_point) = default;
};

/// Which side of its point a text is on.
enum class svg_anchor : unsigned char { start, middle, end };

/// Between the lines of an axis: 1, 2 or 5 times a power of ten, of which at least so many and at most twice and a half as many fit up to `most`.
/// @pre most > 0
inline double axis_step(double most, double fewest)
{
    auto const power = std::pow(10.0, std::floor(std::log10(most / fewest)));
    auto const rest = most / fewest / power;
    return power * (rest < 2.0 ? 1.0 : rest < 5.0 ? 2.0 : 5.0);
}

/// Text as it may stand between tags and in attributes.
inline std::string escaped(std::string_view text)
{
    std::string result;
    for (char const c : text) {
        switch (c) {
        case '&': result += "&amp;"; break;
        case '<': result += "&lt;"; break;
        case '>': result += "&gt;"; break;
        case '"': result += "&quot;"; break;
        default: result += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
        }
    }
    return result;
}

template <class OnlyWhenCalled = void>
class svg_picture {
public:
    /// @param size its lower right corner
    explicit svg_picture(svg_point size)
    {
        text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(size.x) + ' ' + number(size.y) +
                "\" font-family=\"sans-serif\" font-size=\"11\">\n";
    }

    /// A filled box; the title shows when one points at it.
    void box(svg_point from, svg_point to, std::string_view colour, std::string_view title = {})
    {
        text_ += "<rect x=\"" + number(from.x) + "\" y=\"" + number(from.y) + "\" width=\"" + number({to.x.count - from.x.count}) + "\" height=\"" +
                 number({to.y.count - from.y.count}) + "\" fill=\"" + std::string{colour} + '"';
        text_ += title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></rect>\n";
    }

    void line(svg_point from, svg_point to, std::string_view colour)
    {
        text_ +=
            "<path d=\"M" + number(from.x) + ' ' + number(from.y) + 'L' + number(to.x) + ' ' + number(to.y) + "\" stroke=\"" + std::string{colour} + "\"/>\n";
    }

    void text(svg_point where, std::string_view words, svg_anchor anchor = svg_anchor::start, std::string_view colour = "#333")
    {
        static constexpr std::string_view names[] = {"start", "middle", "end"};
        text_ += "<text x=\"" + number(where.x) + "\" y=\"" + number(where.y) + "\" text-anchor=\"" + std::string{names[static_cast<unsigned>(anchor)]} +
                 "\" fill=\"" + std::string{colour} + "\">" + escaped(words) + "</text>\n";
    }

    /// A line through all of the points, a range of svg_point.
    template <class Points>
    void curve(Points const& points, std::string_view colour)
    {
        text_ += "<path fill=\"none\" stroke-width=\"1.5\" stroke=\"" + std::string{colour} + "\" d=\"";
        char command = 'M';
        for (svg_point const p : points) {
            text_ += command + number(p.x) + ' ' + number(p.y);
            command = 'L';
        }
        text_ += "\"/>\n";
    }

    /// The whole picture.
    std::string str() const { return text_ + "</svg>\n"; }

private:
    static std::string number(svg_length length)
    {
        std::array<char, 64> text{};
        auto const end = std::to_chars(text.data(), text.data() + text.size(), length.count, std::chars_format::fixed, 1).ptr;
        std::string result(text.data(), end);
        return result.ends_with(".0") ? result.substr(0, result.size() - 2) : result;
    }

    std::string text_;
};

}  // namespace rheo::inline v0
