#pragma once
// SPDX-License-Identifier: Apache-2.0

// A box of a tensor in memory of its own: with gaps between elements, its dimensions in any order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "random_layouts.hpp"

namespace random_layouts {

inline constexpr auto gap = std::byte{0xa5};  // between elements

/// Memory for one box of one role: gaps between elements, dimensions in any order.
struct spread_array {
    tensor_id tensor;
    tensor_role role;
    nd_box box;
    std::int64_t size;
    std::vector<std::int64_t> strides{};
    std::vector<std::byte> memory{};

    /// @param column_major the first dimension is the nearest; else the dimensions have any order
    spread_array(tensor_id t, tensor_role r, nd_box const& b, std::int64_t element, std::mt19937& draw, bool column_major = false)
        : tensor{t}, role{r}, box{b}, size{element}
    {
        std::vector<int> order(static_cast<std::size_t>(box.dimensions));
        std::iota(order.begin(), order.end(), 0);
        if (column_major) {
            std::reverse(order.begin(), order.end());
        } else if (draw() % 2 == 0) {
            std::shuffle(order.begin(), order.end(), draw);
        }
        strides.resize(order.size());
        std::int64_t distance = draw() % 4 == 0 ? 2 : 1;
        for (auto d = order.size(); d-- > 0;) {
            strides[static_cast<std::size_t>(order[d])] = distance;
            distance *= length(box[order[d]]) + below(draw, 2);
        }
        memory.assign(static_cast<std::size_t>(distance * size), gap);
    }

    /// Calls use(offset of the element in bytes, its row-major index in the tensor), in row-major order.
    template <class Use>
    void each(nd_shape const& shape, Use const& use) const
    {
        if (is_empty(box)) {
            return;
        }
        auto index = box;
        for (int d = 0; d < box.dimensions; ++d) {
            index[d].end = index[d].begin;
        }
        while (true) {
            std::int64_t offset = 0;
            std::int64_t element = 0;
            bool is_data = true;
            for (int d = 0; d < box.dimensions; ++d) {
                offset += (index[d].end - box[d].begin) * strides[static_cast<std::size_t>(d)];
                element = element * shape[d] + index[d].end;
                is_data = is_data && index[d].end < shape[d];
            }
            use(static_cast<std::size_t>(offset * size), is_data ? element : -1);
            int d = box.dimensions;
            while (d-- > 0 && ++index[d].end == box[d].end) {
                index[d].end = box[d].begin;
            }
            if (d < 0) {
                return;
            }
        }
    }
};

}  // namespace random_layouts
