#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the pages of `rheo report` are made of, as JSON values: notes, tables, bars, curves, lanes. A page is a title and sections of such blocks; the
// page's own script (report/assets) draws them. So no markup is written here, and a test can compare what a page says.
// Curves are thinned when they are written: of every few points the lowest and the highest stay, so a spike is never lost and a long run has a small page.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

using page_block = nlohmann::ordered_json;

/// A value with six digits, which is what a screen shows; null: not finite.
page_block shown_number(double value);

page_block note_block(std::string_view text);
page_block error_block(std::string_view text);

/// Names with values, one below the other.
class facts_block {
public:
    void add(std::string_view name, std::string_view value);
    page_block block() const;

private:
    page_block rows_ = page_block::array();
};

struct table_column {
    std::string name;
    bool is_number = false;
    bool is_code = false;
};

/// @param rows lists of cells, one per column: a text, or an object that page.js describes
page_block table_block(std::span<table_column const> columns, page_block rows);

struct curve {
    std::string name;
    std::vector<double> x{};  ///< ascending
    std::vector<double> y{};  ///< as many; not finite: a gap
    int colour = -1;          ///< 0 to 7; -1: its place in the chart
};

/// Where something happened.
struct curve_mark {
    double x = 0;
    std::string text;
};

struct curve_chart {
    std::string name;  ///< of what is drawn, with its unit
    std::vector<curve> curves{};
    std::vector<curve_mark> marks{};
    bool over_time = false;   ///< x in seconds; else in steps
    bool from_zero = false;   ///< the axis begins at 0
    bool is_stacked = false;  ///< bands, one above the other, of curves with the same x; together they are 100
};

inline constexpr std::size_t most_curve_points = 2000;

/// Charts over the same axis zoom together. A thinned one says so.
page_block curves_block(curve_chart const& chart);

/// At most `most` points: of each run of equal length the lowest and the highest, in their order, and both ends. @pre as many x as y, ascending; most >= 4
curve thinned(curve const& whole, std::size_t most);

struct lane_chart {
    std::vector<rank_id> ranks{};  ///< from top to bottom
    seconds begin{};
    seconds end{};
    std::string group{};  ///< of charts that zoom together; empty: this one alone
};

inline constexpr std::size_t most_lanes = 128;
inline constexpr std::size_t most_boxes = 20'000;

/// What ranks compute and wait for. What is sent in the background would hide it.
bool is_drawn_in_lanes(trace_event const& e);

/// Events of the ranks that overlap the span of time; of those that overlap on a rank the later one in the list lies on top. What is too much to draw is left
/// out, and the block says so. Boxes of computations have their microbatch. @pre begin < end
page_block lanes_block(std::span<trace_event const> events, lane_chart const& chart);

/// Blocks side by side where there is room. @param parts lists of blocks
page_block beside_block(page_block parts);

/// Blocks behind a line that opens them.
page_block folded_block(std::string_view name, page_block blocks);

page_block text_block(std::string_view preformatted);

page_block section(std::string_view name, page_block blocks);

/// The page: one file that needs no network. Nothing in the data is ever markup. @param data { title, sections, footer }
std::string page_of(page_block const& data);

}  // namespace rheo::inline v0
