#pragma once
// SPDX-License-Identifier: Apache-2.0

// Items of some size, each to be divided among the bins that may take of it, so that the fullest bin is as little full as can be. The
// least level is a ratio of some set of items to the bins that may take of them: found by maximum flows (Dinic, "Algorithm for solution
// of a problem of maximum flow in networks with power estimation", 1970), each of which shows a set that the last level was too low for,
// which is Newton's method on a fractional program (Dinkelbach, Management Science 13, 1967). All in whole bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rheo::inline v0::detail {

/// What an item may go to.
struct load_item {
    std::int64_t size = 0;
    std::vector<std::size_t> bins{};  ///< ascending, at least one
};

struct load_share {
    std::size_t bin;
    std::int64_t size;  ///< > 0
};

struct divided_load {
    std::int64_t level = 0;                         ///< of the fullest bin, per rank of it: the least possible, rounded up
    std::vector<std::vector<load_share>> shares{};  ///< of each item
};

/// A network of items, bins and arcs between them, in the form of Dinic.
template <class OnlyWhenCalled = void>
class load_network {
public:
    /// @param width how many ranks a bin stands for
    constexpr load_network(std::vector<load_item> const& items, std::vector<std::int64_t> const& width) : items_{items}, width_{width}
    {
        for (auto const& item : items) {
            first_.push_back(bin_.size());
            for (auto const b : item.bins) {
                bin_.push_back(b);
            }
            total_ += item.size;
        }
        first_.push_back(bin_.size());
        arcs_into_.resize(width.size());
        for (std::size_t i = 0; i < items.size(); ++i) {
            for (auto a = first_[i]; a < first_[i + 1]; ++a) {
                item_.push_back(i);
                arcs_into_[bin_[a]].push_back(a);
            }
        }
        flow_.resize(bin_.size(), 0);
        left_.resize(items.size(), 0);
        load_.resize(width.size(), 0);
        item_depth_.resize(items.size(), 0);
        bin_depth_.resize(width.size(), 0);
        item_next_.resize(items.size(), 0);
        bin_next_.resize(width.size(), 0);
    }

    constexpr std::int64_t total() const { return total_; }
    constexpr std::int64_t flow(std::size_t arc) const { return flow_[arc]; }
    constexpr std::size_t first(std::size_t item) const { return first_[item]; }
    constexpr std::size_t bin(std::size_t arc) const { return bin_[arc]; }

    /// Whether all items find room when a bin takes `level` for each of its ranks. A flow at a lower level is kept and added to.
    constexpr bool fits(std::int64_t level)
    {
        for (std::size_t i = 0; i < items_.size(); ++i) {
            left_[i] = items_[i].size;
            for (auto a = first_[i]; a < first_[i + 1]; ++a) {
                left_[i] -= flow_[a];
            }
        }
        while (reach(level)) {
            std::fill(item_next_.begin(), item_next_.end(), 0);
            std::fill(bin_next_.begin(), bin_next_.end(), 0);
            for (std::size_t i = 0; i < items_.size(); ++i) {
                while (left_[i] > 0 && item_depth_[i] == 0) {
                    auto const sent = push_item(i, left_[i], level);
                    if (sent == 0) {
                        break;
                    }
                    left_[i] -= sent;
                }
            }
        }
        return std::all_of(left_.begin(), left_.end(), [](std::int64_t left) { return left == 0; });
    }

    /// After fits() said no: the level that the items without room, and all that are reached from them, need at least.
    constexpr std::int64_t least_level() const
    {
        std::int64_t size = 0;
        std::int64_t ranks = 0;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            size += item_depth_[i] >= 0 ? items_[i].size : 0;
        }
        for (std::size_t b = 0; b < width_.size(); ++b) {
            ranks += bin_depth_[b] >= 0 ? width_[b] : 0;
        }
        return (size + ranks - 1) / ranks;
    }

