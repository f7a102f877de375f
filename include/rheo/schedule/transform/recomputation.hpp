#pragma once
// SPDX-License-Identifier: Apache-2.0

// Activation recomputation as a transform of programs (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016, with a
// stage as the segment): once an item's output has been sent on, all of its activation but the stage's input is evicted, and right
// before the backward the forward runs again. Both are instructions of the rank alone, so whatever held for the program's
// order holds with them. An item whose backward comes before anything else is computed keeps its activation.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Where an item is evicted from and recomputed on its row: behind instruction `evicted`, before instruction `needed`.
struct absence {
    bool found = false;
    std::size_t evicted = 0;
    std::size_t needed = 0;
};

/// The first of an overlapped group for its second and third instruction, else the place itself.
constexpr std::size_t group_begin(std::vector<instruction> const& row, std::size_t k)
{
    for (std::size_t back = 1; back <= 2 && back <= k; ++back) {
        if (row[k - back].kind == instruction_kind::overlap) {
            return k - back;
        }
    }
    return k;
}

/// The last of the group that begins at or contains the place.
constexpr std::size_t group_end(std::vector<instruction> const& row, std::size_t k)
{
    auto const begin = group_begin(row, k);
    return row[begin].kind == instruction_kind::overlap ? begin + 2 : k;
}

/// The absence of the item whose forward stands at `k`.
constexpr absence absence_after(program const& p, std::vector<instruction> const& row, std::size_t k)
{
    auto const f = row[k];
    bool const goes_on = (f.stage + 1) % stages_per_copy(p) != 0;
    auto last = group_end(row, k);
    for (auto next = last + 1; next < row.size(); ++next) {
        auto const i = row[next];
        bool const here = i.stage == f.stage && i.item == f.item;
        bool const takes = goes_on && i.kind == instruction_kind::forward && i.stage == f.stage + 1 && i.item == f.item;
        if ((here && i.kind == instruction_kind::send_activation) || takes) {
            last = group_end(row, next);  // the output is needed until here
        }
        if (here && (i.kind == instruction_kind::backward || i.kind == instruction_kind::input_gradient)) {
            auto const needed = group_begin(row, next);
            bool works = false;
            for (auto between = last + 1; between < needed; ++between) {
                works = works || is_compute(row[between].kind);
            }
            return {works, last, needed};
        }
    }
    return {};
}

}  // namespace detail

/// The program in which the marked stages evict and compute again; transfers and reductions stay where they are.
/// Cost: instructions of a row squared. @pre one mark per stage, microbatches are not cut into slices, nothing is evicted yet
template <class OnlyWhenCalled = void>
constexpr program with_recomputation(program const& p, std::vector<bool> const& stages)
{
    expects(stages.size() == p.placement.size(), "recomputation is given for every stage");
    expects(p.slices == 1, "slices of a sequence are kept: later ones attend to them");
    auto result = empty_like(p);
    for (std::size_t position = 0; position < p.rows.size(); ++position) {
        auto const& row = p.rows[position];
        std::vector<std::vector<instruction>> before(row.size() + 1);  // place -> what is put in before it
        for (std::size_t k = 0; k < row.size(); ++k) {
            if (row[k].kind != instruction_kind::forward || !stages[static_cast<std::size_t>(row[k].stage)]) {
                continue;
            }
            if (auto const gone = detail::absence_after(p, row, k); gone.found) {
                auto& here = before[gone.evicted + 1];  // room is made before it is taken
                here.insert(here.begin(), {instruction_kind::evict, row[k].stage, row[k].item});
                before[gone.needed].push_back({instruction_kind::recompute, row[k].stage, row[k].item});
            }
        }
        auto& whole = result.rows[position];
        for (std::size_t k = 0; k <= row.size(); ++k) {
            whole.insert(whole.end(), before[k].begin(), before[k].end());
            if (k < row.size()) {
                whole.push_back(row[k]);
            }
        }
    }
    return result;
}

/// The same for all stages.
template <class OnlyWhenCalled = void>
constexpr program with_recomputation(program const& p)
{
    return with_recomputation(p, std::vector<bool>(p.placement.size(), true));
}

/// Which stages compute again so that every rank stays under a cap, or that not even all of them would do.
struct recomputation_choice {
    std::vector<bool> stages;
    bool fits = true;

    friend constexpr bool operator==(recomputation_choice const&, recomputation_choice const&) = default;
};

/// Stages are marked one by one on the ranks above the cap, first those that free most, until all fit; a stage that would free
/// nothing is never marked. @pre one entry per stage, no slices
template <class OnlyWhenCalled = void>
constexpr recomputation_choice recomputation_under(program const& p, std::vector<held_bytes> const& held, std::vector<bytes> const& cap_by_rank)
{
    expects(cap_by_rank.size() == p.rows.size(), "a cap is given for every rank");
    recomputation_choice choice{std::vector<bool>(p.placement.size(), false), true};
    for (std::size_t rank = 0; rank < p.rows.size(); ++rank) {
        auto peak = peak_bytes_by_rank(p, held)[rank];
        while (peak > cap_by_rank[rank]) {
            auto best = peak;
            std::size_t marked = p.placement.size();
            for (std::size_t s = 0; s < p.placement.size(); ++s) {
                if (choice.stages[s] || p.placement[s] != static_cast<int>(rank)) {
                    continue;
                }
                auto tried = choice.stages;
                tried[s] = true;
                if (auto const with = peak_bytes_by_rank(with_recomputation(p, tried), held)[rank]; with < best) {
                    best = with;
                    marked = s;
                }
            }
            if (marked == p.placement.size()) {
                choice.fits = false;
                break;
            }
            choice.stages[marked] = true;
            peak = best;
        }
    }
    return choice;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template program with_recomputation<>(program const&, std::vector<bool> const&);
#endif

}  // namespace rheo::inline v0
