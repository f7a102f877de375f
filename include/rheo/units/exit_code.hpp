#pragma once
// SPDX-License-Identifier: Apache-2.0

// The exit codes of `rheo`: one meaning each, listed here and nowhere else. The reference page, the man pages, the commands, the
// records of a run and the errors that are thrown (exit_error.hpp) take them from this list.

#include <array>
#include <string_view>

namespace rheo::inline v0 {

enum class exit_code : unsigned char {
    done = 0,
    not_ended = 1,
    usage = 2,
    impossible_plan = 3,
    bad_data = 4,
    environment = 5,
    state_lost = 6,
    not_finite = 7,
    stopped = 75,  // EX_TEMPFAIL of sysexits.h
};

struct exit_code_meaning {
    exit_code code;
    std::string_view text;
};

inline constexpr auto exit_codes = std::to_array<exit_code_meaning>({
    {exit_code::done, "done"},
    {exit_code::not_ended, "`rheo train --ended`: the run has not ended; `rheo trace diff`: the traces differ"},
    {exit_code::usage, "usage or config"},
    {exit_code::impossible_plan, "impossible plan"},
    {exit_code::bad_data, "bad data, checkpoint or record"},
    {exit_code::environment, "environment: run folder, lock, device, MPI, a file or a last state that cannot be written"},
    {exit_code::state_lost, "state lost: no copy of a layer is left, and no checkpoint"},
    {exit_code::not_finite, "not finite: a loss or gradient, or nothing finite was learned"},
    {exit_code::stopped, "stopped with a checkpoint; the same command resumes"},
});

/// What the process returns.
constexpr int number_of(exit_code code) { return static_cast<int>(code); }

}  // namespace rheo::inline v0
