#pragma once
// SPDX-License-Identifier: Apache-2.0

// Input and weight gradient of one stage and microbatch, one right after the other, are a whole backward:
// one instruction that need not keep what lies between them.

#include <cstddef>

#include "rheo/schedule/core/program.hpp"

namespace rheo::inline v0 {

/// The program with each I that its own W follows directly as one B.
template <class OnlyWhenCalled = void>
constexpr program with_whole_backwards(program const& p)
{
    auto result = empty_like(p);
    for (std::size_t row = 0; row < p.rows.size(); ++row) {
        auto const& from = p.rows[row];
        for (std::size_t k = 0; k < from.size(); ++k) {
            auto i = from[k];
            instruction const weight{instruction_kind::weight_gradient, i.stage, i.item};
            if (i.kind == instruction_kind::input_gradient && k + 1 < from.size() && from[k + 1] == weight) {
                i.kind = instruction_kind::backward;
                ++k;
            }
            result.rows[row].push_back(i);
        }
    }
    return result;
}

}  // namespace rheo::inline v0
