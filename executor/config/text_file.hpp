#pragma once
// SPDX-License-Identifier: Apache-2.0

// The text of a file that a user names, and files that are written whole.

#include <cerrno>
#include <cstring>
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

/// Writes a file, whole or not at all. @throws exit_error (environment)
inline void write_whole(std::string const& path, std::string const& text)
{
    auto const partial = path + ".partial";
    auto const fail = [&](std::string const& error) {
        std::error_code ignored;
        std::filesystem::remove(partial, ignored);
        throw exit_error{exit_code::environment, "'" + path + "' cannot be written: " + error};
    };
    {
        std::ofstream file(partial, std::ios::binary);
        file << text;
        file.close();
        if (!file) {
            fail(std::strerror(errno));
        }
    }
    std::error_code error;
    std::filesystem::rename(partial, path, error);
    if (error) {
        fail(error.message());
    }
}

}  // namespace rheo::inline v0
