#pragma once
// SPDX-License-Identifier: Apache-2.0

// The one-line files of sysfs, read and written: a write is one system call, and the kernel says by its result
// whether it took the value.

#include <optional>
#include <string>

#include "executor/power/device_result.hpp"

namespace rheo::inline v0::power {

/// The text of the file without the line feed at its end.
device_result<std::string> read_small_file(std::string const& path);

/// Its first line as a number.
device_result<double> read_number_file(std::string const& path);

/// Writes the text as the line of a file that exists. Who reads meanwhile finds the old value or the new one, also in a plain file.
device_result<done> write_small_file(std::string const& path, std::string const& text);

}  // namespace rheo::inline v0::power
