#pragma once
// SPDX-License-Identifier: Apache-2.0

// From what layers were measured at to what stages take: a stage runs its layers one after the other at one clock, so
// at a clock its time and its energy are the sums of theirs. So one profile, measured layer by layer, serves the
// templates of every size.

#include <cstddef>
#include <string>
#include <vector>

#include "rheo/energy/profile/profile.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Layer -> its rows for one kind of computation.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<profile_row>> rows_by_layer(profile const& layers, instruction_kind kind)
{
    std::vector<std::vector<profile_row>> result(static_cast<std::size_t>(stages_of(layers)));
    for (auto const& row : layers.rows) {
        if (row.kind == kind) {
            result[at(row.stage)].push_back(row);
        }
    }
    return result;
}

/// The row at a clock, one at clock 0 standing for every clock; none when the layer was not measured there.
template <class OnlyWhenCalled = void>
constexpr profile_row const* row_at(std::vector<profile_row> const& rows, megahertz clock)
{
    for (auto const& row : rows) {
        if (row.clock == clock || row.clock.count == 0.0) {
            return &row;
        }
    }
    return nullptr;
}

/// The rows of one computation of a stage: the clocks at which all of its layers were measured. @return false when there are none
template <class OnlyWhenCalled = void>
constexpr bool add_stage(std::vector<std::vector<profile_row>> const& rows, layer_span span, stage_id stage, profile& stages)
{
    auto clocked = span.begin;  // a layer whose rows have clocks, where there is one
    for (auto l = span.begin; l < span.end; ++l) {
        clocked = row_at(rows[at(l)], megahertz{0.0}) == nullptr ? l : clocked;
    }
    auto const before = stages.rows.size();
    for (auto const& candidate : rows[at(clocked)]) {
        profile_row sum{rank_id{-1}, stage, candidate.kind, candidate.clock, seconds{0.0}, joules{0.0}, false};
        bool everywhere = true;
        for (auto l = span.begin; l < span.end && everywhere; ++l) {
            auto const* row = row_at(rows[at(l)], candidate.clock);
            everywhere = row != nullptr;
            if (everywhere) {
                sum.time += row->time;
                sum.energy += row->energy;
                sum.throttled = sum.throttled || row->throttled;
            }
        }
        if (everywhere) {
            stages.rows.push_back(sum);
        }
    }
    return stages.rows.size() > before;
}

}  // namespace detail

/// The profile of the stages between the cuts; the layers are the stages of `layers`. A clock that a layer could not hold
/// is throttled for its whole stage; transfers are those of the layers on either side of a cut.
/// @pre the cuts end with the number of layers. Cost: rows x clocks of a layer.
template <class OnlyWhenCalled = void>
constexpr result<profile> profile_of_stages(profile const& layers, array_view<layer_id const> cuts)
{
    expects(are_cuts(cuts) && cuts.back().value == stages_of(layers), "cuts of a profile must ascend from its first stage to the number of its stages");
    for (auto const& row : layers.rows) {
        if (row.rank.value >= 0) {
            return failure{"a profile by rank serves no templates: which rank runs a stage is not known ahead of time"};
        }
    }
    profile stages;
    for (auto const kind : {instruction_kind::forward, instruction_kind::backward, instruction_kind::input_gradient, instruction_kind::weight_gradient}) {
        auto const rows = detail::rows_by_layer(layers, kind);
        bool measured = false;
        for (auto const& of_layer : rows) {
            measured = measured || !of_layer.empty();
        }
        for (stage_id stage{0}; measured && stage.value < stage_count(cuts); ++stage) {
            auto const span = layers_of(cuts, stage);
            if (!detail::add_stage(rows, span, stage, stages)) {
                return failure{"stages " + std::to_string(span.begin.value) + " to " + std::to_string(span.end.value - 1) + " have no clock in common for " +
                               std::string{profile_name(kind)}};
            }
        }
    }
    for (stage_id stage{0}; stage.value < stage_count(cuts); ++stage) {
        auto const span = layers_of(cuts, stage);
        for (auto const& row : layers.rows) {
            bool const up = row.kind == instruction_kind::send_activation && row.stage.value == span.end.value - 1;
            bool const down = row.kind == instruction_kind::send_gradient && row.stage.value == span.begin.value;
            if (up || down) {
                stages.rows.push_back(row);
                stages.rows.back().stage = stage;
            }
        }
    }
    return stages;
}

/// What a microbatch takes on each layer at its highest clock, forwards and backwards: what templates are cut by.
/// Halves of a backward count where no whole one was measured. @pre not by rank
template <class OnlyWhenCalled = void>
constexpr std::vector<seconds> layer_times(profile const& layers)
{
    std::vector<seconds> times;
    for (stage_id layer{0}; layer.value < stages_of(layers); ++layer) {
        auto const least = [&](instruction_kind kind) {
            auto const options = options_of(layers, rank_id{-1}, layer, kind);
            return options.empty() ? seconds{0.0} : options.front().time;
        };
        auto const whole = least(instruction_kind::backward);
        times.push_back(least(instruction_kind::forward) +
                        (whole > seconds{0.0} ? whole : least(instruction_kind::input_gradient) + least(instruction_kind::weight_gradient)));
    }
    return times;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<profile> profile_of_stages<>(profile const&, array_view<layer_id const>);
#endif

}  // namespace rheo::inline v0
