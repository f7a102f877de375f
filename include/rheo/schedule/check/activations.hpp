#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many microbatches' activations a rank holds at most: from F to B, or to W when the backward is
// split. It follows from the order of the row alone, whatever the times. A stage that runs no backward
// of a microbatch holds nothing of it. Between an eviction and the recomputation only the input is held; a split backward
// holds gradients besides.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What a stage keeps for an item.
template <class Amount>
struct holding {
    Amount activation;   ///< from F to B or W, its input among it
    Amount input{};      ///< of that, what stays between an eviction and the recomputation
    Amount gradients{};  ///< besides, from I to W

    friend constexpr bool operator==(holding const&, holding const&) = default;
};

using held_bytes = holding<bytes>;

namespace detail {

/// Calls visit(position, held) after every computation that changes what the position holds, when a stage keeps `of(stage)`, a holding<Amount>, for an item.
template <class Amount, class Of, class Visit>
constexpr void for_each_moment(program const& p, Of const& of, Visit const& visit)
{
    auto kept = facts_of(p, 0);
    auto const ends = [](instruction i) { return i.kind == instruction_kind::backward || i.kind == instruction_kind::weight_gradient; };
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            if (ends(i)) {
                kept.of(i.stage, i.item) = weight_done;
            }
        }
    }
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
        Amount held{};
        for (auto const& i : p.rows[r]) {
            if (is_reduction(i.kind) || !kept.holds(i.stage, i.item, weight_done)) {
                continue;
            }
            holding<Amount> const amount = of(i.stage);
            switch (i.kind) {
            case instruction_kind::forward: held += amount.activation; break;
            case instruction_kind::evict: held -= amount.activation - amount.input; break;
            case instruction_kind::recompute: held += amount.activation - amount.input; break;
            case instruction_kind::input_gradient: held += amount.gradients; break;
            case instruction_kind::backward: held -= amount.activation; break;
            case instruction_kind::weight_gradient: held -= amount.activation + amount.gradients; break;
            default: break;
            }
            visit(r, held);
        }
    }
}

/// The most that a rank holds at once, per position.
template <class Amount, class Of>
constexpr std::vector<Amount> peaks_by_rank(program const& p, Of const& of)
{
    std::vector<Amount> peaks(p.rows.size(), Amount{});
    for_each_moment<Amount>(p, of, [&](std::size_t r, Amount const& held) { peaks[r] = std::max(peaks[r], held); });
    return peaks;
}

}  // namespace detail

/// The most (stage, item) activations held at once, per position; evicted ones are not held.
template <class OnlyWhenCalled = void>
constexpr std::vector<int> peak_activations_by_rank(program const& p)
{
    return detail::peaks_by_rank<int>(p, [](int) { return holding<int>{1}; });
}

/// The same in bytes, when a stage keeps so much for an item. @pre one entry per stage
template <class OnlyWhenCalled = void>
constexpr std::vector<bytes> peak_bytes_by_rank(program const& p, std::vector<held_bytes> const& held)
{
    expects(held.size() == p.placement.size(), "peak bytes need the activations of every stage");
    return detail::peaks_by_rank<bytes>(p, [&](int stage) { return held[static_cast<std::size_t>(stage)]; });
}

/// What is held at one moment.
template <class Amount>
struct held_parts {
    Amount activations{};
    Amount gradients{};  ///< kept between the halves of split backwards
    Amount inputs{};     ///< of evicted activations, where these are counted apart

    constexpr held_parts& operator+=(held_parts const& other)
    {
        activations += other.activations;
        gradients += other.gradients;
        inputs += other.inputs;
        return *this;
    }
    constexpr held_parts& operator-=(held_parts const& other)
    {
        activations -= other.activations;
        gradients -= other.gradients;
        inputs -= other.inputs;
        return *this;
    }
    constexpr Amount sum() const { return activations + gradients + inputs; }
    friend constexpr held_parts operator+(held_parts a, held_parts const& b) { return a += b; }
    friend constexpr held_parts operator-(held_parts a, held_parts const& b) { return a -= b; }
    friend constexpr bool operator<(held_parts const& a, held_parts const& b) { return a.sum() < b.sum(); }
    friend constexpr bool operator==(held_parts const&, held_parts const&) = default;
};

using held_peak = held_parts<bytes>;          ///< by a rank when it holds most
using held_items = held_parts<std::int64_t>;  ///< of a stage, in items

/// Stage -> the moments at which most is held of it, whatever an activation, a kept gradient and an input take: no other has as many of all. Stages
/// that are copies of each other are one. Cost: stages times instructions.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<held_items>> held_at_once(program const& p)
{
    auto const chain = static_cast<std::size_t>(stages_per_copy(p));
    std::vector<std::vector<held_items>> result(chain);
    for (std::size_t stage = 0; stage < chain; ++stage) {
        auto& most = result[stage];
        auto const one = [&](int s) {
            return static_cast<std::size_t>(s) % chain == stage ? holding<held_items>{{1, 0, 0}, {0, 0, 1}, {0, 1, 0}} : holding<held_items>{};
        };
        detail::for_each_moment<held_items>(p, one, [&](std::size_t, held_items const& held) {
            auto const covers = [](held_items const& a, held_items const& b) {
                return a.activations >= b.activations && a.gradients >= b.gradients && a.inputs >= b.inputs;
            };
            std::size_t others = 0;  // that are not covered
            for (auto const& other : most) {
                if (covers(other, held)) {
                    return;
                }
                if (!covers(held, other)) {
                    most[others++] = other;
                }
            }
            most.resize(others);
            most.push_back(held);
        });
    }
    return result;
}

/// The same, and of what it is made. @pre one entry per stage
template <class OnlyWhenCalled = void>
constexpr std::vector<held_peak> peak_parts_by_rank(program const& p, std::vector<held_bytes> const& held)
{
    expects(held.size() == p.placement.size(), "peak bytes need the activations of every stage");
    return detail::peaks_by_rank<held_peak>(p, [&](int stage) {
        auto const& of = held[static_cast<std::size_t>(stage)];
        return holding<held_peak>{{of.activation, {}}, {of.input, {}}, {{}, of.gradients}};
    });
}

/// The same where nothing is evicted; gradients between the halves of a split backward count when they are given. @pre one entry per stage
template <class OnlyWhenCalled = void>
constexpr std::vector<bytes> peak_bytes_by_rank(program const& p, std::vector<bytes> const& activations, std::vector<bytes> const& kept_gradients = {})
{
    expects(activations.size() == p.placement.size(), "peak bytes need the activations of every stage");
    expects(kept_gradients.empty() || kept_gradients.size() == p.placement.size(), "peak bytes need the kept gradients of every stage, or of none");
    return detail::peaks_by_rank<bytes>(p, [&](int stage) {
        auto const s = static_cast<std::size_t>(stage);
        return held_bytes{activations[s], {}, kept_gradients.empty() ? bytes{} : kept_gradients[s]};
    });
}

/// The largest of them.
template <class OnlyWhenCalled = void>
constexpr int peak_activations(program const& p)
{
    int peak = 0;
    for (auto const held : peak_activations_by_rank(p)) {
        peak = std::max(peak, held);
    }
    return peak;
}

/// True when the row runs a forward and a backward at once: each then has a region of its own for what is recomputed.
template <class OnlyWhenCalled = void>
constexpr bool has_overlap(program const& p, int position)
{
    auto const& row = p.rows[static_cast<std::size_t>(position)];
    return std::any_of(row.begin(), row.end(), [](instruction i) { return i.kind == instruction_kind::overlap; });
}

}  // namespace rheo::inline v0
