#pragma once
// SPDX-License-Identifier: Apache-2.0

// What `rheo analyze` says, as text for a screen and as a page: an answer, findings, notes and tables. And the forms of its times and shares.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "executor/plan/text_table.hpp"
#include "rheo/units/units.hpp"

namespace rheo::cli {

struct shown_table {
    std::string name;     ///< of its section on a page
    std::string title;    ///< what its columns are
    std::size_t all = 0;  ///< rows that there are
    std::vector<text_column> columns;
    std::vector<text_row> rows;  ///< those that are shown; none: the table is left out
};

/// Something that costs time and can be changed.
struct finding {
    std::string name;     ///< the same for findings of a kind: "slow rank"
    double share;         ///< of the time of all steps that it costs, about
    std::string message;  ///< what and where, in a line
    std::string detail;   ///< more numbers; may be empty
    std::string advice;   ///< what to change
};

struct analysis_document {
    std::string answer;  ///< one line
    std::vector<finding> findings{};
    std::vector<std::string> notes{};  ///< a line each
    std::vector<shown_table> tables{};
    std::vector<std::string> footnotes{};
};

/// Lines of at most widest_line columns, if its tables and lines have no more.
std::string text_of(analysis_document const& document);

/// The same as one file that needs no network.
std::string page_of(analysis_document const& document, std::string_view title);

inline constexpr std::size_t widest_line = 100;
inline constexpr std::size_t most_rows_of_text = 8;
inline constexpr std::size_t most_rows_of_page = 256;

/// With the unit that suits it.
inline std::string time_text(seconds time)
{
    return time < seconds{1e-3}  ? fmt::format("{:.4g} us", in_microseconds(time))
           : time < seconds{1.0} ? fmt::format("{:.4g} ms", in_milliseconds(time))
                                 : fmt::format("{:.4g} s", time.count);
}

inline seconds in_seconds(whole_nanoseconds time) { return {static_cast<double>(time.count) * 1e-9}; }
inline std::string time_text(whole_nanoseconds time) { return time_text(in_seconds(time)); }
inline std::string milliseconds_text(seconds time) { return fmt::format("{:.3f}", in_milliseconds(time)); }
inline std::string milliseconds_text(whole_nanoseconds time) { return milliseconds_text(in_seconds(time)); }

/// Percent, without their sign.
template <class Time>
std::string share(Time part, Time all)
{
    return all.count == 0 ? "-" : fmt::format("{:.1f}", 100.0 * (part / all));
}

/// The rows that matter most, those first; all of them in their order where they are few.
template <class Row, class Weight>
std::vector<Row> heaviest(std::vector<Row> rows, std::size_t most, Weight weight)
{
    if (rows.size() > most) {
        std::stable_sort(rows.begin(), rows.end(), [&](Row const& a, Row const& b) { return weight(a) > weight(b); });
        rows.resize(most);
    }
    return rows;
}

}  // namespace rheo::cli
