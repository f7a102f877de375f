#pragma once
// SPDX-License-Identifier: Apache-2.0

// May this run continue from that checkpoint, with the same bits? What differs between the run that wrote it and the one that would go
// on is reported line by line: inside the fingerprint with what it means for the bits, outside of it as a note.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/fingerprint_line.hpp"
#include "executor/config/config.hpp"

namespace rheo::inline v0 {

struct fingerprint_difference {
    std::string name;
    std::string before;  ///< in the checkpoint; empty: the line was not there
    std::string now;
    std::string meaning;      ///< of continuing in spite of it
    bool of_machine = false;  ///< BLAS, kernels: no key of the config sets it back

    /// "the seed was 1 and is now 2: ..."
    std::string message() const;

    friend bool operator==(fingerprint_difference const&, fingerprint_difference const&) = default;
};

/// Empty when the run continues with the same bits; also when the checkpoint has no fingerprint (an import).
std::vector<fingerprint_difference> differences(std::span<fingerprint_line const> before, std::span<fingerprint_line const> now);

/// Why a run does not continue with the same bits: every difference, and where the cause lies when it is not in the config.
/// @pre there is a difference
std::string message_about(std::span<fingerprint_difference const> differences);

/// Keys whose value is another one than in the checkpoint's config: "run.threads was 1 and is now 2". Both in TOML, as to_toml writes it.
std::vector<std::string> changed_keys(std::string_view before, std::string_view now);

}  // namespace rheo::inline v0
