#pragma once
// SPDX-License-Identifier: Apache-2.0

// GPipe (Huang et al., NeurIPS 2019, section 2.3): all forwards, then all backwards. Every rank holds
// the activations of all microbatches. Backwards run in the order of the forwards, as in PyTorch,
// where the paper reverses it; bubble and peak are the same. It is looped breadth-first with one chunk.

#include <string_view>

#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/families/looped_bfs.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

struct gpipe {
    static constexpr std::string_view name = "gpipe";
    static constexpr std::string_view source = "Huang et al., GPipe, NeurIPS 2019, section 2.3";
    static constexpr bool peaks_grow = true;

    /// The compute program of a whole step. @pre ranks >= 1, microbatches >= 0
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(schedule_shape shape)
    {
        detail::expect_possible<gpipe>(shape);
        return looped_bfs::program({.ranks = shape.ranks, .microbatches = shape.microbatches, .chunks = 1});
    }

    /// The compute program of `work`, in its order. @pre ranks >= 1; 0 <= deepest <= ranks, each microbatch once
    template <class OnlyWhenCalled = void>
    static constexpr rheo::program program(int ranks, array_view<stage_work const> work)
    {
        return program_of_work<gpipe>(ranks, work);
    }

    friend constexpr bool operator==(gpipe, gpipe) = default;
};

}  // namespace rheo::inline v0
