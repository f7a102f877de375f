// SPDX-License-Identifier: Apache-2.0
// Words of a file in a message: short, printable, and all there where they are short and printable already.
#include "rheo/units/in_quotes.hpp"

#include <algorithm>

#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("in_quotes: a short word stands in quotes as it is")
{
    CHECK(in_quotes("2F0") == "'2F0'");
    CHECK(in_quotes("") == "''");
    CHECK(in_quotes(std::string(40, 'a')) == "'" + std::string(40, 'a') + "'");
}

TEST_CASE("in_quotes: messages stay short and printable")
{
    CHECK(in_quotes("\x1b[31mred\n") == "'\\x1b[31mred\\x0a'");
    CHECK(in_quotes(std::string(5'000'000, 'X')) == "'" + std::string(40, 'X') + "'... (5000000 bytes)");
    std::string every;
    for (int byte = 0; byte < 256; ++byte) {
        every += static_cast<char>(byte);
        auto const shown = in_quotes(every.substr(every.size() - 1)) + in_quotes(every);
        CHECK(std::all_of(shown.begin(), shown.end(), [](char c) { return c >= 0x20 && c < 0x7f; }));
        CHECK(shown.size() < 80);
    }
}
