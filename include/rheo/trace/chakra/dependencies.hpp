#pragma once
// SPDX-License-Identifier: Apache-2.0

// The dependencies of a whole Chakra file: ids are unique, every data dependency is on a node of the file, and no node waits for itself.
// Control dependencies on absent nodes are counted, not refused: traces made from PyTorch have them. Nodes may come in any order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rheo/trace/chakra/node.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// Takes the ids and dependencies of nodes, one by one, and judges them when all are there. Keeps 16 bytes a node and 8 a dependency.
template <class OnlyWhenCalled = void>
class chakra_dependencies {
public:
    void add(chakra_node const& node)
    {
        ids_.push_back(node.id);
        wanted_.insert(wanted_.end(), node.ctrl_deps.begin(), node.ctrl_deps.end());
        data_begin_.push_back(wanted_.size());
        wanted_.insert(wanted_.end(), node.data_deps.begin(), node.data_deps.end());
        end_.push_back(wanted_.size());
    }

    /// Resolves all dependencies. @returns why the file is no trace, naming the node; empty when it is one
    std::string finish()
    {
        if (auto wrong = index_ids(); !wrong.empty()) {
            return wrong;
        }
        for (std::size_t node = 0; node < ids_.size(); ++node) {
            for (auto i = begin_of(node); i < end_[node]; ++i) {
                auto const found = find(wanted_[i]);
                if (found == absent && i >= data_begin_[node]) {
                    return name_of_node(node) + " has a data dependency on node " + std::to_string(wanted_[i]) + ", which is not in the file";
                }
                absent_controls_ += found == absent ? 1 : 0;
                wanted_[i] = found;
            }
        }
        return find_circle();
    }

    /// After finish(): control dependencies on nodes that are not in the file.
    std::uint64_t absent_controls() const { return absent_controls_; }

    std::size_t size() const { return ids_.size(); }

    /// After finish(): which nodes, by their order in the file, a node waits for; `absent` among them.
    array_view<std::uint64_t const> waits_for(std::size_t node) const
    {
        return array_view<std::uint64_t const>{wanted_}.subspan(begin_of(node), end_[node] - begin_of(node));
    }

    static constexpr std::uint64_t absent = UINT64_MAX;

private:
    std::size_t begin_of(std::size_t node) const { return node == 0 ? 0 : end_[node - 1]; }
    std::string name_of_node(std::size_t node) const { return "node " + std::to_string(ids_[node]); }

    /// Sorts the ids, where they do not ascend already. @returns which comes twice; empty: none
    std::string index_ids()
    {
        if (std::is_sorted(ids_.begin(), ids_.end())) {
            sorted_ids_ = ids_;
        } else {
            by_id_.resize(ids_.size());
            for (std::size_t i = 0; i < ids_.size(); ++i) {
                by_id_[i] = i;
            }
            std::sort(by_id_.begin(), by_id_.end(), [this](std::size_t a, std::size_t b) { return ids_[a] < ids_[b]; });
            for (auto const i : by_id_) {
                sorted_ids_.push_back(ids_[i]);
            }
        }
        auto const twice = std::adjacent_find(sorted_ids_.begin(), sorted_ids_.end());
        return twice == sorted_ids_.end() ? std::string{} : "two nodes of the file have the id " + std::to_string(*twice);
    }

    std::uint64_t find(std::uint64_t id) const
    {
        auto const guess = sorted_ids_.empty() ? 0 : id - sorted_ids_.front();  // ids without gaps
        auto const place = guess < sorted_ids_.size() && sorted_ids_[guess] == id
                               ? guess
                               : static_cast<std::size_t>(std::lower_bound(sorted_ids_.begin(), sorted_ids_.end(), id) - sorted_ids_.begin());
        if (place == sorted_ids_.size() || sorted_ids_[place] != id) {
            return absent;
        }
        return by_id_.empty() ? place : by_id_[place];
    }

    /// Takes nodes away that wait for nothing that is left (Kahn 1962); who is left waits for itself.
    std::string find_circle() const
    {
        bool ordered = true;  // each waits for earlier ones alone: there is no circle
        for (std::size_t node = 0; node < ids_.size() && ordered; ++node) {
            for (auto const other : waits_for(node)) {
                ordered = ordered && (other < node || other == absent);
            }
        }
        if (ordered) {
            return {};
        }
        std::vector<std::size_t> waits(ids_.size());
        std::vector<std::vector<std::size_t>> followers(ids_.size());
        std::vector<std::size_t> ready;
        for (std::size_t node = 0; node < ids_.size(); ++node) {
            for (auto const other : waits_for(node)) {
                if (other != absent) {
                    followers[other].push_back(node);
                    ++waits[node];
                }
            }
            if (waits[node] == 0) {
                ready.push_back(node);
            }
        }
        for (std::size_t i = 0; i < ready.size(); ++i) {
            for (auto const next : followers[ready[i]]) {
                if (--waits[next] == 0) {
                    ready.push_back(next);
                }
            }
        }
        auto const left = std::find_if(waits.begin(), waits.end(), [](std::size_t count) { return count != 0; });
        return left == waits.end() ? std::string{} : circle_from(static_cast<std::size_t>(left - waits.begin()), waits);
    }

    /// The circle that one comes to from a node that is left by going to one that it waits for and that is left, too.
    std::string circle_from(std::size_t node, std::vector<std::size_t> const& waits) const
    {
        std::vector<std::size_t> path;
        std::vector<bool> seen(ids_.size());
        while (!seen[node]) {
            seen[node] = true;
            path.push_back(node);
            for (auto const other : waits_for(node)) {
                if (other != absent && waits[other] != 0) {
                    node = other;
                    break;
                }
            }
        }
        path.erase(path.begin(), std::find(path.begin(), path.end(), node));
        std::string text = name_of_node(node);
        if (path.size() == 1) {
            return text + " waits for itself";
        }
        for (std::size_t i = 1; i < std::min<std::size_t>(path.size(), 8); ++i) {
            text += " waits for " + name_of_node(path[i]) + ", which";
        }
        return text + (path.size() > 8 ? " (and so on)" : "") + " waits for " + name_of_node(node) + ": a circle of " + std::to_string(path.size()) + " nodes";
    }

    std::vector<std::uint64_t> ids_;  // in the order of the file
    std::vector<std::uint64_t> sorted_ids_;
    std::vector<std::size_t> by_id_;       // sorted place -> place in the file; empty: the same
    std::vector<std::uint64_t> wanted_;    // ids, then places, of all dependencies, node by node
    std::vector<std::size_t> data_begin_;  // node -> its data dependencies in `wanted_`, behind its control dependencies
    std::vector<std::size_t> end_;
    std::uint64_t absent_controls_ = 0;
};

}  // namespace rheo::inline v0
