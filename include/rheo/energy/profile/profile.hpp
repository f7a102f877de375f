#pragma once
// SPDX-License-Identifier: Apache-2.0

// What was measured: for each stage (or each rank and stage, as no two devices are equal) and each kind of
// computation, the time and the energy at each clock. A row at clock 0 is an operation whose time does not
// depend on the clock. A row marked as throttled was measured while the device could not hold the clock that
// was asked for; such a clock cannot be planned with, so its options are left out.

#include <cstddef>
#include <string_view>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The name of a computation in profiles; empty for what has no profile.
constexpr std::string_view profile_name(instruction_kind kind)
{
    constexpr std::string_view names[] = {"forward", "backward", "input_gradient", "weight_gradient", "send_activation", "", "send_gradient"};
    return static_cast<std::size_t>(kind) < std::size(names) ? names[static_cast<std::size_t>(kind)] : std::string_view{};
}

struct profile_row {
    rank_id rank{-1};  ///< -1: of every rank
    stage_id stage;
    instruction_kind kind;
    megahertz clock;  ///< 0: no clock matters
    seconds time;
    joules energy;
    bool throttled = false;

    friend constexpr bool operator==(profile_row const&, profile_row const&) = default;
};

struct profile {
    std::vector<profile_row> rows;
    watts blocking{};  ///< what a device draws while it waits; 0: not measured

    friend constexpr bool operator==(profile const&, profile const&) = default;
};

/// What a waiting device is counted at when neither the profile nor the caller gives it: an A100-SXM that waits for a message.
inline constexpr watts usual_blocking{83.64};

/// What a waiting device draws: as wanted, else as measured, else as usual. @param wanted 0: nothing is wanted
constexpr watts blocking_of(profile const& measured, watts wanted)
{
    return wanted > watts{} ? wanted : measured.blocking > watts{} ? measured.blocking : usual_blocking;
}

/// The number of stages, counted from 0.
template <class OnlyWhenCalled = void>
constexpr int stages_of(profile const& measured)
{
    int stages = 0;
    for (auto const& row : measured.rows) {
        stages = row.stage.value >= stages ? row.stage.value + 1 : stages;
    }
    return stages;
}

/// One way to run an operation.
struct clock_option {
    megahertz clock;
    seconds time;
    joules energy;

    friend constexpr bool operator==(clock_option, clock_option) = default;
};

/// The options of a computation on a rank, fastest first (ties: cheapest first), throttled ones left out. Rows of
/// the rank itself come before rows of every rank. Empty when nothing was measured. Cost: rows + options^2.
template <class OnlyWhenCalled = void>
constexpr std::vector<clock_option> options_of(profile const& measured, rank_id rank, stage_id stage, instruction_kind kind)
{
    std::vector<clock_option> options;
    auto const take = [&](rank_id whose) {
        for (auto const& row : measured.rows) {
            if (row.rank != whose || row.stage != stage || row.kind != kind || row.throttled) {
                continue;
            }
            clock_option const option{row.clock, row.time, row.energy};
            auto const before = [](clock_option a, clock_option b) { return a.time != b.time ? a.time < b.time : a.energy < b.energy; };
            std::size_t place = options.size();
            options.push_back(option);
            for (; place > 0 && before(option, options[place - 1]); --place) {
                options[place] = options[place - 1];
            }
            options[place] = option;
        }
    };
    take(rank);
    if (options.empty()) {
        take(rank_id{-1});
    }
    return options;
}

}  // namespace rheo::inline v0
