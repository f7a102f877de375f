#pragma once
// SPDX-License-Identifier: Apache-2.0

// The text of a file that a user names.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

/// @throws exit_error (usage) when it is no file, or cannot be read
inline std::string read_text_file(std::string const& path)
{
    std::ifstream file{path, std::ios::binary};
    std::error_code ignored;
    if (!file || !std::filesystem::is_regular_file(path, ignored)) {
        throw exit_error{exit_code::usage, path + ": this file cannot be read"};
    }
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace rheo::inline v0
