#pragma once
// SPDX-License-Identifier: Apache-2.0

// The Chakra vectors in the folder that RHEO_SHARED names.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.hpp"

namespace test {

/// The folder of the Chakra vectors; empty, with a word, when there is none.
inline std::filesystem::path chakra_folder()
{
    auto const* shared = std::getenv("RHEO_SHARED");
    if (shared == nullptr) {
        WARN("RHEO_SHARED names no folder with public vectors: skipped");
        return {};
    }
    return std::filesystem::path{shared} / "vectors" / "chakra";
}

inline std::string bytes_of(std::filesystem::path const& path)
{
    std::ifstream file{path, std::ios::binary};
    INFO(path.string());
    REQUIRE(file);
    return {std::istreambuf_iterator<char>{file}, {}};
}

inline std::string from_hex(std::string_view text)
{
    std::string bytes;
    for (std::size_t i = 0; i + 1 < text.size() && text[i] > ' '; i += 2) {
        bytes += static_cast<char>(std::stoi(std::string{text.substr(i, 2)}, nullptr, 16));
    }
    return bytes;
}

}  // namespace test
