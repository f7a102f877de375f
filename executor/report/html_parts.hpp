#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the sections of a run's page (executor/report/html_report.hpp) have in common; their style is the page's.

#include <span>
#include <string>

#include <fmt/format.h>

#include "rheo/trace/event.hpp"
#include "rheo/trace/svg.hpp"
#include "rheo/trace/svg_lanes.hpp"

namespace rheo::inline v0 {

/// A drawing that is as wide as its place, and can be moved where that is narrower than it can be read.
inline std::string picture(std::string const& svg) { return "<div class=\"picture\">\n" + svg + "</div>\n"; }

/// The colours of a drawing of lanes by name.
inline std::string key_of_colours(std::span<activity const> activities)
{
    std::string text = "<p class=\"note key\">";
    for (auto const a : activities) {
        text += fmt::format("<span style=\"background:{}\"></span>{}", colour_of(a), escaped(name_of(a)));
    }
    return text + "</p>\n";
}

}  // namespace rheo::inline v0
