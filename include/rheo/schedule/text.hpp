#pragma once
// SPDX-License-Identifier: Apache-2.0

// Instructions as text, in the form of PyTorch's pipelining package (torch/distributed/pipelining/
// schedules.py, _Action): stage, kind, microbatch, as in `2F0` and `0SEND_F1`; a program is one line
// per rank with commas between. Reductions, which that form does not know, read `1REDUCE5`.

#include <string>

#include "rheo/schedule/instruction.hpp"
#include "rheo/schedule/program.hpp"

namespace rheo::inline v0 {

/// The instruction as `2F0`.
inline std::string to_string(instruction i)
{
    return std::to_string(i.stage) + std::string{name_of(i.kind)} + std::to_string(i.item);
}

/// The program as text: one line per position, instructions with commas between.
inline std::string to_text(program const& p)
{
    std::string text;
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            text += to_string(i) + ",";
        }
        if (!row.empty()) {
            text.pop_back();
        }
        text += '\n';
    }
    return text;
}

}  // namespace rheo::inline v0
