#pragma once
// SPDX-License-Identifier: Apache-2.0

// Changes of places between two steps when a rank has no memory for what it holds and what it is to hold: in rounds. In each, ranks receive what they have
// room for, and drop what they are not to hold as soon as all that are to hold it do. So no copy is lost that the old or the new places count on. If nobody
// has room, cells with more than f + 1 holders are dropped first. Each round is one of the protocol: exchange of holdings, copy, vote, merge.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/tensor/collection.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The memory of a rank for state.
struct in_place_memory {
    std::optional<bytes> limit{};    ///< none: changes are never in rounds
    std::vector<bytes> all{};        ///< of each tensor, while steps run: with accumulators and reduced gradients
    std::vector<bytes> committed{};  ///< of each tensor, while places change

    friend bool operator==(in_place_memory const&, in_place_memory const&) = default;
};

/// What ranks hold in a round. Each list has the same ranks in the same order, without uses.
struct in_place_round {
    std::vector<rank_holdings> received;  ///< when all copies have arrived, with what they held
    std::vector<rank_holdings> after;     ///< when they have dropped what they need not hold
    bool more;                            ///< another round follows

    friend bool operator==(in_place_round const&, in_place_round const&) = default;
};

namespace detail {

/// Layers, or cells, of ranks, with the bytes that they take.
template <class OnlyWhenCalled = void>
class held_layers {
public:
    held_layers(collection const& state, std::vector<bytes> const& sizes, array_view<rank_holdings const> ranks) : sizes_{&sizes}
    {
        for (std::size_t t = 0; t < state.tensors.size(); ++t) {
            for (auto const layer : state.tensors[t].is_parameter ? state.tensors[t].layers : std::vector<layer_id>{}) {
                tensors_of_.resize(std::max(tensors_of_.size(), at(layer) + 1));
                tensors_of_[at(layer)].push_back(t);
            }
        }
        for (auto const& rank : ranks) {
            auto& own = ranks_.emplace_back();
            own.layers.resize(tensors_of_.size());
            own.uses.resize(state.tensors.size());
            for (auto const layer : rank.layers) {
                add(ranks_.size() - 1, layer);
            }
        }
    }

    std::size_t layers() const { return tensors_of_.size(); }
    bool has(std::size_t rank, layer_id layer) const { return ranks_[rank].layers[at(layer)] != 0; }
    bytes used(std::size_t rank) const { return ranks_[rank].used; }
    int holders(layer_id layer) const
    {
        return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [&](held const& rank) { return rank.layers[at(layer)] != 0; }));
    }

    /// What the layer takes besides what the rank holds.
    bytes missing(std::size_t rank, layer_id layer) const
    {
        bytes sum;
        for (auto const t : tensors_of_[at(layer)]) {
            sum += ranks_[rank].uses[t] == 0 ? (*sizes_)[t] : bytes{};
        }
        return sum;
    }

    void add(std::size_t rank, layer_id layer)
    {
        auto& own = ranks_[rank];
        own.used += missing(rank, layer);
        own.layers[at(layer)] = 1;
        for (auto const t : tensors_of_[at(layer)]) {
            ++own.uses[t];
        }
    }

    void drop(std::size_t rank, layer_id layer)
    {
        auto& own = ranks_[rank];
        own.layers[at(layer)] = 0;
        for (auto const t : tensors_of_[at(layer)]) {
            --own.uses[t];
        }
        own.used -= missing(rank, layer);
    }

    std::vector<layer_id> layers_of(std::size_t rank) const
    {
        std::vector<layer_id> list;
        for (layer_id layer{0}; at(layer) < layers(); ++layer) {
            if (has(rank, layer)) {
                list.push_back(layer);
            }
        }
        return list;
    }

private:
    struct held {
        std::vector<char> layers{};
        std::vector<int> uses{};  ///< of each tensor: its layers that are held
        bytes used{};
    };

    std::vector<bytes> const* sizes_;
    std::vector<std::vector<std::size_t>> tensors_of_;
    std::vector<held> ranks_;
};

template <class OnlyWhenCalled = void>
std::vector<rank_holdings> as_holdings(held_layers<> const& held, array_view<rank_holdings const> ranks)
{
    std::vector<rank_holdings> list;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        list.push_back({ranks[r].rank, ranks[r].version, held.layers_of(r), {}});
    }
    return list;
}

