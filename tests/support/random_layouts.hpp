#pragma once
// SPDX-License-Identifier: Apache-2.0

// Random layouts of arrays, built without the library's constructors: cuts into equal and uneven parts, some of them empty, block-cyclic ones in one and
// two dimensions, flat ranges, boxes split at random with any holders, copies; roles apart or together; padding. Every element has a holder.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rheo/reshard/array_layout.hpp"

namespace random_layouts {

using namespace rheo;

inline int below(std::mt19937& draw, int most) { return static_cast<int>(draw() % static_cast<unsigned>(most)); }

/// One to three tensors of one to four dimensions, 1 to 7 long, one of them perhaps 0.
inline std::vector<layout_tensor> random_tensors(std::mt19937& draw)
{
    std::vector<layout_tensor> tensors(1 + draw() % 3);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        auto& tensor = tensors[t];
        tensor.name = tensor_name{"t" + std::to_string(t)};
        tensor.shape.dimensions = 1 + below(draw, 4);
        for (int d = 0; d < tensor.shape.dimensions; ++d) {
            tensor.shape[d] = 1 + below(draw, tensor.shape.dimensions > 2 ? 4 : 7);
        }
        if (draw() % 20 == 0) {
            tensor.shape[0] = 0;
        }
        tensor.element = {};
        for (int r = 0; r < 1 + below(draw, 3); ++r) {
            tensor.element[static_cast<std::size_t>(r)] = bytes{std::int64_t{1} << below(draw, 4)};
        }
    }
    return tensors;
}

/// The same tensors with other padding, as another layout may have them.
inline std::vector<layout_tensor> padded_at_random(std::vector<layout_tensor> tensors, std::mt19937& draw)
{
    for (auto& tensor : tensors) {
        tensor.padded.reset();
        if (draw() % 4 == 0) {
            tensor.padded = tensor.shape;
            auto const d = below(draw, tensor.shape.dimensions);
            (*tensor.padded)[d] += below(draw, 4);
        }
    }
    return tensors;
}

namespace detail {

/// Boxes of one (tensor, roles), each with the ranks that have it.
using held_boxes = std::vector<std::pair<nd_box, std::vector<int>>>;

inline std::vector<int> some_of(std::vector<int> const& ranks, std::mt19937& draw)
{
    std::vector<int> some;
    for (auto const r : ranks) {
        if (draw() % 2 == 0) {
            some.push_back(r);
        }
    }
    return some.empty() ? std::vector<int>{ranks[draw() % ranks.size()]} : some;
}

/// Cut points of a length: parts of about one length, or of any, some of them empty.
inline std::vector<std::int64_t> cut_points(std::int64_t length, int parts, bool even, std::mt19937& draw)
{
    std::vector<std::int64_t> points{0, length};
    for (int i = 1; i < parts; ++i) {
        points.push_back(even ? length * i / parts : static_cast<std::int64_t>(draw() % static_cast<unsigned>(length + 1)));
    }
    std::sort(points.begin(), points.end());
    return points;
}

inline void cut(held_boxes& out, nd_box const& all, std::vector<int> const& ranks, bool even, std::mt19937& draw)
{
    auto const d = below(draw, all.dimensions);
    auto const parts = 1 + below(draw, static_cast<int>(ranks.size()));
    auto const points = cut_points(all[d].end, parts, even, draw);
    bool const alternate = draw() % 2 == 0;
    for (int p = 0; p < parts; ++p) {
        auto box = all;
        box[d] = {points[static_cast<std::size_t>(p)], points[static_cast<std::size_t>(p) + 1]};
        std::vector<int> holders;
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            auto const n = static_cast<int>(i);
            if ((alternate ? n % parts : n * parts / static_cast<int>(ranks.size())) == p) {
                holders.push_back(ranks[i]);
            }
        }
        out.push_back({box, holders});
    }
}

inline void cyclic(held_boxes& out, nd_box const& all, std::vector<int> const& ranks, std::mt19937& draw)
{
    auto const d = below(draw, all.dimensions);
    auto const e = below(draw, all.dimensions);
    auto const across = d == e ? 1 : 1 + below(draw, static_cast<int>(ranks.size()));
    auto const down = static_cast<int>(ranks.size()) / across;
    auto const block = 1 + below(draw, 3);
    for (std::int64_t i = 0; i * block < all[d].end; ++i) {
        for (std::int64_t j = 0; j == 0 || (d != e && j * block < all[e].end); ++j) {
            auto box = all;
            box[d] = {i * block, std::min<std::int64_t>(all[d].end, (i + 1) * block)};
            if (d != e) {
                box[e] = {j * block, std::min<std::int64_t>(all[e].end, (j + 1) * block)};
            }
            out.push_back({box, {ranks[static_cast<std::size_t>(i % down * across + j % across)]}});
        }
    }
}

