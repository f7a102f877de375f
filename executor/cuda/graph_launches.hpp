#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many CUDA graphs a rank launches for its row of a program, once all slots have been recorded: one for each computation, whatever its stage has of
// layers. What else is put into the queue for it are copies (the item's values, states of sums there and back, a loss) and the judging of sums in rows.

#include <cstdint>
#include <span>

#include "rheo/schedule/instruction.hpp"

namespace rheo::inline v0::cuda {

constexpr std::int64_t graph_launches(std::span<instruction const> row)
{
    std::int64_t count = 0;
    for (auto const& i : row) {
        count += is_work(i.kind) ? 1 : 0;
    }
    return count;
}

}  // namespace rheo::inline v0::cuda