template <class OnlyWhenCalled = void>
bool hold_the_same(array_view<rank_holdings const> a, array_view<rank_holdings const> b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](rank_holdings const& x, rank_holdings const& y) { return x.layers == y.layers; });
}

}  // namespace detail

/// Whether some rank has no room for what it holds, as while steps run, and for what it is to receive. @param held, wanted of the same ranks
template <class OnlyWhenCalled = void>
bool needs_rounds(array_view<rank_holdings const> held, array_view<rank_holdings const> wanted, collection const& state, in_place_memory const& memory)
{
    if (!memory.limit) {
        return false;
    }
    detail::held_layers<> const now{state, memory.all, held};
    detail::held_layers<> arriving{state, memory.committed, held};
    for (std::size_t r = 0; r < held.size(); ++r) {
        auto const before = arriving.used(r);
        for (auto const layer : wanted[r].layers) {
            if (!arriving.has(r, layer)) {
                arriving.add(r, layer);
            }
        }
        auto const receives = arriving.used(r) - before;
        if (receives > bytes{} && now.used(r) + receives > *memory.limit) {
            return true;
        }
    }
    return false;
}

/// The next round. None if nobody has room and nobody can make it. @pre each layer that a rank is to hold is held by one
template <class OnlyWhenCalled = void>
std::optional<in_place_round> next_round(array_view<rank_holdings const> held, array_view<rank_holdings const> wanted, collection const& state,
                                         in_place_memory const& memory, int failures)
{
    detail::held_layers<> now{state, memory.committed, held};
    detail::held_layers<> const goal{state, memory.committed, wanted};
    bool received = false, dropped = false;
    for (std::size_t r = 0; r < held.size(); ++r) {
        for (auto const layer : wanted[r].layers) {
            if (!now.has(r, layer) && now.used(r) + now.missing(r, layer) <= *memory.limit) {
                now.add(r, layer);
                received = true;
            }
        }
    }
    in_place_round round{detail::as_holdings(now, held), {}, false};
    auto const drop_where = [&](auto const& may_go) {
        for (layer_id layer{0}; at(layer) < now.layers(); ++layer) {
            for (std::size_t r = 0; r < held.size(); ++r) {
                if (now.has(r, layer) && !goal.has(r, layer) && may_go(layer)) {
                    now.drop(r, layer);
                    dropped = true;
                }
            }
        }
    };
    drop_where([&](layer_id layer) {
        bool all = true;
        for (std::size_t r = 0; r < held.size(); ++r) {
            all = all && (!goal.has(r, layer) || now.has(r, layer));
        }
        return all;
    });
    if (!received && !dropped) {
        drop_where([&](layer_id layer) { return now.holders(layer) > failures + 1; });
    }
    if (!received && !dropped) {
        return std::nullopt;
    }
    round.after = detail::as_holdings(now, held);
    round.more = !detail::hold_the_same(round.after, wanted);
    return round;
}

/// A rank that cannot receive the next thing that it misses.
struct in_place_shortage {
    rank_id rank;
    bytes needed;  ///< with that

    friend bool operator==(in_place_shortage, in_place_shortage) = default;
};

/// Why the places cannot change within the limit; none if they can. A rank keeps nothing for others on the way, which would make a few more changes possible.
template <class OnlyWhenCalled = void>
std::optional<in_place_shortage> in_place_shortage_of(std::vector<rank_holdings> held, array_view<rank_holdings const> wanted, collection const& state,
                                                      in_place_memory const& memory, int failures)
{
    if (!needs_rounds(held, wanted, state, memory)) {
        return std::nullopt;
    }
    while (auto round = next_round(held, wanted, state, memory, failures)) {
        if (!round->more) {
            return std::nullopt;
        }
        held = std::move(round->after);
    }
    detail::held_layers<> const now{state, memory.committed, held};
    std::optional<in_place_shortage> first;
    for (std::size_t r = 0; r < held.size() && !first; ++r) {
        for (auto const layer : wanted[r].layers) {
            auto const needed = now.used(r) + now.missing(r, layer);
            if (!now.has(r, layer) && (!first || needed < first->needed)) {
                first = {held[r].rank, needed};
            }
        }
    }
    return first;  // what nobody misses is dropped, so somebody misses something
}

}  // namespace rheo::inline v0
