#pragma once
// SPDX-License-Identifier: Apache-2.0

// A link from measured times of messages: the one line through two of the rows that predicts all of them best. A network plays messages
// by a latency and a rate, so a table with the knees of several protocols (fitted.hpp) comes down to its main line.

#include <string>

#include "rheo/simulate/network/fitted.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The link whose messages take about these times; an error says what is wrong with the table. Cost: cubic in the rows, at most 64^2 each.
template <class OnlyWhenCalled = void>
result<modelled_link> fit_link(array_view<measured_time const> rows)
{
    if (auto fault = measured_fault(rows); !fault.empty()) {
        return failure{fault};
    }
    detail::line_fit<> fit{rows};
    fit.add_line();
    auto const line = fit.lines().front();
    if (!(line.seconds_per_byte > 0.0)) {
        return failure{"the measured times are not those of a link: expected at least two rows whose times grow with the bytes, and less than in proportion"};
    }
    return modelled_link{line.latency, {1.0 / line.seconds_per_byte}};
}

}  // namespace rheo::inline v0
