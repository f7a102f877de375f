#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether a rank's part of a pipeline fits into a device, and if not as it is, what is recomputed so that it does. Cheap slots come first
// (model/recompute_level.hpp): the fewest layers that drop them. Where not even all layers' are enough, whole layers are recomputed, the fewest, with the cheap slots of
// all others dropped; of these, again, no more than needed. Where a position has one stage no choice of layers is smaller; where it has
// several, layers are taken in the order of what they free in all items in flight.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/plan/memory_parts.hpp"

namespace rheo::inline v0 {

/// The memory of a rank on a device.
struct memory_plan {
    memory_parts parts{};
    std::vector<recompute_level> recompute_levels{};  ///< of each layer of the model; nothing for those of other ranks
    flops recomputed_now{};                           ///< for each microbatch, by all stages of the position
    flops computed{};                                 ///< for each microbatch without that
    bytes available{};

    constexpr bool fits() const { return total(parts) <= available; }
    constexpr explicit operator bool() const { return fits(); }
    friend constexpr bool operator==(memory_plan const&, memory_plan const&) = default;
};

namespace detail {

/// What is fixed while layers are chosen.
struct memory_choice {
    rank_flow flow;
    bytes available;             ///< for what flows
    std::vector<int> in_flight;  ///< layer -> items of it at most at once on the position

    template <class OnlyWhenCalled = void>
    constexpr bytes needed(std::vector<recompute_level> const& recompute_levels) const
    {
        return total(flow_of(flow, recompute_levels));
    }
    constexpr bytes size(std::size_t layer, recompute_level how) const { return flow.dropped[layer][static_cast<std::size_t>(how)]; }
};

/// Layer -> the most items of its stages that the position has in flight.
template <class OnlyWhenCalled = void>
constexpr std::vector<int> items_in_flight(rank_flow const& flow)
{
    auto const& p = flow.run;
    std::vector<int> most(flow.dropped.size(), 0);
    for (std::size_t s = 0; s < p.placement.size(); ++s) {
        if (p.placement[s] != flow.position) {
            continue;
        }
        auto const peaks = peaks_by_rank<int>(p, [&](int stage) { return holding<int>{static_cast<std::size_t>(stage) == s ? 1 : 0}; });
        auto const span = layers_of(flow.pipeline, stage_id{static_cast<int>(s)});
        for (auto l = span.begin; l < span.end; ++l) {
            most[at(l)] += peaks[static_cast<std::size_t>(flow.position)];
        }
    }
    return most;
}

struct layer_choice {
    std::vector<recompute_level> recompute_levels;
    bool fits = false;
};

/// The fewest layers that go from what `base` says to `how`, so that all fits; if none do, those that need the least memory. For each size that the common region may
/// have, the layers within it that free most are taken one by one.
template <class OnlyWhenCalled = void>
constexpr layer_choice fewest_layers(memory_choice const& c, std::vector<recompute_level> const& base, recompute_level how)
{
    struct candidate {
        std::size_t layer;
        bytes region;
        bytes freed;
    };
    std::vector<candidate> order;  // what frees most first
    for (std::size_t l = 0; l < base.size(); ++l) {
        if (c.in_flight[l] == 0 || base[l] >= how) {
            continue;
        }
        auto const region = c.size(l, how);
        candidate const one{l, region, (region - c.size(l, base[l])) * c.in_flight[l]};
        if (one.freed > bytes{}) {
            auto place = order.size();
            while (place > 0 && order[place - 1].freed < one.freed) {
                --place;
            }
            order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), one);
        }
    }
    layer_choice best{base, c.needed(base) <= c.available};
    if (best.fits) {
        return best;
    }
    auto least = c.needed(base);
    std::size_t count = order.size() + 1;  // of the best that fits
    std::vector<bytes> tried;
    for (auto const& largest : order) {
        bool known = false;
        for (auto const region : tried) {
            known = known || region == largest.region;
        }
        if (known) {
            continue;
        }
        tried.push_back(largest.region);
        auto recompute_levels = base;
        std::size_t taken = 0;
        for (auto const& one : order) {
            if (one.region > largest.region) {
                continue;
            }
            recompute_levels[one.layer] = how;
            auto const needed = c.needed(recompute_levels);
            bool const fits = needed <= c.available;
            ++taken;
            if (fits ? taken < count || (taken == count && needed < least) : count > order.size() && needed < least) {
                best = {recompute_levels, fits};
                least = needed;
                count = fits ? taken : count;
            }
            if (fits || taken >= count) {
                break;
            }
        }
    }
    return best;
}

