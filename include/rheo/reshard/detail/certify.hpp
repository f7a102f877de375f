#pragma once
// SPDX-License-Identifier: Apache-2.0

// The figures of a plan: what each rank sends, receives, and has at most.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::detail {

/// Bytes by rank.
class rank_bytes {
public:
    template <class OnlyWhenCalled = void>
    constexpr void add(rank_id rank, std::int64_t size)
    {
        if (at(rank) >= bytes_.size()) {
            bytes_.resize(at(rank) + 1, 0);
        }
        bytes_[at(rank)] += size;
    }

    constexpr std::int64_t operator[](rank_id rank) const { return at(rank) < bytes_.size() ? bytes_[at(rank)] : 0; }
    constexpr std::size_t size() const { return bytes_.size(); }
    constexpr std::int64_t largest() const { return bytes_.empty() ? 0 : *std::max_element(bytes_.begin(), bytes_.end()); }

private:
    std::vector<std::int64_t> bytes_{};
};

/// Without padding.
constexpr std::int64_t data_bytes(layout_tensor const& tensor, array_part const& part)
{
    auto const box = data_of(tensor, part.box);
    return is_empty(box) ? 0 : elements(box) * element_bytes(tensor, part.roles).count;
}

template <class OnlyWhenCalled = void>
constexpr rank_bytes layout_bytes(array_layout const& layout)
{
    rank_bytes sum;
    for (auto const& place : layout.places) {
        std::int64_t size = 0;
        for (auto const& part : place.parts) {
            size += data_bytes(layout.tensors[at(part.tensor)], part);
        }
        for (auto const rank : place.ranks) {
            sum.add(rank, size);
        }
    }
    return sum;
}

/// What a transfer adds to the bytes of its receiver, as they are kept there. What is converted or added up is not counted: the receiver
/// has all of it from the beginning, beside what it is made of.
constexpr std::int64_t kept_size(reshard_plan const& plan, transfer const& move)
{
    role_set const others{static_cast<std::uint8_t>(move.roles.bits & ~changed_in(plan, move.tensor).bits)};
    return elements(move.box) * element_bytes(plan.tensors[at(move.tensor)], others).count;
}

/// Adds what each rank wants in another format than it is held.
template <class OnlyWhenCalled = void>
constexpr void add_changed(rank_bytes& had, reshard_plan const& plan, array_layout const& to)
{
    for (auto const& place : to.places) {
        std::int64_t size = 0;
        for (auto const& part : place.parts) {
            if (auto const changed = part.roles & changed_in(plan, part.tensor); !changed.empty()) {
                size += data_bytes(to.tensors[at(part.tensor)], {part.tensor, part.box, changed});
            }
        }
        for (auto const rank : place.ranks) {
            had.add(rank_at(plan, rank), size);
        }
    }
}

/// What the transfers of a plan say for themselves; the bounds are left as they are.
/// @param node_of by rank; empty: nothing is counted between nodes
template <class OnlyWhenCalled = void>
constexpr reshard_certificate figures_of(reshard_plan const& plan, array_layout const& from, array_layout const& to, std::vector<node_id> const& node_of)
{
    auto figures = plan.certificate;
    rank_bytes sent;
    rank_bytes received;
    auto had = layout_bytes(from);
    if (!plan.held.empty()) {
        add_changed(had, plan, to);
    }
    std::int64_t moved = 0;
    std::int64_t between = 0;
    int rounds = 0;
    auto peak = had.largest();
    std::size_t drop = 0;
    auto const drop_at = [&](int round) {
        for (; drop < plan.dropped.size() && plan.dropped[drop].round == round; ++drop) {
            had.add(plan.dropped[drop].rank, -data_bytes(from.tensors[at(plan.dropped[drop].part.tensor)], plan.dropped[drop].part));
        }
    };
    drop_at(-1);
    for (std::size_t i = 0; i < plan.transfers.size();) {
        auto const round = plan.transfers[i].round;
        for (; i < plan.transfers.size() && plan.transfers[i].round == round; ++i) {
            auto const& move = plan.transfers[i];
            moved += move.size.count;
            sent.add(move.from, move.size.count);
            received.add(move.to, move.size.count);
            had.add(move.to, kept_size(plan, move));
            peak = std::max(peak, had[move.to]);
            between += !node_of.empty() && node_of[at(move.from)] != node_of[at(move.to)] ? move.size.count : 0;
        }
        rounds = round + 1;
        drop_at(round);
    }
    figures.moved.value = bytes{moved};
    figures.largest_send.value = bytes{sent.largest()};
    figures.largest_receive.value = bytes{received.largest()};
    figures.between_nodes.value = bytes{between};
    figures.rounds.value = rounds;
    figures.peak.value = bytes{peak};
    return figures;
}

}  // namespace rheo::inline v0::detail
