#pragma once
// SPDX-License-Identifier: Apache-2.0

// How clocks are restored, as a value: a few lines of text that any process can perform, so that one which
// outlives the rank (power/guardian.hpp) does exactly what the rank itself would have done. There may be several
// ways; the first one that works is enough.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/power/device_result.hpp"

namespace rheo::inline v0::power {

enum class restoration_kind {
    nvml,     ///< `subject`: the library's name, `text`: the device's UUID; its locked clocks are reset
    zeusd,    ///< `subject`: the socket, `text`: the device's number there; its locked clocks are reset
    command,  ///< `subject`: a line for the shell
    write,    ///< `subject`: a file, `text`: what is written into it
};

struct restoration_step {
    restoration_kind kind;
    std::string subject;
    std::string text;

    friend bool operator==(restoration_step const&, restoration_step const&) = default;
};

using restore_path = std::vector<restoration_step>;  ///< all steps of it are needed

struct restoration {
    std::vector<restore_path> ways;

    bool empty() const { return ways.empty(); }
    friend bool operator==(restoration const&, restoration const&) = default;
};

/// A line per step, `or` between ways. @pre no text has a tab or a line feed
std::string to_text(restoration const& r);

/// The other way round; none when a line is not one of to_text's.
std::optional<restoration> restoration_of(std::string_view text);

/// Tries the ways in their order until all steps of one were done; of a way that fails all steps are tried. @return why
/// none of them worked: the sentence of the first failure of each
device_result<done> perform(restoration const& r);

}  // namespace rheo::inline v0::power
