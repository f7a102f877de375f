#pragma once
// SPDX-License-Identifier: Apache-2.0

// The answer of a check: yes, or the fault with its culprit. A verdict is a value for the compiler (it
// converts to bool in a static_assert) and a sentence for people. A hang shows the stuck state: what
// each unfinished rank waits in.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

enum class program_error : std::uint8_t {
    none,
    missing,    ///< an instruction that the work needs is nowhere
    repeated,   ///< an instruction is there twice
    misplaced,  ///< an instruction is not on the rank that the placement says, or means nothing
    early,      ///< an instruction comes before what it needs
    crossed,    ///< a send meets a receive of something else
    hang,       ///< every unfinished rank waits
};

/// A rank that waits: its position in a pipeline of the product, and the instruction it waits in.
struct waiting_row {
    pipeline_id pipeline;
    int position;
    rheo::instruction instruction;

    friend constexpr bool operator==(waiting_row, waiting_row) = default;
};

struct verdict {
    bool ok = true;
    program_error fault = program_error::none;
    std::vector<waiting_row> culprits;  ///< the instruction at fault, or the stuck state, ascending

    friend constexpr bool operator==(verdict const&, verdict const&) = default;
    constexpr explicit operator bool() const { return ok; }

    /// The verdict for people.
    std::string message() const
    {
        static constexpr char const* beginnings[] = {
            "the programs are sound",
            "an instruction is missing:",
            "an instruction is there twice:",
            "an instruction is on a rank where its stage does not live:",
            "an instruction comes before what it needs:",
            "a send meets a receive of something else:",
            "the programs hang:",
        };
        std::string text = beginnings[static_cast<std::size_t>(fault)];
        char const* separator = " ";
        for (auto const& c : culprits) {
            text += separator;
            text += "pipeline " + std::to_string(c.pipeline.value) + " rank " + std::to_string(c.position);
            text += (fault == program_error::hang ? " waits in " : " with ") + to_string(c.instruction);
            separator = ", ";
        }
        return text;
    }
};

/// The verdict of a fault with one culprit.
template <class OnlyWhenCalled = void>
constexpr verdict refused(program_error fault, waiting_row culprit)
{
    return {false, fault, {culprit}};
}

}  // namespace rheo::inline v0