inline void split(held_boxes& out, nd_box const& box, std::vector<int> const& ranks, int depth, std::mt19937& draw)
{
    auto const d = below(draw, box.dimensions);
    if (depth == 0 || length(box[d]) < 2) {
        out.push_back({box, some_of(ranks, draw)});
        return;
    }
    auto const at = box[d].begin + 1 + below(draw, static_cast<int>(length(box[d])) - 1);
    auto part = box;
    part[d].end = at;
    split(out, part, ranks, depth - 1, draw);
    part[d] = {at, box[d].end};
    split(out, part, ranks, depth - 1, draw);
}

/// The elements from `begin` to `end` in row-major order, as boxes.
inline void flat(held_boxes& out, nd_box const& all, std::int64_t begin, std::int64_t end, std::vector<int> const& holders)
{
    auto const count = elements(all);
    for (auto i = begin; i < end;) {
        // The longest box from here: whole indices of the first dimension that they are whole in.
        auto size = count;
        int d = 0;
        while (d < all.dimensions && (size /= length(all[d]), i % size != 0 || i + size > end)) {
            ++d;
        }
        auto box = all;
        auto rest = i;
        auto inner = count;
        for (int k = 0; k <= d; ++k) {
            inner /= length(all[k]);
            box[k] = {rest / inner, rest / inner + 1};
            rest %= inner;
        }
        auto const most = std::min((end - i) / inner, all[d].end - box[d].begin);
        box[d].end = box[d].begin + most;
        out.push_back({box, holders});
        i += most * inner;
    }
}

inline held_boxes random_boxes(nd_box const& all, int rank_count, std::mt19937& draw)
{
    std::vector<int> ranks(static_cast<std::size_t>(rank_count));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), draw);
    ranks.resize(1 + draw() % ranks.size());
    held_boxes out;
    if (is_empty(all)) {
        return out;
    }
    switch (below(draw, 7)) {
    case 0: cut(out, all, ranks, true, draw); break;
    case 1: cut(out, all, ranks, false, draw); break;
    case 2:
    case 3: cyclic(out, all, ranks, draw); break;
    case 4: split(out, all, ranks, 4, draw); break;
    case 5: out.push_back({all, some_of(ranks, draw)}); break;
    default: {
        auto const points = cut_points(elements(all), static_cast<int>(ranks.size()), false, draw);
        for (std::size_t p = 0; p + 1 < points.size(); ++p) {
            flat(out, all, points[p], points[p + 1], {ranks[p]});
        }
    }
    }
    return out;
}

}  // namespace detail

/// A layout over the ranks 0 to ranks - 1; some of them may have nothing.
inline array_layout random_layout(std::vector<layout_tensor> const& tensors, int ranks, std::mt19937& draw)
{
    array_layout layout{tensors, {}};
    for (int r = 0; r < ranks; ++r) {
        layout.places.push_back({{rank_id{r}}, {}});
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        auto const add = [&](role_set roles) {
            for (auto const& [box, holders] : detail::random_boxes(whole(tensors[t].padded ? *tensors[t].padded : tensors[t].shape), ranks, draw)) {
                for (auto const rank : holders) {
                    layout.places[static_cast<std::size_t>(rank)].parts.push_back({tensor_id{static_cast<std::int32_t>(t)}, box, roles});
                }
            }
        };
        if (draw() % 3 == 0) {  // each role has a layout of its own
            for (int r = 0; r < tensor_roles; ++r) {
                if (auto const role = static_cast<tensor_role>(r); roles_of(tensors[t]).has(role)) {
                    add(role);
                }
            }
        } else {
            add(roles_of(tensors[t]));
        }
    }
    return layout;
}

/// Some ranks in the order of their numbers; one at least.
inline std::vector<rank_id> some_ranks(int ranks, std::mt19937& draw)
{
    std::vector<rank_id> some;
    for (int r = 0; r < ranks; ++r) {
        if (draw() % 4 != 0) {
            some.push_back(rank_id{r});
        }
    }
    return some.empty() ? std::vector<rank_id>{rank_id{below(draw, ranks)}} : some;
}

}  // namespace random_layouts
