// SPDX-License-Identifier: Apache-2.0
// Lines, cells and numbers of tables as text.
#include "rheo/units/csv.hpp"

#include <cstdint>
#include <string_view>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr std::size_t lines_in(std::string_view text)
{
    line_reader lines{text};
    std::string_view line;
    while (lines.next(line)) {
    }
    return lines.number;
}
static_assert(lines_in("") == 0 && lines_in("a") == 1 && lines_in("a\n") == 1 && lines_in("a\n\nb") == 3);

constexpr bool second_line_is(std::string_view text, std::string_view expected)
{
    line_reader lines{text};
    std::string_view line;
    return lines.next(line) && lines.next(line) && line == expected;
}
static_assert(second_line_is("a\r\nb,c\r\n", "b,c") && second_line_is("a\n\n", ""));

static_assert(cells_of("a,,b").size() == 3 && cells_of("a,,b")[1].empty() && cells_of("a,,b")[2] == "b");
static_assert(lines_in("\xEF\xBB\xBF") == 0 && second_line_is("\xEF\xBB\xBF"
                                                              "a\nb",
                                                              "b"));
constexpr bool first_line_is(std::string_view text, std::string_view expected)
{
    line_reader lines{text};
    std::string_view line;
    return lines.next(line) && line == expected;
}
static_assert(first_line_is("\xEF\xBB\xBF"
                            "a,b\r\n",
                            "a,b") &&
              first_line_is("a\xEF\xBB\xBF\n", "a\xEF\xBB\xBF"));

static_assert(trimmed(" \ta b\r ") == "a b" && trimmed(" \t").empty() && trimmed("").empty());
static_assert(cells_of(" a ,\t,\"b\",\" c \"")[0] == "a" && cells_of(" a ,\t,\"b\",\" c \"")[1].empty());
static_assert(cells_of(" a ,\t,\"b\",\" c \"")[2] == "b" && cells_of(" a ,\t,\"b\",\" c \"")[3] == "c");
static_assert(cells_of("\"")[0] == "\"" && cells_of("\"\"")[0].empty() && cells_of("\"a")[0] == "\"a");
static_assert(cells_of("").size() == 1 && cells_of("a,").size() == 2 && cells_of(",").size() == 2);

}  // namespace

TEST_CASE("csv: a number is all of its cell, or nothing is read")
{
    std::int64_t whole = 7;
    double real = 7.0;
    CHECK(read_number("-12", whole));
    CHECK(whole == -12);
    CHECK(read_number("1e-3", real));
    CHECK(real == 1e-3);
    for (std::string_view const bad : {"", " 1", "1 ", "1,", "x", "9223372036854775808", "1.5"}) {
        CAPTURE(bad);
        CHECK_FALSE(read_number(bad, whole));
        CHECK(whole == -12);
    }
    CHECK_FALSE(read_number("1e999", real));
    CHECK(real == 1e-3);
}
