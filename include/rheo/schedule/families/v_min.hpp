#pragma once
// SPDX-License-Identifier: Apache-2.0

// V-Min (Qi et al., NeurIPS 2024, section 3.2): the V of two chunks per rank with every hop one slot, so that activations live as
// short as possible: about a third of 1F1B's memory. On its way up and down the V a microbatch moves one rank per slot; the
// turn is delayed where the period of 6 would put two instructions into one slot. The paper says about 2 p / 3 m of bubble at
// f = i = w, which are 2 p full stages' forwards; what is here has less (p = 8: 13 against 16).

#include <string_view>

#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/transform/building_block.hpp"
#include "rheo/schedule/transform/reorder.hpp"

namespace rheo::inline v0 {

struct v_min {
    static constexpr std::string_view name = "v-min";
    static constexpr std::string_view source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024, section 3";

    /// The building block on `ranks` ranks. @pre ranks >= 1
    template <class OnlyWhenCalled = void>
    static constexpr building_block block(int ranks)
    {
        building_block result{v_placement(ranks, 2), {}, {}, {}, 6};
        auto const turn = 2 * ranks + (ranks % 3 == 0 ? 2 : 0);  // even, and no multiple of 6
        for (int s = 0; s < 2 * ranks; ++s) {
            result.forward.push_back(s);
            result.input_gradient.push_back(turn + 2 * ranks - 1 - s);
        }
        return with_weight_gradients(result, ranks);
    }

    /// The compute program of a whole step. @pre error_of says none
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<v_min>(shape);
        return reordered(block(shape.ranks), shape.ranks, shape.microbatches);
    }

    friend constexpr bool operator==(v_min, v_min) = default;
};

}  // namespace rheo::inline v0
