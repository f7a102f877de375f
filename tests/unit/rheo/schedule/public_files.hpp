#pragma once
// SPDX-License-Identifier: Apache-2.0

// The public schedules and cases in the folder that RHEO_SHARED names.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.hpp"

namespace test {

/// The text of a public file; empty, with a word, when there is no such folder.
inline std::string read_public(std::string const& name)
{
    auto const* shared = std::getenv("RHEO_SHARED");
    if (shared == nullptr) {
        WARN("RHEO_SHARED names no folder with public vectors: skipped");
        return {};
    }
    std::ifstream file{std::filesystem::path{shared} / "vectors" / "schedules" / name};
    INFO(name);
    REQUIRE(file);
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    std::erase(text, '\r');
    return text;
}

}  // namespace test
