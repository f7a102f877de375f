#pragma once
// SPDX-License-Identifier: Apache-2.0

// Times by size fitted to measured rows, as the lower envelope of a few lines, latency + bytes x slope: a communication library switches
// between algorithms and takes the faster one, each of which is such a line. The lines go through pairs of measured rows and make the
// sum of |ln(predicted / measured)| small, so that small messages count as much as large ones and one outlier counts once. How
// many lines there are is decided by rows left out of the fit, not by the rows fitted.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct measured_time {
    bytes size;
    seconds time;

    friend constexpr bool operator==(measured_time, measured_time) = default;
};

struct fitted_line {
    seconds latency;
    double seconds_per_byte;

    friend constexpr bool operator==(fitted_line, fitted_line) = default;
};

/// The least of the lines. @pre there is one, size >= 0
constexpr seconds fitted_time(array_view<fitted_line const> lines, bytes size)
{
    expects(!lines.empty() && size.count >= 0, "a fitted time needs a line and a size of at least 0 bytes");
    seconds least{std::numeric_limits<double>::max()};
    for (auto const& line : lines) {
        least = std::min(least, line.latency + seconds{line.seconds_per_byte * static_cast<double>(size.count)});
    }
    return least;
}

/// exp(mean |ln(predicted / measured)|) - 1: 0.05 says that times are typically 5 % off. @pre a row, a line
template <class OnlyWhenCalled = void>
double fitted_error(array_view<fitted_line const> lines, array_view<measured_time const> rows)
{
    expects(!rows.empty(), "an error needs measured rows");
    double sum = 0.0;
    for (auto const& row : rows) {
        sum += std::abs(std::log(fitted_time(lines, row.size) / row.time));
    }
    return std::exp(sum / static_cast<double>(rows.size())) - 1.0;
}

/// What is wrong with a measured table, as a sentence; empty when nothing is.
template <class OnlyWhenCalled = void>
std::string measured_fault(array_view<measured_time const> rows)
{
    if (rows.empty()) {
        return "a fit needs at least one measured row";
    }
    for (std::size_t k = 0; k < rows.size(); ++k) {
        auto const time = rows[k].time.count;
        if (rows[k].size.count < 0 || !(time > 0.0) || time > std::numeric_limits<double>::max()) {
            return "measured row " + std::to_string(k) + ": expected at least 0 bytes and a finite time above zero";
        }
        if (k > 0 && rows[k].size <= rows[k - 1].size) {
            return "measured row " + std::to_string(k) + " of " + std::to_string(rows[k].size.count) + " bytes: expected more bytes than in the row before it";
        }
    }
    return {};
}

namespace detail {

/// A fit with a number of lines, by exchange: lines are added one by one, and each is then exchanged for a better one until none is.
template <class OnlyWhenCalled = void>
class line_fit {
public:
    /// @pre measured_fault is empty
    explicit line_fit(array_view<measured_time const> rows) : rows_(rows.begin(), rows.end())
    {
        auto const apart = (rows_.size() + most_ends - 1) / most_ends;
        for (std::size_t i = 0; i < rows_.size(); i += apart) {
            for (std::size_t j = i + apart; j < rows_.size(); j += apart) {
                auto const slope = (rows_[j].time - rows_[i].time).count / static_cast<double>((rows_[j].size - rows_[i].size).count);
                auto const latency = rows_[i].time.count - slope * static_cast<double>(rows_[i].size.count);
                if (slope > 0.0 && latency > 0.0) {
                    add_candidate({{latency}, slope});
                }
            }
        }
        if (candidates_.empty()) {  // times that do not grow, or grow faster than sizes
            add_candidate({rows_[rows_.size() / 2].time, 0.0});
        }
    }

    /// Adds the best further line to those that there are, and exchanges lines while that helps.
    void add_line()
    {
        chosen_.push_back(candidates_.size());
        for (bool better = true; better;) {
            better = false;
            for (auto place = chosen_.size(); place-- > 0;) {
                better = exchange(place) || better;
            }
        }
    }

