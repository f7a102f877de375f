#pragma once
// SPDX-License-Identifier: Apache-2.0

// From whom each missing piece comes. A rank whose node has a holder takes it from there. What has to come from another node is dealt
// to nodes so that the largest send of a node is the least possible (but for a row of each class of its ranks), and that of a rank after it,
// and then, node by node, to ranks. Without nodes all ranks are one node.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/reshard/detail/balanced_nodes.hpp"
#include "rheo/reshard/detail/deal_rows.hpp"
#include "rheo/reshard/detail/least_load.hpp"
#include "rheo/reshard/detail/missing_pieces.hpp"
#include "rheo/reshard/detail/reshard_problem.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

/// Where the ranks of each class are.
template <class OnlyWhenCalled = void>
class class_nodes {
public:
    struct member {
        std::int32_t node;
        rank_id rank;

        friend constexpr bool operator==(member, member) = default;
        friend constexpr auto operator<=>(member, member) = default;
    };

    constexpr class_nodes(reshard_problem const& problem, std::vector<node_id> const& node_of) : node_of_{node_of}
    {
        for (auto const& one : problem.held) {
            members_.emplace_back();
            for (auto const rank : one.ranks) {
                members_.back().push_back({of(rank), rank});
                nodes_ = std::max(nodes_, of(rank) + 1);
            }
            std::sort(members_.back().begin(), members_.back().end());
        }
    }

    constexpr std::int32_t of(rank_id rank) const { return node_of_.empty() ? 0 : node_of_[at(rank)].value; }
    constexpr std::size_t nodes() const { return static_cast<std::size_t>(nodes_); }
    constexpr std::size_t classes() const { return members_.size(); }
    constexpr std::vector<member> const& members(std::size_t of_class) const { return members_[of_class]; }
    /// The ranks of a class on a node, as the first of its members and behind the last.
    constexpr std::pair<std::size_t, std::size_t> range(std::size_t of_class, std::int32_t node) const
    {
        auto const& all = members_[of_class];
        auto const first = std::lower_bound(all.begin(), all.end(), member{node, rank_id{-1}});
        auto const last = std::lower_bound(first, all.end(), member{node + 1, rank_id{-1}});
        return {static_cast<std::size_t>(first - all.begin()), static_cast<std::size_t>(last - all.begin())};
    }

private:
    std::vector<node_id> const& node_of_;
    std::vector<std::vector<member>> members_{};
    std::int32_t nodes_ = 1;
};

/// Pieces with one set of holders.
struct piece_list {
    std::size_t holders;
    std::vector<missing_piece> pieces{};
};

/// What the ranks of each node are to send, by set of holders.
class node_pieces {
public:
    constexpr explicit node_pieces(std::size_t nodes) : lists_(nodes), buckets_(nodes + 255) {}

    template <class OnlyWhenCalled = void>
    constexpr std::vector<missing_piece>& of(std::size_t node, std::size_t holders)
    {
        auto& bucket = buckets_[(node + 31 * holders) % buckets_.size()];
        for (auto const& known : bucket) {
            if (known.node == node && known.holders == holders) {
                return lists_[node][known.list].pieces;
            }
        }
        bucket.push_back({node, holders, lists_[node].size()});
        lists_[node].push_back({holders});
        return lists_[node].back().pieces;
    }

    constexpr std::vector<piece_list>& operator[](std::size_t node) { return lists_[node]; }
    constexpr std::size_t nodes() const { return lists_.size(); }

private:
    struct known_list {
        std::size_t node;
        std::size_t holders;
        std::size_t list;
    };

    std::vector<std::vector<piece_list>> lists_;
    std::vector<std::vector<known_list>> buckets_;
};

/// A piece with the rank that sends it.
struct sourced_piece {
    rank_id from;
    missing_piece piece;
};

struct chosen_sources {
    std::vector<sourced_piece> sent{};
    std::int64_t least_largest_send = 0;  ///< given what each node sends
    std::int64_t between_nodes = 0;
};

/// Collects what is missing, then deals it.
template <class OnlyWhenCalled = void>
class source_chooser {
public:
    constexpr source_chooser(reshard_problem const& problem, holder_sets const& sets, std::vector<node_id> const& node_of)
        : sets_{sets}, where_{problem, node_of}, in_node_{where_.nodes()}, bin_of_(problem.held.size(), no_bin)
    {
    }

