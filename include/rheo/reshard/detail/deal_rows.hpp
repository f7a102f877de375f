#pragma once
// SPDX-License-Identifier: Apache-2.0

// Who sends what, given who may: pieces that the same ranks hold are one item, ranks that hold the same are one bin, and least_load says how
// many bytes of an item go to a bin. Pieces are then cut between rows. So that no rank gets more than one row above its share, the
// shares are first brought into a forest by moving bytes around cycles; each bin then has one item above it in its tree, and
// only that one rounds up for it (after Lenstra, Shmoys and Tardos, Mathematical Programming 46, 1990, where each machine gets one job more).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/detail/least_load.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0::detail {

/// A box that a rank misses.
struct missing_piece {
    rank_id to;
    std::size_t array;
    nd_box box;
    std::int64_t unit;  ///< bytes of an element
};

/// The dimension along which a box is cut: the first that can be.
constexpr int row_dimension(nd_box const& box)
{
    int d = 0;
    while (d + 1 < box.dimensions && length(box[d]) <= 1) {
        ++d;
    }
    return d;
}

constexpr std::int64_t size_of(missing_piece const& piece) { return elements(piece.box) * piece.unit; }

/// An arc of the graph of items and bins.
struct share_arc {
    std::size_t item;
    std::size_t bin;
    std::int64_t size;
};

/// Shares without a cycle: as many bytes of each item and to each bin as before.
template <class OnlyWhenCalled = void>
class share_forest {
public:
    constexpr share_forest(std::size_t items, std::size_t bins) : items_{items}, arcs_of_(items + bins), above_(items + bins, 0) {}

    constexpr void add(share_arc arc)
    {
        auto const path = path_between(arc.item, items_ + arc.bin);
        if (!path.empty()) {
            auto moved = arc.size;
            for (std::size_t k = 1; k < path.size(); k += 2) {
                moved = std::min(moved, arcs_[path[k]].size);
            }
            for (std::size_t k = 0; k < path.size(); ++k) {
                arcs_[path[k]].size += k % 2 == 0 ? moved : -moved;
            }
            arc.size -= moved;
            for (std::size_t k = 1; k < path.size(); k += 2) {
                if (arcs_[path[k]].size == 0) {
                    remove(path[k]);
                }
            }
        }
        if (arc.size > 0) {
            arcs_of_[arc.item].push_back(arcs_.size());
            arcs_of_[items_ + arc.bin].push_back(arcs_.size());
            arcs_.push_back(arc);
        }
    }

    constexpr share_arc const& arc(std::size_t number) const { return arcs_[number]; }
    constexpr std::vector<std::size_t> const& of_item(std::size_t item) const { return arcs_of_[item]; }
    constexpr std::vector<std::size_t> const& of_bin(std::size_t bin) const { return arcs_of_[items_ + bin]; }

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    /// The arcs from one vertex to another; empty when they are in different trees.
    constexpr std::vector<std::size_t> path_between(std::size_t from, std::size_t to)
    {
        std::vector<std::size_t> path;
        if (arcs_of_[from].empty() || arcs_of_[to].empty()) {
            return path;
        }
        std::vector<std::size_t> seen{from};
        above_[from] = none;
        bool found = false;
        for (std::size_t next = 0; next < seen.size() && !found; ++next) {
            auto const vertex = seen[next];
            for (auto const a : arcs_of_[vertex]) {
                auto const other = vertex < items_ ? items_ + arcs_[a].bin : arcs_[a].item;
                if (a != above_[vertex]) {
                    above_[other] = a;
                    seen.push_back(other);
                    found = found || other == to;
                }
            }
        }
        for (auto vertex = to; found && vertex != from;) {
            auto const a = above_[vertex];
            path.push_back(a);
            vertex = vertex < items_ ? items_ + arcs_[a].bin : arcs_[a].item;
        }
        std::reverse(path.begin(), path.end());
        return path;
    }

    constexpr void remove(std::size_t number)
    {
        for (auto const vertex : {arcs_[number].item, items_ + arcs_[number].bin}) {
            auto& arcs = arcs_of_[vertex];
            arcs.erase(std::find(arcs.begin(), arcs.end(), number));
        }
    }

    std::size_t items_;
    std::vector<share_arc> arcs_{};
    std::vector<std::vector<std::size_t>> arcs_of_;
    std::vector<std::size_t> above_;  ///< the arc towards where a search began
};

/// The ranks of a bin in turn: each sends until it has its share, the last one what is left.
struct sending_bin {
    std::size_t rank = 0;    ///< at work
    std::int64_t sent = 0;   ///< by it
    std::int64_t share = 0;  ///< of each rank
};

/// The pieces of one item, taken from the first on.
struct piece_cursor {
    std::size_t item;
    std::vector<missing_piece> const& pieces;
    std::size_t next = 0;
    std::int64_t rows_taken = 0;  ///< of the next piece

