#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which node each group of ranks goes to, when groups have different sizes and each lies in one node: bin packing, by depth-first search over the larger
// groups first. States that failed are remembered by what is left of the nodes, so nodes and groups that are alike are tried once.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rheo/units/array_view.hpp"

namespace rheo::inline v0::detail {

template <class OnlyWhenCalled = void>
class groups_to_nodes {
public:
    groups_to_nodes(array_view<int const> sizes, std::vector<int> room) : sizes_{sizes}, room_{std::move(room)}, node_of_(sizes.size()), order_(sizes.size())
    {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return sizes_[a] > sizes_[b]; });
    }

    /// Group -> node; none where the groups do not fit, or no way was found in `most_states`.
    std::optional<std::vector<std::size_t>> search() { return place(0) ? std::optional{std::move(node_of_)} : std::nullopt; }

private:
    static constexpr std::size_t most_states = 100'000;

    bool place(std::size_t next)
    {
        if (next == order_.size()) {
            return true;
        }
        auto left = room_;
        std::sort(left.begin(), left.end());
        if (failed_.size() >= most_states || failed_.contains({next, left})) {
            return false;
        }
        auto const size = sizes_[order_[next]];
        std::set<int> tried;
        for (std::size_t node = 0; node < room_.size(); ++node) {
            if (room_[node] < size || !tried.insert(room_[node]).second) {
                continue;
            }
            room_[node] -= size;
            node_of_[order_[next]] = node;
            if (place(next + 1)) {
                return true;
            }
            room_[node] += size;
        }
        failed_.emplace(next, std::move(left));
        return false;
    }

    array_view<int const> sizes_;
    std::vector<int> room_;
    std::vector<std::size_t> node_of_;
    std::vector<std::size_t> order_;
    std::set<std::pair<std::size_t, std::vector<int>>> failed_;
};

}  // namespace rheo::inline v0::detail
