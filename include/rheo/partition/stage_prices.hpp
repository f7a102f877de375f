#pragma once
// SPDX-License-Identifier: Apache-2.0

// What any stage takes, at once: differences of sums over the layers before. In whole nanoseconds and bytes, so that
// no order of additions can change a plan. A stage of d devices of a node computes each layer in a d-th of the time and
// sums up after it; its state and activations are shared evenly. What two layers of a stage have in common counts once.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/schedule/check/activations.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What two layers have in common.
struct tied_state {
    layer_id first;
    layer_id second;
    bytes size;

    friend constexpr bool operator==(tied_state const&, tied_state const&) = default;
};

struct stage_prices {
    std::vector<std::vector<std::int64_t>> forward_before;  ///< [devices - 1][layer], nanoseconds
    std::vector<std::vector<std::int64_t>> backward_before;
    std::vector<std::int64_t> send_after;             ///< layer -> its message to the next one, nanoseconds
    std::vector<std::int64_t> persistent_before;      ///< bytes
    std::vector<std::int64_t> per_microbatch_before;  ///< without the layers' inputs
    std::vector<std::int64_t> boundary_after{};       ///< layer -> its message to the next one, bytes
    std::vector<std::int64_t> input_of{};             ///< layer -> of its activations, what a stage that begins with it keeps besides, bytes
    std::vector<std::int64_t> kept_gradients_before{};
    std::vector<std::int64_t> recompute_buffer{};  ///< layer -> bytes
    std::vector<tied_state> ties{};

    constexpr int layers() const { return static_cast<int>(persistent_before.size()) - 1; }
    constexpr int devices_per_node() const { return static_cast<int>(forward_before.size()); }

    constexpr std::int64_t forward(layer_span span, int devices) const { return difference(forward_before[place(devices)], span); }
    constexpr std::int64_t backward(layer_span span, int devices) const { return difference(backward_before[place(devices)], span); }

    /// Forward and backward of a microbatch.
    constexpr std::int64_t time(layer_span span, int devices) const { return forward(span, devices) + backward(span, devices); }

    /// The message from a stage to the next one.
    constexpr std::int64_t send_from(layer_span span) const { return send_after[at(span.end) - 1]; }

    /// What each device of the stage holds at the worst of these moments (held_at_once), rounded up; items are slices of a microbatch.
    constexpr bytes memory(layer_span span, int devices, array_view<held_items const> moments, int slices = 1, int regions = 1) const
    {
        bytes flowing{};
        for (auto const& held : moments) {
            flowing = std::max(
                flowing, activations(span) / slices * held.activations + kept_gradients(span) / slices * held.gradients + input(span) / slices * held.inputs);
        }
        return shared_by(devices, state(span) + flowing + region(span) * (moments.empty() ? 0 : regions));
    }

    /// The same with so many microbatches in flight, whose backwards are whole.
    constexpr bytes memory(layer_span span, int devices, std::int64_t in_flight) const
    {
        held_items const held{in_flight, 0};
        return memory(span, devices, array_view{&held, static_cast<std::size_t>(in_flight > 0 ? 1 : 0)});
    }

    constexpr bytes state(layer_span span) const { return state(array_view{&span, 1}); }
    constexpr bytes activations(layer_span span) const { return {difference(per_microbatch_before, span) + input_of[at(span.begin)]}; }  ///< of a microbatch
    constexpr bytes kept_gradients(layer_span span) const { return {difference(kept_gradients_before, span)}; }                          ///< the same

    /// Of a device that holds all these layers.
    constexpr bytes state(array_view<layer_span const> held) const
    {
        bytes sum{};
        for (auto const span : held) {
            sum += {difference(persistent_before, span)};
        }
        for (auto const& tie : ties) {
            sum -= contains(held, tie.first) && contains(held, tie.second) ? tie.size : bytes{};
        }
        return sum;
    }

    /// A part of what so many devices share, rounded up.
    static constexpr bytes shared_by(int devices, bytes whole) { return {(whole.count + devices - 1) / devices}; }