    /// @pre the set is not empty
    constexpr void add(std::size_t holders, missing_piece const& piece)
    {
        auto const node = where_.of(piece.to);
        bool near = false;
        for (auto const c : sets_[holders]) {
            auto const [first, last] = where_.range(c, node);
            near = near || first != last;
        }
        if (near) {
            in_node_.of(static_cast<std::size_t>(node), holders).push_back(piece);
        } else {
            if (holders >= between_.size()) {
                between_.resize(holders + 1);
            }
            between_[holders].push_back(piece);
        }
    }

    constexpr chosen_sources choose()
    {
        deal_to_nodes();
        for (std::size_t n = 0; n < in_node_.nodes(); ++n) {
            deal_to_ranks(n);
        }
        return std::move(result_);
    }

private:
    constexpr void deal_to_nodes()
    {
        std::vector<std::size_t> holders;
        std::vector<load_item> items;
        std::vector<node_cell> cells;
        std::vector<std::size_t> first_cell(where_.classes(), no_bin);
        std::vector<std::vector<missing_piece>> pieces;
        for (std::size_t s = 0; s < between_.size(); ++s) {
            if (between_[s].empty()) {
                continue;
            }
            load_item item;
            for (auto const& piece : between_[s]) {
                item.size += size_of(piece);
            }
            for (auto const c : sets_[s]) {
                if (first_cell[c] == no_bin) {
                    first_cell[c] = cells.size();
                    add_cells(cells, c);
                }
                for (auto cell = first_cell[c]; cell < cells.size() && cells[cell].of_class == c; ++cell) {
                    item.bins.push_back(cell);
                }
            }
            std::sort(item.bins.begin(), item.bins.end());
            result_.between_nodes += item.size;
            holders.push_back(s);
            items.push_back(item);
            pieces.push_back(between_[s]);
        }
        if (items.empty()) {
            return;
        }
        std::vector<std::int64_t> width;
        for (auto const& cell : cells) {
            width.push_back(cell.ranks);
        }
        auto const send = [&](std::size_t item, std::size_t cell, std::size_t, missing_piece const& piece) {
            in_node_.of(cells[cell].node, holders[item]).push_back(piece);
        };
        row_dealer dealer{pieces, balance_nodes(items, cells, where_.nodes()), width, send};
        dealer.deal();
    }

    /// The ranks of a class by node.
    constexpr void add_cells(std::vector<node_cell>& cells, std::size_t of_class)
    {
        auto const first = cells.size();
        for (auto const& member : where_.members(of_class)) {
            auto const node = static_cast<std::size_t>(member.node);
            if (cells.size() == first || cells.back().node != node) {
                cells.push_back({node, 0, of_class});
            }
            ++cells.back().ranks;
        }
    }

    constexpr void deal_to_ranks(std::size_t node)
    {
        struct node_class {
            std::size_t number;
            std::size_t first;
        };
        std::vector<node_class> bins;
        std::vector<std::int64_t> width;
        std::vector<load_item> items;
        std::vector<std::vector<missing_piece>> pieces;
        for (auto& list : in_node_[node]) {
            load_item item;
            for (auto const& piece : list.pieces) {
                item.size += size_of(piece);
            }
            for (auto const c : sets_[list.holders]) {
                auto const [first, last] = where_.range(c, static_cast<std::int32_t>(node));
                if (first == last) {
                    continue;
                }
                if (bin_of_[c] == no_bin) {
                    bin_of_[c] = bins.size();
                    bins.push_back({c, first});
                    width.push_back(static_cast<std::int64_t>(last - first));
                }
                item.bins.push_back(bin_of_[c]);
            }
            std::sort(item.bins.begin(), item.bins.end());
            items.push_back(item);
            pieces.push_back(std::move(list.pieces));
        }
        auto const send = [&](std::size_t, std::size_t bin, std::size_t rank, missing_piece const& piece) {
            result_.sent.push_back({where_.members(bins[bin].number)[bins[bin].first + rank].rank, piece});
        };
        row_dealer dealer{pieces, least_load(items, width), width, send};
        result_.least_largest_send = std::max(result_.least_largest_send, dealer.deal());
        for (auto const& bin : bins) {
            bin_of_[bin.number] = no_bin;
        }
    }

    static constexpr std::size_t no_bin = static_cast<std::size_t>(-1);

    holder_sets const& sets_;
    class_nodes<> where_;
    node_pieces in_node_;
    std::vector<std::vector<missing_piece>> between_{};  ///< set of holders -> what no rank on the receiver's node has
    std::vector<std::size_t> bin_of_;                    ///< class -> its bin on the node at work
    chosen_sources result_{};
};

}  // namespace rheo::inline v0::detail
