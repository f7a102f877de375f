#pragma once
// SPDX-License-Identifier: Apache-2.0

// The makespan of a program whose stages are cut and priced like this, transfers included. In whole nanoseconds: the share of
// a slice is rounded to the nearest, so that the same cuts have the same makespan everywhere.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/detail/replay.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What a stage takes for one item of a program with so many slices; its gradient's message belongs to the cut before it.
constexpr stage_times times_of_stage(stage_prices const& prices, int slices, layer_span span, int devices)
{
    auto const share = [&](std::int64_t time) { return (time + slices / 2) / slices; };
    auto const last = span.end.value == prices.layers();
    return {share(prices.forward(span, devices)), share(prices.backward(span, devices)), last ? 0 : share(prices.send_from(span)), 0};
}

template <class OnlyWhenCalled = void>
constexpr std::vector<stage_times> times_of_split(stage_prices const& prices, int slices, array_view<layer_id const> cuts, array_view<int const> devices)
{
    std::vector<stage_times> times;
    for (int s = 0; s < stage_count(cuts); ++s) {
        times.push_back(times_of_stage(prices, slices, layers_of(cuts, stage_id{s}), devices[static_cast<std::size_t>(s)]));
        if (s > 0) {
            times.back().send_gradient = times[static_cast<std::size_t>(s) - 1].send_activation;
        }
    }
    return times;
}

}  // namespace detail

/// @pre the program only computes and is sound; cuts of all layers and devices, one for each stage of a copy of its model
/// Cost: linear in the instructions.
template <class OnlyWhenCalled = void>
constexpr seconds makespan_of(stage_prices const& prices, program const& p, array_view<layer_id const> cuts, array_view<int const> devices)
{
    expects(stage_count(cuts) == stages_per_copy(p) && devices.size() + 1 == cuts.size(), "the cuts are not those of the program's stages");
    detail::replay replayed{p};
    return nanoseconds(static_cast<double>(replayed(detail::times_of_split(prices, p.slices, cuts, devices))));
}

/// The costs of a program's stages, those of all copies of its model, which the makespan follows from. @pre as makespan_of
template <class OnlyWhenCalled = void>
constexpr stage_costs costs_of_split(stage_prices const& prices, program const& p, array_view<layer_id const> cuts, array_view<int const> devices)
{
    auto const times = detail::times_of_split(prices, p.slices, cuts, devices);
    auto const time = [](std::int64_t count) { return nanoseconds(static_cast<double>(count)); };
    stage_costs costs;
    for (std::size_t s = 0; s < p.placement.size(); ++s) {
        auto const& t = times[s % times.size()];
        costs.push_back({.forward = time(t.forward),
                         .backward = time(t.backward),
                         .input_gradient = time(t.backward / 2),
                         .weight_gradient = time(t.backward - t.backward / 2),
                         .send_activation = time(t.send_activation),
                         .send_gradient = time(t.send_gradient)});
    }
    return costs;
}

/// The makespan where the marked stages recompute activations (schedule/transform/recomputation.hpp), each time for as long as a forward.
/// @pre one mark per stage of the program, items are whole microbatches. Cost: instructions of a row squared.
template <class OnlyWhenCalled = void>
constexpr seconds makespan_of(stage_prices const& prices, program const& p, array_view<layer_id const> cuts, array_view<int const> devices,
                              std::vector<bool> const& recomputed)
{
    expects(stage_count(cuts) == stages_per_copy(p) && devices.size() + 1 == cuts.size(), "the cuts are not those of the program's stages");
    auto const costs = costs_of_split(prices, p, cuts, devices);
    return makespan(with_recomputation(p, recomputed), costs);
}

}  // namespace rheo::inline v0