private:
    constexpr std::int64_t capacity(std::size_t bin, std::int64_t level) const { return level > total_ / width_[bin] ? total_ : level * width_[bin]; }

    /// Depths along arcs with room, from the items with something left. @return whether a bin with room is reached
    constexpr bool reach(std::int64_t level)
    {
        std::fill(item_depth_.begin(), item_depth_.end(), -1);
        std::fill(bin_depth_.begin(), bin_depth_.end(), -1);
        std::vector<std::size_t> items;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            if (left_[i] > 0) {
                item_depth_[i] = 0;
                items.push_back(i);
            }
        }
        bool found = false;
        for (int depth = 0; !items.empty() && !found; depth += 2) {
            std::vector<std::size_t> bins;
            for (auto const i : items) {
                for (auto a = first_[i]; a < first_[i + 1]; ++a) {
                    if (bin_depth_[bin_[a]] < 0) {
                        bin_depth_[bin_[a]] = depth + 1;
                        bins.push_back(bin_[a]);
                    }
                }
            }
            items.clear();
            for (auto const b : bins) {
                found = found || load_[b] < capacity(b, level);
                for (auto const a : arcs_into_[b]) {
                    if (flow_[a] > 0 && item_depth_[item_[a]] < 0) {
                        item_depth_[item_[a]] = depth + 2;
                        items.push_back(item_[a]);
                    }
                }
            }
        }
        return found;
    }

    constexpr std::int64_t push_item(std::size_t item, std::int64_t most, std::int64_t level)
    {
        for (; item_next_[item] < first_[item + 1] - first_[item]; ++item_next_[item]) {
            auto const arc = first_[item] + item_next_[item];
            if (bin_depth_[bin_[arc]] == item_depth_[item] + 1) {
                if (auto const sent = push_bin(bin_[arc], most, level); sent > 0) {
                    flow_[arc] += sent;
                    return sent;
                }
            }
        }
        return 0;
    }

    constexpr std::int64_t push_bin(std::size_t bin, std::int64_t most, std::int64_t level)
    {
        if (auto const room = capacity(bin, level) - load_[bin]; room > 0) {
            auto const sent = std::min(room, most);
            load_[bin] += sent;
            return sent;
        }
        for (; bin_next_[bin] < arcs_into_[bin].size(); ++bin_next_[bin]) {
            auto const arc = arcs_into_[bin][bin_next_[bin]];
            if (flow_[arc] > 0 && item_depth_[item_[arc]] == bin_depth_[bin] + 1) {
                if (auto const sent = push_item(item_[arc], std::min(most, flow_[arc]), level); sent > 0) {
                    flow_[arc] -= sent;
                    return sent;
                }
            }
        }
        return 0;
    }

    std::vector<load_item> const& items_;
    std::vector<std::int64_t> const& width_;
    std::int64_t total_ = 0;
    std::vector<std::size_t> first_{};  ///< arc of each item
    std::vector<std::size_t> bin_{};    ///< of each arc
    std::vector<std::size_t> item_{};   ///< of each arc
    std::vector<std::vector<std::size_t>> arcs_into_{};
    std::vector<std::int64_t> flow_{};
    std::vector<std::int64_t> left_{};
    std::vector<std::int64_t> load_{};
    std::vector<int> item_depth_{};
    std::vector<int> bin_depth_{};
    std::vector<std::size_t> item_next_{};
    std::vector<std::size_t> bin_next_{};
};

/// @pre every item has a bin, and every bin at least one rank. Cost: a few maximum flows.
template <class OnlyWhenCalled = void>
constexpr divided_load least_load(std::vector<load_item> const& items, std::vector<std::int64_t> const& width)
{
    load_network<> network{items, width};
    divided_load result;
    std::vector<char> used(width.size(), 0);
    std::int64_t ranks = 0;
    for (auto const& item : items) {
        for (auto const b : item.bins) {
            ranks += used[b] == 0 ? width[b] : 0;
            used[b] = 1;
        }
    }
    result.level = ranks == 0 ? 0 : (network.total() + ranks - 1) / ranks;
    while (!network.fits(result.level)) {
        result.level = network.least_level();
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        result.shares.emplace_back();
        for (auto a = network.first(i); a < network.first(i + 1); ++a) {
            if (network.flow(a) > 0) {
                result.shares.back().push_back({network.bin(a), network.flow(a)});
            }
        }
    }
    return result;
}

}  // namespace rheo::inline v0::detail
