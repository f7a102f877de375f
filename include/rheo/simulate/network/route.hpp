#pragma once
// SPDX-License-Identifier: Apache-2.0

// The way of a message as the bundles of links that it takes one after the other. Bundles are numbered over the whole
// network, so that what is known of links is an array; a route is a few numbers, however long it is.

#include <cstdint>
#include <vector>

#include "rheo/simulate/network/network_level.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Hop h takes the bundle `base + (first + h * step) mod members`.
struct network_route {
    std::int32_t level;
    std::int32_t base;
    std::int32_t first;
    std::int32_t step;
    std::int32_t members;  ///< the modulus
    std::int32_t hops;

    friend constexpr bool operator==(network_route const&, network_route const&) = default;
};

/// @pre hop < hops of the route
constexpr std::int32_t bundle_at(network_route const& route, std::int32_t hop)
{
    auto const place = (std::int64_t{route.first} + std::int64_t{hop} * route.step) % route.members;
    return route.base + static_cast<std::int32_t>(place);
}

/// Numbers the bundles of a network and finds routes.
/// @tparam HasOwnLinks each rank has its own bundles in each level, and a message takes the first level in which its ends differ; else all
///   ranks of a member share them, and it takes the last one. The levels inside are then not crossed: a device has its own way to the
///   adapters of its node.
template <class Link, bool HasOwnLinks>
class network_routes {
public:
    /// @pre network_fault(levels) is empty
    explicit network_routes(array_view<network_level<Link> const> levels)
    {
        ranks_ = ranks_of(levels);
        std::int32_t stride = 1;
        for (auto const& level : levels) {
            levels_.push_back({stride, level.members, level.topology, bundles_, HasOwnLinks ? stride : 1});
            auto const lanes = std::int64_t{ranks_} / stride / level.members * levels_.back().lanes;
            bundles_ += static_cast<std::int32_t>(lanes * detail::bundles_of(level.topology, level.members));
            stride *= level.members;
            first_bundle_.push_back(bundles_);
        }
    }

    int ranks() const { return ranks_; }
    std::int32_t bundles() const { return bundles_; }
    /// The number after the last bundle of the level.
    std::int32_t end_of(std::size_t level) const { return first_bundle_[level]; }

    /// @pre two different ranks of the network
    network_route route(rank_id from, rank_id to) const
    {
        expects(from != to && from.value >= 0 && to.value >= 0 && from.value < ranks_ && to.value < ranks_, "a message goes from one rank to another one");
        auto const level = level_between(from, to);
        auto const& l = levels_[static_cast<std::size_t>(level)];
        auto const p = from.value / l.stride % l.members;
        auto const q = to.value / l.stride % l.members;
        auto const lane = from.value / l.stride / l.members * l.lanes + (l.lanes == 1 ? 0 : from.value % l.stride);
        auto const base = l.base + lane * static_cast<std::int32_t>(detail::bundles_of(l.topology, l.members));
        switch (l.topology) {
        case network_topology::switched: return {level, base, p, l.members + q - p, 2 * l.members, 2};
        case network_topology::full: return {level, base, p * l.members + q, 0, l.members * l.members, 1};
        case network_topology::ring: break;
        }
        auto const ahead = (q - p + l.members) % l.members;
        auto const behind = l.members - ahead;
        bool const ascends = ahead <= behind;
        return {level, ascends ? base : base + l.members, p, ascends ? 1 : l.members - 1, l.members, ascends ? ahead : behind};
    }

    /// Of each bundle the one that stands for it when the network is turned in its levels: a member of level k is like the one periods[k]
    /// places before it. @pre a period for each level, which divides its members
    std::vector<std::int32_t> equal_bundles(array_view<std::int32_t const> periods) const
    {
        std::vector<std::int32_t> equal(static_cast<std::size_t>(bundles_));
        for (std::size_t k = 0; k < levels_.size(); ++k) {
            auto const& l = levels_[k];
            auto const of_lane = static_cast<std::int32_t>(detail::bundles_of(l.topology, l.members));
            for (auto bundle = l.base; bundle < end_of(k); ++bundle) {
                auto const lane = (bundle - l.base) / of_lane;
                auto const inside = l.lanes == 1 ? 0 : turned_back(lane % l.lanes, 0, periods);
                auto const outside = turned_back(lane / l.lanes, k + 1, periods);
                equal[static_cast<std::size_t>(bundle)] =
                    l.base + (outside * l.lanes + inside) * of_lane + turned_bundle(l, (bundle - l.base) % of_lane, periods[k]);
            }
        }
        return equal;
    }

private:
    struct numbered_level {
        std::int32_t stride;  ///< ranks of a member
        std::int32_t members;
        network_topology topology;
        std::int32_t base;
        std::int32_t lanes;  ///< of a group
    };

    /// A number whose digits are places in the levels from `first` on, each within its period.
    std::int32_t turned_back(std::int32_t number, std::size_t first, array_view<std::int32_t const> periods) const
    {
        std::int32_t result = 0;
        std::int32_t stride = 1;
        for (auto k = first; k < levels_.size(); ++k) {
            result += number % levels_[k].members % periods[k] * stride;
            number /= levels_[k].members;
            stride *= levels_[k].members;
        }
        return result;
    }

    static std::int32_t turned_bundle(numbered_level const& l, std::int32_t index, std::int32_t period)
    {
        if (l.topology != network_topology::full) {
            return index / l.members * l.members + index % l.members % period;
        }
        auto const from = index / l.members;
        auto const by = from - from % period;
        return (from - by) * l.members + (index % l.members - by + l.members) % l.members;
    }

    std::int32_t level_between(rank_id from, rank_id to) const
    {
        std::int32_t found = 0;
        for (std::size_t k = 0; k < levels_.size(); ++k) {
            auto const& l = levels_[k];
            if (from.value / l.stride % l.members != to.value / l.stride % l.members) {
                found = static_cast<std::int32_t>(k);
                if (HasOwnLinks) {
                    break;
                }
            }
        }
        return found;
    }

    std::vector<numbered_level> levels_;
    std::vector<std::int32_t> first_bundle_;
    int ranks_ = 0;
    std::int32_t bundles_ = 0;
};

}  // namespace rheo::inline v0