    /// Where the stage recomputes what it has not kept, one layer of one item at a time. It is as large as the largest of its layers' parts: that layer
    /// drops it, or keeps as much for each item in flight.
    constexpr bytes region(layer_span span) const
    {
        auto const layers = array_view{recompute_buffer}.subspan(at(span.begin), static_cast<std::size_t>(size(span)));
        return {*std::max_element(layers.begin(), layers.end())};
    }

    /// What a stage keeps of a microbatch that it computes again; tokens, which the first stage gets, are not counted.
    constexpr bytes input(layer_span span) const
    {
        return {span.begin.value == 0 ? 0 : std::max(boundary_after[at(span.begin) - 1], input_of[at(span.begin)])};
    }

private:
    static constexpr std::size_t place(int devices) { return static_cast<std::size_t>(devices) - 1; }

    static constexpr std::int64_t difference(std::vector<std::int64_t> const& before, layer_span span) { return before[at(span.end)] - before[at(span.begin)]; }
};

/// The prices of all stages on 1 .. devices_per_node devices, messages going over one link.
/// @pre there is a layer; no time and no size is negative; each layer says what sharing it takes for every number of devices
template <class OnlyWhenCalled = void>
constexpr stage_prices make_stage_prices(array_view<layer_profile const> layers, modelled_link between, int devices_per_node = 1)
{
    expects(!layers.empty(), "a model without layers has no stages");
    expects(devices_per_node >= 1, "a node has at least one device");
    stage_prices prices{{}, {}, {}, {0}, {0}, {}, {}, {0}, {}, {}};
    for (int devices = 1; devices <= devices_per_node; ++devices) {
        std::vector<std::int64_t> forward{0};
        std::vector<std::int64_t> backward{0};
        for (auto const& layer : layers) {
            expects(layer.forward.count >= 0 && layer.backward.count >= 0, "a layer cannot have a negative time");
            std::int64_t sum = 0;
            if (devices > 1) {
                expects(static_cast<std::size_t>(devices) - 1 <= layer.all_reduce.size(), "a layer does not say what sharing it between so many devices takes");
                sum = in_whole_nanoseconds(layer.all_reduce[static_cast<std::size_t>(devices) - 2]);
            }
            forward.push_back(forward.back() + in_whole_nanoseconds(layer.forward / static_cast<double>(devices)) + sum);
            backward.push_back(backward.back() + in_whole_nanoseconds(layer.backward / static_cast<double>(devices)) + sum);
        }
        prices.forward_before.push_back(forward);
        prices.backward_before.push_back(backward);
    }
    for (auto const& layer : layers) {
        expects(layer.persistent.count >= 0 && layer.per_microbatch.count >= 0 && layer.boundary.count >= 0 && layer.recompute_buffer.count >= 0 &&
                    layer.input.count >= 0 && layer.kept_gradients.count >= 0 && layer.tied.count >= 0,
                "a layer cannot have a negative size");
        expects(layer.input <= layer.per_microbatch, "the input of a layer is a part of what it keeps");
        auto const number = static_cast<int>(prices.recompute_buffer.size());
        expects(layer.tied_to < number, "a layer is tied to an earlier one");
        if (layer.tied_to >= 0) {
            prices.ties.push_back({layer_id{layer.tied_to}, layer_id{number}, layer.tied});
        }
        prices.input_of.push_back(layer.input.count);
        prices.kept_gradients_before.push_back(prices.kept_gradients_before.back() + layer.kept_gradients.count);
        prices.send_after.push_back(in_whole_nanoseconds(transfer_time(between, layer.boundary)));
        prices.boundary_after.push_back(layer.boundary.count);
        prices.recompute_buffer.push_back(layer.recompute_buffer.count);
        prices.persistent_before.push_back(prices.persistent_before.back() + layer.persistent.count);
        prices.per_microbatch_before.push_back(prices.per_microbatch_before.back() + layer.per_microbatch.count - layer.input.count);
    }
    return prices;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template stage_prices make_stage_prices<>(array_view<layer_profile const>, modelled_link, int);
#endif

}  // namespace rheo::inline v0
