#pragma once
// SPDX-License-Identifier: Apache-2.0

// A schedule chosen while the program runs: any type that is a Schedule, as a value. It points to what the type says of
// itself: a variant of all families would make each includer compile a visit per question, and would be closed.

#include <string_view>

#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/core/shape_error.hpp"
#include "rheo/schedule/core/stage_work.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What a family says of itself. The functions are given it, for schedules that are more than a type.
struct schedule_family {
    std::string_view name;
    std::string_view source;
    shape_error (*fault)(schedule_family const&, schedule_shape);
    rheo::program (*program)(schedule_family const&, schedule_shape);
    bool peaks_grow;
    int microbatches = 0;  ///< the only number that it can be made for; 0: it depends
};

template <Schedule S>
constexpr std::string_view source_of_family()
{
    if constexpr (requires { S::source; }) {
        return S::source;
    }
    return {};
}

template <Schedule S>
constexpr bool peaks_of_family_grow()
{
    if constexpr (requires { S::peaks_grow; }) {
        return S::peaks_grow;
    }
    return false;
}

template <Schedule S>
inline constexpr schedule_family family_of{S::name, source_of_family<S>(), [](schedule_family const&, schedule_shape shape) { return error_of<S>(shape); },
                                           [](schedule_family const&, schedule_shape shape) { return S::program(shape); }, peaks_of_family_grow<S>()};

/// Of a schedule of which only the name is known: it can be made at no size.
constexpr schedule_family unknown_family(std::string_view name)
{
    return {name,
            {},
            [](schedule_family const&, schedule_shape) { return shape_error::unknown; },
            [](schedule_family const&, schedule_shape) {
                expects(false, message_of(shape_error::unknown));
                return rheo::program{};
            },
            false};
}

inline constexpr schedule_family no_family = unknown_family({});

}  // namespace detail

/// One of the families, or any other schedule; equal when it is the same type.
class any_schedule {
public:
    /// None: without a name, and not known.
    constexpr any_schedule() = default;

    template <Schedule S>
    constexpr any_schedule(S const&) : family_{&detail::family_of<S>}
    {
    }

    /// @pre the family outlives it
    constexpr explicit any_schedule(detail::schedule_family const& family) : family_{&family} {}

    constexpr detail::schedule_family const& operator*() const { return *family_; }
    constexpr detail::schedule_family const* operator->() const { return family_; }

    friend constexpr bool operator==(any_schedule, any_schedule) = default;

private:
    detail::schedule_family const* family_ = &detail::no_family;
};

/// The name of the chosen family.
constexpr std::string_view name_of(any_schedule schedule) { return schedule->name; }

/// Where the family comes from: paper and section.
constexpr std::string_view source_of(any_schedule schedule) { return schedule->source; }

/// Why the family cannot be made at this size; `none` when it can.
constexpr shape_error error_of(any_schedule schedule, schedule_shape shape) { return schedule->fault(*schedule, shape); }

/// False for none, and where only a name is known.
constexpr bool is_known(any_schedule schedule) { return error_of(schedule, {.ranks = 1, .microbatches = 1}) != shape_error::unknown; }

/// The compute program of a whole step. @pre what the family asks for
constexpr program make_program(any_schedule schedule, schedule_shape shape) { return schedule->program(*schedule, shape); }

/// The compute program of `work`, in its order, on `ranks` ranks. @pre what the family asks for
template <class OnlyWhenCalled = void>
constexpr program make_program(any_schedule schedule, int ranks, array_view<stage_work const> work)
{
    return detail::restricted(schedule->program(*schedule, {.ranks = ranks, .microbatches = static_cast<int>(work.size())}), work);
}

}  // namespace rheo::inline v0
