#pragma once
// SPDX-License-Identifier: Apache-2.0

// A run on one screen of a terminal: lines that fit its width, as many as fit its height. What matters less goes first.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "executor/report/watch/live_run.hpp"

namespace rheo::inline v0 {

struct screen_shape {
    std::size_t columns = 80;
    std::size_t rows = 24;
    bool unicode = true;  ///< blocks for curves; else ASCII
};

/// Columns that a terminal takes for a text. @pre made by shown_text
std::size_t columns_of(std::string_view text);

/// A text of a file as a terminal may have it: no control characters or broken bytes, which become '?', and cut to so many columns with "..." at its end.
std::string shown_text(std::string_view text, std::size_t columns);

/// A curve in one line of so many columns, lowest to highest value; columns of values that are not finite are '!'. @param values by x, not evenly spaced
std::string sparkline(std::map<std::int64_t, double> const& values, std::size_t columns, bool unicode);

/// "running", "ended: done (exit code 0)"
std::string phase_text(live_run const& run);

/// @param unix_time now
std::vector<std::string> watch_screen(live_run const& run, screen_shape shape, double unix_time);

/// An event with its time of day.
std::string event_text(live_event const& event);

}  // namespace rheo::inline v0