    constexpr bool done() const { return next == pieces.size(); }
    constexpr std::int64_t rows() const { return length(pieces[next].box[row_dimension(pieces[next].box)]); }
    constexpr std::int64_t row_size() const { return size_of(pieces[next]) / rows(); }
    constexpr missing_piece take(std::int64_t count)
    {
        auto piece = pieces[next];
        auto& range = piece.box[row_dimension(piece.box)];
        range.begin += rows_taken;
        range.end = range.begin + count;
        rows_taken += count;
        if (rows_taken == rows()) {
            ++next;
            rows_taken = 0;
        }
        return piece;
    }
};

/// Deals the pieces of items to the ranks of bins and calls send(item, bin, rank within it, piece).
template <class Send>
class row_dealer {
public:
    constexpr row_dealer(std::vector<std::vector<missing_piece>> const& pieces, divided_load const& divided, std::vector<std::int64_t> const& width,
                         Send const& send)
        : pieces_{pieces}, width_{width}, send_{send}, forest_{pieces.size(), width.size()}, bins_(width.size()), level_{divided.level}
    {
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            for (auto const& share : divided.shares[i]) {
                forest_.add({i, share.bin, share.size});
                bins_[share.bin].share += share.size;
            }
        }
        for (std::size_t b = 0; b < width.size(); ++b) {
            bins_[b].share = (bins_[b].share + width[b] - 1) / width[b];
        }
    }

    /// @return the least possible largest send of a rank
    constexpr std::int64_t deal()
    {
        std::vector<char> dealt(pieces_.size(), 0);
        struct open_item {
            std::size_t item;
            std::size_t above;
        };
        std::vector<open_item> open;
        for (std::size_t root = 0; root < pieces_.size(); ++root) {
            if (dealt[root] == 0) {
                open.push_back({root, no_bin});
                dealt[root] = 1;
            }
            while (!open.empty()) {
                auto const [item, above] = open.back();
                open.pop_back();
                deal_item(item, above);
                for (auto const a : forest_.of_item(item)) {
                    for (auto const other : forest_.of_bin(forest_.arc(a).bin)) {
                        auto const below = forest_.arc(other).item;
                        if (dealt[below] == 0) {
                            dealt[below] = 1;
                            open.push_back({below, forest_.arc(other).bin});
                        }
                    }
                }
            }
        }
        return level_;
    }

private:
    static constexpr std::size_t no_bin = static_cast<std::size_t>(-1);

    /// The bin above gets no more than its share, those below may get one row more, and the last of them gets what is left.
    constexpr void deal_item(std::size_t item, std::size_t above)
    {
        piece_cursor cursor{item, pieces_[item]};
        auto const& arcs = forest_.of_item(item);
        std::vector<std::size_t> below;
        for (auto const a : arcs) {
            if (forest_.arc(a).bin != above) {
                below.push_back(a);
            } else {
                take(cursor, above, forest_.arc(a).size, arcs.size() > 1 ? rounding::down : rounding::all);
            }
        }
        for (std::size_t k = 0; k < below.size(); ++k) {
            auto const& arc = forest_.arc(below[k]);
            take(cursor, arc.bin, arc.size, k + 1 == below.size() ? rounding::all : rounding::up);
        }
    }

    enum class rounding : std::uint8_t { down, up, all };

    constexpr void take(piece_cursor& cursor, std::size_t bin, std::int64_t size, rounding how)
    {
        while (!cursor.done() && (how == rounding::all || size > 0)) {
            auto const row = cursor.row_size();
            auto const left = cursor.rows() - cursor.rows_taken;
            auto const fitting = how == rounding::all ? left : how == rounding::down ? size / row : (size + row - 1) / row;
            auto const count = send_rows(cursor, bin, std::min(left, fitting), row);
            size -= count * row;
            if (count == 0) {
                return;
            }
        }
    }

    constexpr std::int64_t send_rows(piece_cursor& cursor, std::size_t bin, std::int64_t count, std::int64_t row)
    {
        auto& state = bins_[bin];
        for (auto left = count; left > 0;) {
            bool const is_last = state.rank + 1 == static_cast<std::size_t>(width_[bin]);
            if (!is_last && state.sent >= state.share) {
                ++state.rank;
                state.sent = 0;
                continue;
            }
            auto const rows = is_last ? left : std::min(left, (state.share - state.sent + row - 1) / row);
            send_(cursor.item, bin, state.rank, cursor.take(rows));
            state.sent += rows * row;
            left -= rows;
        }
        return count;
    }

    std::vector<std::vector<missing_piece>> const& pieces_;
    std::vector<std::int64_t> const& width_;
    Send const& send_;
    share_forest<> forest_;
    std::vector<sending_bin> bins_;
    std::int64_t level_;
};

}  // namespace rheo::inline v0::detail
