#pragma once
// SPDX-License-Identifier: Apache-2.0

// A schedule chosen while the program runs: the list of all families, in one place. A further family
// is one header and one entry here; names, parsing and generation follow from the list.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "rheo/schedule/bitpipe.hpp"
#include "rheo/schedule/chimera.hpp"
#include "rheo/schedule/dualpipe.hpp"
#include "rheo/schedule/dualpipe_v.hpp"
#include "rheo/schedule/eager_1f1b.hpp"
#include "rheo/schedule/gpipe.hpp"
#include "rheo/schedule/hanayo.hpp"
#include "rheo/schedule/interleaved.hpp"
#include "rheo/schedule/looped_bfs.hpp"
#include "rheo/schedule/one_f_one_b.hpp"
#include "rheo/schedule/seq1f1b.hpp"
#include "rheo/schedule/v_half.hpp"
#include "rheo/schedule/v_min.hpp"
#include "rheo/schedule/zb1p.hpp"
#include "rheo/schedule/zb_h1.hpp"
#include "rheo/schedule/zb_h2.hpp"
#include "rheo/schedule/zb_v.hpp"
#include "rheo/units/nearest_name.hpp"

namespace rheo::inline v0 {

using any_schedule = std::variant<gpipe, one_f_one_b, eager_1f1b, interleaved, looped_bfs, zb_h1, zb_h2, zb1p, zb_v, v_half, v_min,
    dualpipe, dualpipe_v, chimera, bitpipe, hanayo, seq1f1b>;

namespace detail {

template <Schedule... Schedules>
constexpr auto names_of(std::variant<Schedules...> const&)
{
    return std::array<std::string_view, sizeof...(Schedules)>{Schedules::name...};
}

template <std::size_t I = 0>
constexpr std::optional<any_schedule> schedule_named(std::string_view name)
{
    if constexpr (I < std::variant_size_v<any_schedule>) {
        if (std::variant_alternative_t<I, any_schedule>::name == name) {
            return any_schedule{std::in_place_index<I>};
        }
        return schedule_named<I + 1>(name);
    } else {
        return std::nullopt;
    }
}

}  // namespace detail

/// The names of all families, in the order of any_schedule.
inline constexpr auto schedule_names = detail::names_of(any_schedule{});

/// The name of the chosen family.
constexpr std::string_view name_of(any_schedule const& schedule)
{
    return schedule_names[schedule.index()];
}

/// Where the family comes from: paper and section.
constexpr std::string_view source_of(any_schedule const& schedule)
{
    return std::visit([](auto const& family) { return std::remove_cvref_t<decltype(family)>::source; }, schedule);
}

/// Why the family cannot be made at this size; `none` when it can.
constexpr shape_fault fault_of(any_schedule const& schedule, schedule_shape shape)
{
    return std::visit([&](auto const& family) { return fault_of<std::remove_cvref_t<decltype(family)>>(shape); }, schedule);
}

/// The families that the executor runs: one stage per rank, whole backwards, any number of microbatches.
constexpr bool runs_on_workers(any_schedule const& schedule)
{
    return std::holds_alternative<gpipe>(schedule) || std::holds_alternative<one_f_one_b>(schedule);
}

/// The answer of parse_schedule: a schedule, or the sentence why not.
struct parsed_schedule {
    std::optional<any_schedule> schedule;
    std::string reason;  ///< empty when there is a schedule

    constexpr explicit operator bool() const { return schedule.has_value(); }
};

/// The schedule of that name, or a sentence with the nearest known one.
inline parsed_schedule parse_schedule(std::string_view name)
{
    if (auto schedule = detail::schedule_named(name)) {
        return {schedule, {}};
    }
    std::string reason = "no schedule is called '" + std::string{name} + "'; the nearest known name is '";
    reason += nearest_name(name, schedule_names);
    return {std::nullopt, reason + "'"};
}

/// Why no rank can run the named schedule yet, or an empty string: unknown, or a family that is for planning only.
inline std::string why_not_run(std::string_view name)
{
    auto const parsed = parse_schedule(name);
    if (!parsed && name.find_first_of("./") != name.npos) {
        return "'" + std::string{name} + "': a schedule in a file can be looked at (rheo schedule, rheo plan --schedule) but not run yet; ranks run 'gpipe' and '1f1b'";
    }
    if (!parsed) {
        return parsed.reason;
    }
    if (!runs_on_workers(*parsed.schedule)) {
        return "'" + std::string{name} + "' can be looked at (rheo schedule) but not run yet; ranks run 'gpipe' and '1f1b'";
    }
    return {};
}

/// The compute program of a whole step. @pre what the family asks for
constexpr program make_program(any_schedule const& schedule, schedule_shape shape)
{
    return std::visit([&](auto const& family) { return std::remove_cvref_t<decltype(family)>::program(shape); }, schedule);
}

/// The compute program of `work`, in its order, on `ranks` ranks. @pre what the family asks for
constexpr program make_program(any_schedule const& schedule, int ranks, std::span<stage_work const> work)
{
    return std::visit([&](auto const& family) { return program_of_work<std::remove_cvref_t<decltype(family)>>(ranks, work); }, schedule);
}

}  // namespace rheo::inline v0
