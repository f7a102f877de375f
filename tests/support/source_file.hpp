#pragma once
// SPDX-License-Identifier: Apache-2.0

// Files of the source tree that tests look at: pages of the documentation, inputs of fuzzing.

#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.hpp"

/// @param path from the root of the tree
inline std::string source_file(std::string const& path)
{
    std::ifstream file{std::string{RHEO_SOURCE_DIR} + "/" + path, std::ios::binary};
    REQUIRE(file);
    return {std::istreambuf_iterator<char>{file}, {}};
}
