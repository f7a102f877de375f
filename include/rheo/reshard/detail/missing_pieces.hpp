#pragma once
// SPDX-License-Identifier: Apache-2.0

// What each rank misses, wanted minus own, in pieces that the same ranks hold. A wanted box is cut once for all who want it, by the edges of
// those who hold parts of it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/detail/join_boxes.hpp"
#include "rheo/reshard/detail/meeting_boxes.hpp"
#include "rheo/reshard/detail/reshard_problem.hpp"
#include "rheo/reshard/detail/split_box.hpp"
#include "rheo/tensor/nd_box.hpp"

namespace rheo::inline v0::detail {

/// Ranks of one class that take places of one class: all miss the same.
struct receiver_group {
    std::size_t wants;
    std::size_t holds;
    std::vector<rank_id> ranks;  ///< ascending
};

/// A piece of a wanted box, and the set of classes that hold all of it.
struct held_piece {
    nd_box box;
    std::size_t holders;
};

/// Distinct sets of classes, numbered.
class holder_sets {
public:
    constexpr holder_sets() : buckets_(256) {}

    /// @pre ascending
    template <class OnlyWhenCalled = void>
    constexpr std::size_t number(std::vector<std::size_t> const& classes)
    {
        std::uint64_t hash = 0;
        for (auto const c : classes) {
            hash = mixed(hash, static_cast<std::int64_t>(c));
        }
        auto& bucket = buckets_[hash % buckets_.size()];
        for (auto const known : bucket) {
            if (sets_[known] == classes) {
                return known;
            }
        }
        bucket.push_back(sets_.size());
        sets_.push_back(classes);
        return sets_.size() - 1;
    }

    constexpr std::vector<std::size_t> const& operator[](std::size_t number) const { return sets_[number]; }
    constexpr std::size_t size() const { return sets_.size(); }

private:
    std::vector<std::vector<std::size_t>> sets_{};
    std::vector<std::vector<std::size_t>> buckets_;
};

/// Cuts wanted boxes, each once.
template <class OnlyWhenCalled = void>
class piece_cutter {
public:
    constexpr explicit piece_cutter(reshard_problem const& problem) : problem_{problem}, pieces_(problem.arrays.size())
    {
        for (std::size_t a = 0; a < problem.arrays.size(); ++a) {
            pieces_[a].resize(problem.arrays[a].wanted.size());
            meeting_.emplace_back(problem.arrays[a].wanted, problem.arrays[a].held);
        }
    }

    /// The pieces of a wanted box, disjoint, together all of it.
    constexpr std::vector<held_piece> const& pieces_of(box_ref wanted)
    {
        auto& pieces = pieces_[wanted.array][wanted.box];
        if (pieces.empty()) {
            auto const& array = problem_.arrays[wanted.array];
            std::vector<kept_apart_box> cut;
            std::vector<std::size_t> covering;
            split_box(array.wanted[wanted.box], array.held, meeting_[wanted.array][wanted.box], covering,
                      [&](nd_box const& box, std::vector<std::size_t> const& by) {
                          std::vector<std::size_t> classes;
                          for (auto const held : by) {
                              classes.insert(classes.end(), array.holders[held].begin(), array.holders[held].end());
                          }
                          std::sort(classes.begin(), classes.end());
                          cut.push_back({sets_.number(classes), box});
                      });
            join_boxes(cut);
            for (auto const& piece : cut) {
                pieces.push_back({piece.box, piece.kind});
            }
        }
        return pieces;
    }

    constexpr holder_sets const& sets() const { return sets_; }
    /// The set of one class.
    constexpr std::size_t only(std::size_t of_class) { return sets_.number({of_class}); }

private:
    reshard_problem const& problem_;
    std::vector<std::vector<std::vector<held_piece>>> pieces_;  ///< array -> wanted box
    std::vector<meeting_boxes<OnlyWhenCalled>> meeting_{};      ///< by array
    holder_sets sets_{};
};

/// A piece of a sum once for each addend that is not the rank's own.
template <class Misses>
constexpr void misses_addends(piece_cutter<>& cutter, box_ref want, held_piece const& piece, std::size_t own, Misses const& misses)
{
    auto const adders = cutter.sets()[piece.holders];  // a copy: only() adds sets
    for (auto const adder : adders) {
        if (adder != own) {
            misses(want, held_piece{piece.box, cutter.only(adder)});
        }
    }
}

/// Calls keeps(box_ref wanted, box) for what a rank of the group holds of its wants, and misses(box_ref wanted, piece) for the rest: of a sum, for
/// each addend of another rank.
template <class Keeps, class Misses>
constexpr void for_each_part(reshard_problem const& problem, piece_cutter<>& cutter, receiver_group const& group, Keeps const& keeps, Misses const& misses)
{
    auto const& own = problem.held[group.holds].boxes;
    std::size_t first = 0;
    for (auto const want : problem.wanted[group.wants].boxes) {
        auto const& array = problem.arrays[want.array];
        auto const& box = array.wanted[want.box];
        while (first < own.size() && own[first].array < want.array) {
            ++first;
        }
        bool all = false;
        for (auto i = first; i < own.size() && own[i].array == want.array && !all; ++i) {
            if (auto const common = intersection(box, array.held[own[i].box]); !is_empty(common)) {
                keeps(want, common);
                all = common == box && !array.is_sum;
            }
        }
        for (std::size_t p = 0; !all && p < cutter.pieces_of(want).size(); ++p) {
            auto const piece = cutter.pieces_of(want)[p];
            auto const& holders = cutter.sets()[piece.holders];
            if (array.is_sum && !holders.empty()) {
                misses_addends(cutter, want, piece, group.holds, misses);
            } else if (!std::binary_search(holders.begin(), holders.end(), group.holds)) {
                misses(want, piece);
            }
        }
    }
}

}  // namespace rheo::inline v0::detail
