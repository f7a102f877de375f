#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the devices of a cut pipeline have to hold under a schedule: state, and at the worst moment of a rank the activations of the microbatches that
// its program has in flight and the gradients that split backwards keep, of all its stages together. From it follows how many microbatches fit.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/partition/steady_microbatches.hpp"
#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Rank -> what each of its devices holds at most. @pre cuts and devices of the program's stages, one device where activations are evicted
template <class OnlyWhenCalled = void>
constexpr std::vector<bytes> memory_by_rank(stage_prices const& prices, program const& p, array_view<layer_id const> cuts, array_view<int const> devices)
{
    auto const chain = stages_per_copy(p);
    expects(stage_count(cuts) == chain && devices.size() == static_cast<std::size_t>(chain), "the cuts are not those of the program's stages");
    bool evicts = false;
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            evicts = evicts || i.kind == instruction_kind::evict;
        }
    }
    std::vector<held_bytes> items;
    std::vector<std::vector<layer_span>> layers(p.rows.size());
    std::vector<bytes> regions(p.rows.size());
    std::vector<int> sharing(p.rows.size(), 1);
    for (std::size_t s = 0; s < p.placement.size(); ++s) {
        auto const stage = static_cast<int>(s) % chain;
        auto const span = layers_of(cuts, stage_id{stage});
        auto const rank = static_cast<std::size_t>(p.placement[s]);
        layers[rank].push_back(span);
        regions[rank] = std::max(regions[rank], prices.region(span));
        sharing[rank] = devices[static_cast<std::size_t>(stage)];
        items.push_back({prices.activations(span) / p.slices, evicts ? prices.input(span) / p.slices : bytes{}, prices.kept_gradients(span) / p.slices});
    }
    auto held = peak_bytes_by_rank(p, items);
    for (std::size_t r = 0; r < held.size(); ++r) {
        held[r] += prices.state(layers[r]) + regions[r] * (has_overlap(p, static_cast<int>(r)) ? 2 : 1);
        held[r] = prices.shared_by(sharing[r], held[r]);
    }
    return held;
}

/// The largest of them.
template <class OnlyWhenCalled = void>
constexpr bytes fullest_device(stage_prices const& prices, program const& p, array_view<layer_id const> cuts, array_view<int const> devices)
{
    bytes most;
    for (auto const held : memory_by_rank(prices, p, cuts, devices)) {
        most = std::max(most, held);
    }
    return most;
}

/// How many microbatches, and any number below, a pipeline with these cuts can run in a step on devices of so much memory, at most
/// `most`; 0: not even one. Numbers that the schedule cannot have are passed over. Found by bisection where a further microbatch
/// never lowers what is in flight (peaks_grow), else by looking at one after the other; more than make a steady step (steady_microbatches.hpp) fit
/// if those do. @pre most >= 1. Cost: that of about log2(most) programs, or of so many as fit.
/// @param recompute all stages may recompute activations; programs are not on a grid of slices then
/// @param slices of sequences, for families that cut them; 0: their own choice
template <class OnlyWhenCalled = void>
constexpr int microbatches_that_fit(stage_prices const& prices, any_schedule const& schedule, array_view<layer_id const> cuts, array_view<int const> devices,
                                    int ranks, bytes device_memory, int most, bool recompute = false, int slices = 0)
{
    expects(most >= 1, "a step needs at least one microbatch");
    auto const shape_of = [&](int m) { return on_slices(schedule, {.ranks = ranks, .microbatches = m}, slices); };
    auto const possible = [&](int m) { return error_of(schedule, shape_of(m)) == shape_error::none; };
    auto const fits_in = [&](int m) {
        auto const p = make_program(schedule, shape_of(m));
        return fullest_device(prices, p, cuts, devices) <= device_memory ||
               (recompute && fullest_device(prices, with_recomputation(p), cuts, devices) <= device_memory);
    };
    auto const steady = steady_microbatches<OnlyWhenCalled>(schedule, ranks, most, slices);  // dependent, or it is instantiated here already
    if (steady < most && fits_in(steady)) {
        return most;
    }
    int fits = 0;
    int beyond = steady + 1;
    if (!schedule->peaks_grow) {
        for (int m = 1; m < beyond; ++m) {
            if (possible(m)) {
                (fits_in(m) ? fits : beyond) = m;
            }
        }
        return fits;
    }
    while (beyond - fits > 1) {
        auto const middle = fits + (beyond - fits) / 2;
        auto tried = middle;
        while (tried > fits && !possible(tried)) {
            --tried;
        }
        if (tried == fits) {  // none between: ask above, where there may be one
            tried = middle + 1;
            while (tried < beyond && !possible(tried)) {
                ++tried;
            }
            if (tried == beyond) {
                break;
            }
        }
        (fits_in(tried) ? fits : beyond) = tried;
    }
    return fits;
}

}  // namespace rheo::inline v0
