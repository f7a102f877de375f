#pragma once
// SPDX-License-Identifier: Apache-2.0

// V-Half (Qi et al., NeurIPS 2024, section 3.2): the V of two chunks per rank with hops of one slot down the ranks and two slots
// up, forwards and backwards alike: half of 1F1B's memory and fewer bubbles than V-Min. The offsets are our own: the smallest that
// repeat without collisions and keep the paper's peak, found by trying all. The paper says about p / 2 m of bubble at f = i = w,
// which are 3 p / 2 full stages' forwards; what is here has less from m >= p on (p = 8: 8.5 against 12).

#include <cstddef>
#include <string_view>

#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/transform/building_block.hpp"
#include "rheo/schedule/transform/reorder.hpp"

namespace rheo::inline v0 {

struct v_half {
    static constexpr std::string_view name = "v-half";
    static constexpr std::string_view source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024, section 3";

    /// The building block on `ranks` ranks. @pre ranks >= 1
    template <class OnlyWhenCalled = void>
    static constexpr building_block block(int ranks)
    {
        building_block result{v_placement(ranks, 2), {}, {}, {}, 6};
        auto const turn = 3 * ranks - 1 + (ranks % 2 == 0 ? 3 : 0);  // the first input gradient, where the period leaves room
        for (int s = 0; s < ranks; ++s) {
            result.forward.push_back(s);
            result.input_gradient.push_back(turn + ranks + 1 + 2 * (ranks - 1 - s));
        }
        for (int s = ranks; s < 2 * ranks; ++s) {
            result.forward.push_back(ranks + 2 * (s - ranks));
            result.input_gradient.push_back(turn + 2 * ranks - 1 - s);
        }
        return with_weight_gradients(result, ranks);
    }

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<v_half>(shape);
        return reordered(block(shape.ranks), shape.ranks, shape.microbatches);
    }

    friend constexpr bool operator==(v_half, v_half) = default;
};

}  // namespace rheo::inline v0
