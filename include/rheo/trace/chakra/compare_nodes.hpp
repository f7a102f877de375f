#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where two nodes differ. Times may be left out: then a plan and a run of it have the same nodes.

#include <cstddef>
#include <string>
#include <string_view>

#include "rheo/trace/chakra/attribute.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Attributes in which rheo writes exact times (simulate/chakra/write_execution.hpp).
constexpr bool is_time(chakra_attribute const& a) { return a.name == "rheo_start_ns" || a.name == "rheo_duration_ns"; }

template <class OnlyWhenCalled = void>
std::string ids_text(array_view<std::uint64_t const> ids)
{
    std::string text;
    for (auto const id : ids) {
        text += (text.empty() ? "" : " ") + std::to_string(id);
    }
    return text.empty() ? "none" : text;
}

template <class OnlyWhenCalled = void>
std::string value_text(chakra_attribute const& a)
{
    if (auto const number = integer_of(a)) {
        return std::to_string(*number);
    }
    return a.member == chakra_member::string_val ? in_quotes(a.text) : std::string{name_of(a.member)};
}

template <class OnlyWhenCalled = void>
bool are_equal(array_view<std::uint64_t const> a, array_view<std::uint64_t const> b)
{
    for (std::size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return a.size() == b.size();
}

/// The first attribute of `a` that `b` has not, or has with another value.
template <class OnlyWhenCalled = void>
std::string attribute_difference(chakra_node const& a, chakra_node const& b, bool times, bool swapped)
{
    for (auto const& mine : a.attributes) {
        if (!times && is_time(mine)) {
            continue;
        }
        auto const* const theirs = find_attribute(b, mine.name);
        if (theirs == nullptr) {
            return std::string{mine.name} + (swapped ? " is only in the second" : " is only in the first");
        }
        if (!(*theirs == mine)) {
            auto const first = value_text(swapped ? *theirs : mine);
            auto const second = value_text(swapped ? mine : *theirs);
            return std::string{mine.name} + (first == second ? " has another value" : " is " + first + " in the first, " + second + " in the second");
        }
    }
    return {};
}

}  // namespace detail

/// The first difference as the end of a sentence; empty: there is none. @param times whether start, duration and exact times count
template <class OnlyWhenCalled = void>
std::string difference_of(chakra_node const& a, chakra_node const& b, bool times)
{
    auto const differs = [](std::string_view what, std::string const& first, std::string const& second) {
        return std::string{what} + " is " + first + " in the first, " + second + " in the second";
    };
    if (a.id != b.id) {
        return differs("the id", std::to_string(a.id), std::to_string(b.id));
    }
    if (a.name != b.name) {
        return differs("the name", in_quotes(a.name), in_quotes(b.name));
    }
    if (a.type != b.type) {
        return differs("the type", std::string{name_of(a.type)}, std::string{name_of(b.type)});
    }
    if (!detail::are_equal(a.data_deps, b.data_deps)) {
        return differs("what it waits for (data_deps)", detail::ids_text(a.data_deps), detail::ids_text(b.data_deps));
    }
    if (!detail::are_equal(a.ctrl_deps, b.ctrl_deps)) {
        return differs("what it waits for (ctrl_deps)", detail::ids_text(a.ctrl_deps), detail::ids_text(b.ctrl_deps));
    }
    if (times && a.start_time_micros != b.start_time_micros) {
        return differs("the start", std::to_string(a.start_time_micros) + " us", std::to_string(b.start_time_micros) + " us");
    }
    if (times && a.duration_micros != b.duration_micros) {
        return differs("the duration", std::to_string(a.duration_micros) + " us", std::to_string(b.duration_micros) + " us");
    }
    if (a.inputs != b.inputs || a.outputs != b.outputs) {
        return "its inputs or outputs differ";
    }
    auto first = detail::attribute_difference(a, b, times, false);
    return first.empty() ? detail::attribute_difference(b, a, times, true) : first;
}

}  // namespace rheo::inline v0