template <class OnlyWhenCalled = void>
constexpr layer_choice chosen_layers(memory_choice const& c)
{
    std::vector<recompute_level> const nothing(c.flow.dropped.size(), recompute_level::none);
    auto const cheap = fewest_layers(c, nothing, recompute_level::cheap);
    if (cheap.fits || c.flow.run.slices > 1) {
        return cheap;
    }
    auto all_cheap = nothing;
    for (std::size_t l = 0; l < all_cheap.size(); ++l) {
        all_cheap[l] = c.in_flight[l] > 0 && c.size(l, recompute_level::cheap) > bytes{} ? recompute_level::cheap : recompute_level::none;
    }
    auto const whole = fewest_layers(c, all_cheap, recompute_level::full);
    if (!whole.fits) {
        return whole;
    }
    auto only_whole = whole.recompute_levels;
    for (auto& how : only_whole) {
        how = how == recompute_level::full ? how : recompute_level::none;
    }
    return fewest_layers(c, only_whole, recompute_level::cheap);
}

}  // namespace detail

/// The memory of a position on a device that has so much, with the least recomputed; where it does not fit, as small as it gets.
/// Products are recomputed once per item, in split backwards twice: before each half.
/// Cost: layers squared times the position's instructions. @pre parts_at's
template <class OnlyWhenCalled = void>
constexpr memory_plan plan_memory(model_description const& model, pipeline_instance const& pipeline, program const& p, int position, memory_terms const& terms,
                                  bytes available)
{
    auto const state = state_parts(model, layers_at(pipeline.cuts, placement_of(p), position), terms, group_at(pipeline, position, grid_of(model)));
    auto const flow = rank_flow_at(model, pipeline, p, position, terms);
    detail::memory_choice const choice{flow, available - total(state), detail::items_in_flight(flow)};
    memory_plan result{.recompute_levels = detail::chosen_layers(choice).recompute_levels, .available = available};
    result.parts = flow_of(flow, result.recompute_levels);
    result.parts.state = state;
    bool split = false;
    for (auto const& i : p.rows[static_cast<std::size_t>(position)]) {
        split = split || i.kind == instruction_kind::weight_gradient;
    }
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
        if (choice.in_flight[l] > 0) {
            result.computed += (forward_flops(model.layers[l], terms.shape) + backward_flops(model.layers[l], terms.shape)) * terms.shape.slices;
            result.recomputed_now += recompute_flops(model.layers[l], terms.shape, result.recompute_levels[l]) * (split ? 2 : 1);
        }
    }
    return result;
}

/// How many layers make so much again.
template <class OnlyWhenCalled = void>
constexpr int layers_at_level(memory_plan const& plan, recompute_level how)
{
    int count = 0;
    for (auto const one : plan.recompute_levels) {
        count += one == how ? 1 : 0;
    }
    return count;
}

/// The refusal in one sentence: the device, what is needed, what is there, the largest part. @pre it does not fit
template <class OnlyWhenCalled = void>
std::string message_of(memory_plan const& plan, std::string_view device)
{
    expects(!plan.fits(), "only what does not fit is refused");
    auto const size = [](bytes count) {  // in GiB, or MiB below one, with two digits
        bool const large = count >= gibibytes(1);
        auto const hundredths = large ? (count.count * 100 + (1 << 29)) >> 30 : (count.count * 100 + (1 << 19)) >> 20;
        auto text = std::to_string(hundredths / 100) + (hundredths % 100 < 10 ? ".0" : ".") + std::to_string(hundredths % 100);
        return text + (large ? " GiB" : " MiB");
    };
    auto const largest = largest_of(plan.parts);
    auto text = std::string{device} + " has " + size(plan.available) + ", but " + size(total(plan.parts)) + " are needed";
    if (layers_at_level(plan, recompute_level::cheap) + layers_at_level(plan, recompute_level::full) > 0) {
        text += " with full recomputation";
    }
    return text + "; the largest part is " + size(largest.size) + " of " + std::string{largest.name};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template memory_plan plan_memory<>(model_description const&, pipeline_instance const&, program const&, int, memory_terms const&, bytes);
#endif

}  // namespace rheo::inline v0
