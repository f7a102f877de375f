#pragma once
// SPDX-License-Identifier: Apache-2.0

// Checks of options that are amounts: a number that means nothing is refused with a sentence, before anything is read.

#include <optional>

#include <CLI/CLI.hpp>

#include "rheo/units/units.hpp"

namespace rheo::cli {

/// A number of MiB above 0 and below 2^63 bytes.
CLI::Validator is_mebibytes();

/// A rate in GB/s, from a byte per second on.
CLI::Validator is_rate();

/// Reads a time with a unit, 90, 90s, 30m, 12h or 7d, as seconds.
CLI::Validator as_seconds();

/// The bytes of a number that `is_mebibytes` takes; nothing for 0, which stands for an option that was not given.
std::optional<bytes> bytes_of_mebibytes(double count);

}  // namespace rheo::cli