    std::vector<fitted_line> lines() const
    {
        std::vector<fitted_line> lines;
        for (auto const c : chosen_) {
            lines.push_back(candidates_[c]);
        }
        std::sort(lines.begin(), lines.end(), [](auto const& a, auto const& b) { return a.latency < b.latency; });
        return lines;
    }

private:
    void add_candidate(fitted_line line)
    {
        candidates_.push_back(line);
        for (auto const& row : rows_) {
            logs_.push_back(std::log((line.latency.count + line.seconds_per_byte * static_cast<double>(row.size.count)) / row.time.count));
        }
    }

    bool exchange(std::size_t place)
    {
        std::vector<double> others(rows_.size(), std::numeric_limits<double>::infinity());
        for (std::size_t k = 0; k < chosen_.size(); ++k) {
            for (std::size_t r = 0; k != place && r < rows_.size(); ++r) {
                others[r] = std::min(others[r], logs_[chosen_[k] * rows_.size() + r]);
            }
        }
        auto const sum_with = [&](std::size_t candidate) {
            double sum = 0.0;
            for (std::size_t r = 0; r < rows_.size(); ++r) {
                sum += std::abs(std::min(others[r], logs_[candidate * rows_.size() + r]));
            }
            return sum;
        };
        auto best = chosen_[place];
        auto least = best < candidates_.size() ? sum_with(best) : std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < candidates_.size(); ++c) {
            if (auto const sum = sum_with(c); sum < least - 1e-12) {
                least = sum;
                best = c;
            }
        }
        return std::exchange(chosen_[place], best) != best;
    }

    static constexpr std::size_t most_ends = 64;  ///< rows of a table through which lines are drawn

    std::vector<measured_time> rows_;
    std::vector<fitted_line> candidates_;
    std::vector<double> logs_;  ///< candidate x row -> ln(predicted / measured)
    std::vector<std::size_t> chosen_;
};

/// The sum of |ln(predicted / measured)| over rows that were left out, for 1, 2, ... lines.
template <class OnlyWhenCalled = void>
std::vector<double> left_out_errors(array_view<measured_time const> rows, int most_lines)
{
    auto const folds = std::min<std::size_t>(rows.size(), 16);
    std::vector<double> errors(static_cast<std::size_t>(most_lines), 0.0);
    for (std::size_t fold = 0; fold < folds; ++fold) {
        std::vector<measured_time> kept;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            if (r % folds != fold) {
                kept.push_back(rows[r]);
            }
        }
        line_fit<> fit{kept};
        for (auto& error : errors) {
            fit.add_line();
            auto const lines = fit.lines();
            for (std::size_t r = fold; r < rows.size(); r += folds) {
                error += std::abs(std::log(fitted_time(lines, rows[r].size) / rows[r].time));
            }
        }
    }
    return errors;
}

}  // namespace detail

/// The lines fitted to measured rows, ascending in latency: as many as predict rows best that were left out. A refusal names the row that
/// cannot be. @pre rows ascend in size
template <class OnlyWhenCalled = void>
result<std::vector<fitted_line>> fit_lines(array_view<measured_time const> rows)
{
    constexpr int most_lines = 5;
    if (auto fault = measured_fault(rows); !fault.empty()) {
        return failure{fault};
    }
    std::size_t lines = 0;
    if (rows.size() > 2) {
        auto const errors = detail::left_out_errors(rows, std::min(most_lines, static_cast<int>(rows.size()) / 3));
        for (std::size_t k = 1; k < errors.size(); ++k) {
            lines = errors[k] < 0.95 * errors[lines] ? k : lines;  // a line more has to be worth it
        }
    }
    detail::line_fit<> fit{rows};
    for (std::size_t k = 0; k <= lines; ++k) {
        fit.add_line();
    }
    return fit.lines();
}

}  // namespace rheo::inline v0
