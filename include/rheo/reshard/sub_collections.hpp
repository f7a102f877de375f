#pragma once
// SPDX-License-Identifier: Apache-2.0

// Partitioning and allocation: which parts of which tensors go together, and where they are; Tenplex's second and third function
// (SOSP'24, section 4.1). Sub-collections without ranks are lists of parts; `on` gives them ranks and makes a layout of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/reshard/array_layout.hpp"
#include "rheo/reshard/detail/expects_at.hpp"
#include "rheo/reshard/detail/fill_rounds.hpp"
#include "rheo/reshard/slicing.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Parts that go together, by number.
using sub_collections = std::vector<std::vector<array_part>>;

/// One sub-collection for each part of a sliced tensor.
template <class OnlyWhenCalled = void>
constexpr sub_collections collect(tensor_id tensor, slices const& of, role_set roles = {})
{
    sub_collections result;
    for (auto const& part : of.parts) {
        result.emplace_back();
        for (auto const& box : part) {
            result.back().push_back({tensor, box, roles});
        }
    }
    return result;
}

/// Adds to each sub-collection the one of the same number. @pre equally many, or none to begin with
template <class OnlyWhenCalled = void>
constexpr void add(sub_collections& to, sub_collections const& more)
{
    expects(to.empty() || to.size() == more.size(), "sub-collections are put together number by number; these are not equally many");
    to.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) {
        to[i].insert(to[i].end(), more[i].begin(), more[i].end());
    }
}

/// The stages of tensors, by the layers at which stages begin, the number of layers last: as `cuts` of a pipeline template. Stage s has
/// the parts of the layers from cuts[s] up to cuts[s + 1].
/// @param by_layer sub-collections of each layer, equally many @return those of stage 0, then those of stage 1 ...
template <class OnlyWhenCalled = void>
constexpr sub_collections stages(array_view<int const> cuts, std::vector<sub_collections> const& by_layer)
{
    expects(cuts.size() >= 2 && cuts.front() == 0 && cuts.back() == static_cast<int>(by_layer.size()), "cuts go from 0 to the number of layers");
    sub_collections result;
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
        expects(cuts[s] <= cuts[s + 1], "cuts ascend");
        sub_collections stage(by_layer.empty() ? 0 : by_layer.front().size());
        for (auto l = cuts[s]; l < cuts[s + 1]; ++l) {
            add(stage, by_layer[static_cast<std::size_t>(l)]);
        }
        result.insert(result.end(), stage.begin(), stage.end());
    }
    return result;
}

/// All sub-collections so many times: replicas of a data-parallel job.
template <class OnlyWhenCalled = void>
constexpr sub_collections replicas(sub_collections const& of, int count)
{
    expects(count >= 1, "there is at least one replica");
    sub_collections result;
    for (int n = 0; n < count; ++n) {
        result.insert(result.end(), of.begin(), of.end());
    }
    return result;
}

/// What the replicas have of a dimension that is divided among them, such as the samples of a step: by their shares, the remainder to
/// the first ones. @pre shares of at least 0, not all 0
template <class OnlyWhenCalled = void>
constexpr cut_rule by_shares(int dimension, std::int64_t length, std::vector<std::int64_t> const& shares)
{
    expects(length >= 0, "a length that shares divide is at least 0");
    std::int64_t sum = 0;
    for (auto const share : shares) {
        detail::ruled_dimension const where{dimension, length, "divided with a share of", share};
        detail::expects_at(where, share >= 0, "a share is at least 0");
        detail::expects_at(where, share <= std::numeric_limits<std::int64_t>::max() - sum,
                           "with it, the sum of the shares does not fit into 64 bits; scale them down");
        sum += share;
    }
    expects(sum > 0, "shares are not all 0");
    __extension__ using wide = unsigned __int128;
    cut_rule rule;
    rule.dimension = dimension;
    auto left = length;
    for (auto const share : shares) {
        rule.sizes.push_back(static_cast<std::int64_t>(static_cast<wide>(length) * static_cast<wide>(share) / static_cast<wide>(sum)));
        left -= rule.sizes.back();
    }
    for (std::size_t i = 0; left > 0; i = (i + 1) % shares.size()) {
        auto const more = shares[i] > 0 ? 1 : 0;
        rule.sizes[i] += more;
        left -= more;
    }
    return rule;
}

/// Tensors one after the other as one flat range of elements in so many pieces of ceil(elements / pieces): the optimizer state of ZeRO
/// (Rajbhandari et al., SC20). A piece has at most three boxes of a matrix.
template <class OnlyWhenCalled = void>
constexpr sub_collections flat(array_view<layout_tensor const> tensors, int pieces, role_set roles = {})
{
    expects(pieces >= 1, "a flat range has at least one piece");
    std::int64_t all = 0;
    for (auto const& tensor : tensors) {
        auto const count = count_elements(whole(tensor.shape));
        detail::expects_at(tensor.name, count && *count <= std::numeric_limits<std::int64_t>::max() - all,
                           "with it, the flat range has more elements than 64 bits can count; it has at most 9223372036854775807");
        all += *count;
    }
    auto const each = detail::divide_up(all, pieces);
    sub_collections result(static_cast<std::size_t>(pieces));
    std::int64_t done = 0;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        std::vector<nd_box> left{whole(tensors[t].shape)};
        for (auto rest = elements(left.front()); rest > 0;) {
            auto const piece = static_cast<std::size_t>(done / each);
            auto const count = std::min(rest, each - done % each);
            auto open = count;
            std::vector<nd_box> behind;
            for (auto const& box : left) {
                auto const cut = detail::first_elements(box, std::min(open, elements(box)));
                for (auto const& part : cut.first) {
                    result[piece].push_back({tensor_id{static_cast<std::int32_t>(t)}, part, roles});
                    open -= elements(part);
                }
                behind.insert(behind.end(), cut.rest.begin(), cut.rest.end());
            }
            std::sort(behind.begin(), behind.end());
            left = behind;
            done += count;
            rest -= count;
        }
    }
    return result;
}

/// Sub-collection i on ranks[i]. @pre equally many
template <class OnlyWhenCalled = void>
constexpr array_layout on(array_view<rank_id const> ranks, sub_collections const& of, std::vector<layout_tensor> const& tensors)
{
    expects(ranks.size() == of.size(), "each sub-collection needs a rank, and each rank a sub-collection");
    array_layout layout{tensors, {}};
    for (std::size_t i = 0; i < of.size(); ++i) {
        layout.places.push_back({{ranks[i]}, of[i]});
    }
    return layout;
}

/// Ranks that follow each other.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_id> ranks_from(rank_id first, int count)
{
    expects(first.value >= 0 && first.value < most_ranks && count <= most_ranks - first.value, "ranks that follow each other count from 0 to 16777215");
    std::vector<rank_id> ranks;
    for (int i = 0; i < count; ++i) {
        ranks.push_back(rank_id{first.value + i});
    }
    return ranks;
}

/// Nodes of so many ranks each, by rank: what a request wants as `node_of`. @pre size >= 1
template <class OnlyWhenCalled = void>
constexpr std::vector<node_id> nodes_of(int ranks, int size)
{
    expects(size >= 1, "a node has at least one rank");
    std::vector<node_id> nodes;
    for (int r = 0; r < ranks; ++r) {
        nodes.push_back(node_id{r / size});
    }
    return nodes;
}

}  // namespace rheo::inline v0
