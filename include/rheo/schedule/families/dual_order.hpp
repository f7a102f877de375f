#pragma once
// SPDX-License-Identifier: Apache-2.0

// What DualPipe and DualPipeV share: a rank's program in the eight steps of DeepSeek-AI's DualPipe
// repository. `outside` is how far the rank is from the place where the two directions meet, `inside`
// how many ranks are on the other side of it, itself included.

#include <cstddef>
#include <vector>

#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/row_builder.hpp"

namespace rheo::inline v0::detail {

/// What the two DualPipe schedules share: one rank's program in the eight steps of its source. Direction 0 is the one that is
/// in front; `stages` and `first` say which stage and which first microbatch a direction has on the rank.
template <class OnlyWhenCalled = void>
struct dual_row {
    program* p;
    int stages[2];
    int first[2];
    int forwards[2] = {};
    int inputs[2] = {};
    std::vector<instruction> weights = {};  ///< weight gradients that wait
    std::size_t weighed = 0;

    constexpr instruction next(instruction_kind kind, int direction)
    {
        auto& count = kind == instruction_kind::forward ? forwards[direction] : inputs[direction];
        return make_instruction(kind, stage_id{stages[direction]}, microbatch_id{first[direction] + count++});
    }
    constexpr void add(instruction i) { p->rows[static_cast<std::size_t>(p->placement[static_cast<std::size_t>(i.stage)])].push_back(i); }
    constexpr void forward(int direction) { add(next(instruction_kind::forward, direction)); }
    constexpr void backward(int direction, bool split)
    {
        auto i = next(split ? instruction_kind::input_gradient : instruction_kind::backward, direction);
        add(i);
        if (split) {
            i.kind = instruction_kind::weight_gradient;
            weights.push_back(i);
        }
    }
    constexpr void weight() { add(weights[weighed++]); }
    constexpr void both(int forward_direction, int backward_direction)
    {
        auto const f = next(instruction_kind::forward, forward_direction);
        add_overlapped(*p, f, next(instruction_kind::backward, backward_direction));
    }
};

/// Appends the rank's program. `turns`: pairs of the steady state; `apart`: the first pair is not overlapped.
template <class OnlyWhenCalled = void>
constexpr void add_dual_order(dual_row<> row, int outside, int inside, int turns, bool apart)
{
    for (int k = 0; k < 2 * outside; ++k) {
        row.forward(0);
    }
    for (int k = 0; k < inside; ++k) {
        row.forward(0);
        row.forward(1);
    }
    for (int k = 0; k < outside; ++k) {
        row.backward(1, true);
        row.weight();
        row.forward(1);
    }
    for (int k = 0; k < turns; ++k) {
        if (k == 0 && apart) {
            row.forward(0);
            row.backward(1, false);
        } else {
            row.both(0, 1);
        }
        row.both(1, 0);
    }
    for (int k = 0; k < outside; ++k) {
        row.backward(1, false);
        row.both(1, 0);
    }
    bool split = false;
    for (int k = 0; k < inside; ++k) {
        split = split || (k == inside / 2 && inside % 2 == 0);
        row.backward(1, split);
        split = split || (k == inside / 2 && inside % 2 == 1);
        row.backward(0, split);
    }
    for (int k = 0; k < outside; ++k) {
        row.weight();
        row.backward(0, true);
    }
    while (row.weighed < row.weights.size()) {
        row.weight();
    }
}

}  // namespace rheo::inline v0::detail
