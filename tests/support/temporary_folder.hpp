#pragma once
// SPDX-License-Identifier: Apache-2.0

// A folder of its own for a test case that needs files; gone when the case ends.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

struct temporary_folder {
    std::filesystem::path path;

    temporary_folder()
    {
        auto pattern = (std::filesystem::temp_directory_path() / "rheo-test-").string() + std::string(6, 'X');  // which mkdtemp replaces
        if (::mkdtemp(pattern.data()) == nullptr) {
            throw std::runtime_error("no temporary folder");
        }
        path = pattern;
    }
    ~temporary_folder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    temporary_folder(temporary_folder const&) = delete;
    temporary_folder& operator=(temporary_folder const&) = delete;

    /// Writes a file below the folder and returns its path.
    std::string write(std::string const& name, std::string const& content) const
    {
        auto const file = path / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << content;
        return file.string();
    }

    std::string read(std::string const& name) const
    {
        std::ostringstream text;
        text << std::ifstream(path / name, std::ios::binary).rdbuf();
        return text.str();
    }
};
