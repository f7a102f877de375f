#pragma once
// SPDX-License-Identifier: Apache-2.0

// Published files in the folder `vectors` of the one that RHEO_SHARED names: as text, and as the rows of a table.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace test {

/// The text of a published file; empty, with a word, when there is no such folder.
inline std::string read_vectors(std::string const& name)
{
    auto const* shared = std::getenv("RHEO_SHARED");
    if (shared == nullptr) {
        WARN("RHEO_SHARED names no folder with public vectors: skipped");
        return {};
    }
    std::ifstream file{std::filesystem::path{shared} / "vectors" / name};
    INFO(name);
    REQUIRE(file);
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    std::erase(text, '\r');
    return text;
}

inline std::vector<std::string> split(std::string const& text, char at)
{
    std::vector<std::string> parts;
    std::istringstream stream{text};
    for (std::string part; std::getline(stream, part, at);) {
        parts.push_back(part);
    }
    return parts;
}

/// The rows of a table by the names of their columns.
class vector_table {
public:
    explicit vector_table(std::string const& text)
    {
        for (auto const& line : split(text, '\n')) {
            if (line.empty() || line.front() == '#') {
                continue;
            }
            if (columns_.empty()) {
                columns_ = split(line, ',');
            } else {
                lines.push_back(line);
            }
        }
    }

    std::string cell(std::string const& line, std::string const& column) const
    {
        auto const place = std::find(columns_.begin(), columns_.end(), column);
        REQUIRE(place != columns_.end());
        return split(line, ',').at(static_cast<std::size_t>(place - columns_.begin()));
    }
    long long integer(std::string const& line, std::string const& column) const { return std::stoll(cell(line, column)); }
    double number(std::string const& line, std::string const& column) const { return std::stod(cell(line, column)); }

    std::vector<std::string> lines;

private:
    std::vector<std::string> columns_;
};

}  // namespace test
