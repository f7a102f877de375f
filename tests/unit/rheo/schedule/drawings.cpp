// SPDX-License-Identifier: Apache-2.0
// Each family's drawing, with f = i = w = 1 and b = 2 per stage: to be compared with the figures of its paper.
#include <string>
#include <string_view>

#include "rheo/schedule/draw/draw.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::string drawing(std::string_view name, schedule_shape shape) { return '\n' + draw(make_program(*parse_schedule(name), shape)); }

}  // namespace

TEST_CASE("drawings: the lines of ten and more ranks begin alike")
{
    CHECK(drawing("gpipe", {11, 1, 0, 0, 0}).find("\n 9 | .  .") != std::string::npos);
    CHECK(drawing("gpipe", {11, 1, 0, 0, 0}).find("\n10 | .  .") != std::string::npos);
}

TEST_CASE("drawings: the drawing of eager-1f1b")
{
    CHECK(drawing("eager-1f1b", {4, 6, 0, 0, 0}) == R"(
0 | F0 F1 F2 F3 F4 F5 .  .  .  .  B0 =  .  B1 =  .  B2 =  .  B3 =  .  B4 =  .  B5 =
1 | .  F0 F1 F2 F3 F4 .  .  B0 =  F5 B1 =  .  B2 =  .  B3 =  .  B4 =  .  B5 =  .  .
2 | .  .  F0 F1 F2 .  B0 =  F3 B1 =  F4 B2 =  F5 B3 =  .  B4 =  .  B5 =  .  .  .  .
3 | .  .  .  F0 B0 =  F1 B1 =  F2 B2 =  F3 B3 =  F4 B4 =  F5 B5 =  .  .  .  .  .  .
)");
}

TEST_CASE("drawings: the drawing of interleaved")
{
    CHECK(drawing("interleaved", {3, 6, 2, 0, 0}) == R"(
0 | 0F0 0F1 0F2 3F0 3F1 3F2 0F3 0F4 .   .   3B0 =   0F5 3B1 =   3F3 3B2 =   3F4 0B0 =   3F5 0B1 =   .   0B2 =   .   3B3 =   .   3B4 =   .   3B5 =   0B3 =   0B4 =   0B5 =
1 | .   1F0 1F1 1F2 4F0 4F1 4F2 .   4B0 =   1F3 4B1 =   1F4 4B2 =   1F5 1B0 =   4F3 1B1 =   4F4 1B2 =   4F5 4B3 =   .   4B4 =   .   4B5 =   1B3 =   1B4 =   1B5 =   .   .
2 | .   .   2F0 2F1 2F2 5F0 5B0 =   5F1 5B1 =   5F2 5B2 =   2F3 2B0 =   2F4 2B1 =   2F5 2B2 =   5F3 5B3 =   5F4 5B4 =   5F5 5B5 =   2B3 =   2B4 =   2B5 =   .   .   .   .
)");
}

TEST_CASE("drawings: the drawing of looped-bfs")
{
    CHECK(drawing("looped-bfs", {3, 4, 2, 0, 0}) == R"(
0 | 0F0 0F1 0F2 0F3 3F0 3F1 3F2 3F3 .   .   .   .   .   .   3B0 =   3B1 =   3B2 =   3B3 =   0B0 =   0B1 =   0B2 =   0B3 =
1 | .   1F0 1F1 1F2 1F3 4F0 4F1 4F2 4F3 .   .   .   4B0 =   4B1 =   4B2 =   4B3 =   1B0 =   1B1 =   1B2 =   1B3 =   .   .
2 | .   .   2F0 2F1 2F2 2F3 5F0 5F1 5F2 5F3 5B0 =   5B1 =   5B2 =   5B3 =   2B0 =   2B1 =   2B2 =   2B3 =   .   .   .   .
)");
}

TEST_CASE("drawings: the drawing of zb-h1")
{
    CHECK(drawing("zb-h1", {4, 6, 0, 0, 0}) == R"(
0 | F0 F1 F2 F3 .  .  .  I0 W0 F4 I1 W1 F5 I2 W2 I3 W3 I4 W4 I5 W5
1 | .  F0 F1 F2 .  .  I0 F3 I1 W0 F4 I2 W1 F5 I3 W2 I4 W3 I5 W4 W5
2 | .  .  F0 F1 .  I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 I5 W3 W4 W5
3 | .  .  .  F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 W3 W4 W5
)");
}

TEST_CASE("drawings: the drawing of zb-h2")
{
    CHECK(drawing("zb-h2", {3, 5, 0, 0, 0}) == R"(
0 | F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4 .  .
1 | .  F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4 .
2 | .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4
)");
}

TEST_CASE("drawings: the drawing of zb1p")
{
    CHECK(drawing("zb1p", {2, 4, 2, 0, 0}) == R"(
0 | 0F0 0F1 2F0 2F1 .   2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3
1 | .   1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 3W3 1I3 1W2 1W3
)");
}

TEST_CASE("drawings: the drawing of zb-v")
{
    CHECK(drawing("zb-v", {3, 5, 0, 0, 0}) == R"(
0 | 0F0 0F1 0F2 0F3 0F4 5F0 5I0 5W0 5F1 5I1 5W1 5F2 5I2 5W2 0I0 0W0 5F3 5I3 5W3 0I1 0W1 5F4 5I4 5W4 0I2 0W2 0I3 0W3 0I4 0W4 .   .
1 | .   1F0 1F1 1F2 4F0 1F3 4F1 4I0 4W0 4F2 4I1 4W1 1F4 1I0 1W0 4F3 4I2 4W2 1I1 1W1 4F4 4I3 4W3 1I2 4I4 1I3 1W2 1I4 1W3 4W4 1W4 .
2 | .   .   2F0 3F0 2F1 3F1 2F2 3F2 3I0 3W0 2F3 2I0 2W0 3F3 3I1 3W1 2F4 2I1 2W1 3F4 3I2 3W2 2I2 3I3 2I3 3I4 2I4 2W2 3W3 3W4 2W3 2W4
)");
}

TEST_CASE("drawings: the drawing of v-half")
{
    CHECK(drawing("v-half", {4, 4, 0, 0, 0}) == R"(
0 | 0F0 0F1 0F2 0F3 .   .   .   7F0 7I0 7F1 7I1 7W0 7F2 7I2 7W1 7W2 0I0 0W0 .   7F3 7I3 0I1 7W3 0I2 0W1 0W2 .   0I3 0W3
1 | .   1F0 1F1 1F2 1F3 .   6F0 .   6F1 6I0 6W0 6F2 6I1 6W1 6I2 1I0 6W2 1W0 6F3 .   1I1 6I3 1I2 1W1 6W3 1W2 1I3 1W3 .
2 | .   .   2F0 2F1 2F2 5F0 .   5F1 .   5F2 5I0 5W0 2F3 5I1 2I0 5I2 5W1 5F3 2W0 2I1 5W2 2I2 5I3 2W1 2W2 2I3 5W3 2W3 .
3 | .   .   .   3F0 4F0 3F1 4F1 3F2 4F2 .   .   4I0 3I0 4W0 3F3 3W0 4F3 4I1 3I1 4I2 3I2 4W1 3W1 4I3 3I3 4W2 3W2 4W3 3W3
)");
}

TEST_CASE("drawings: the drawing of v-min")
{
    CHECK(drawing("v-min", {4, 4, 0, 0, 0}) == R"(
0 | 0F0 0F1 0F2 .   .   .   .   7F0 7I0 7W0 7F1 7I1 7W1 0F3 .   0I0 0W0 .   .   7F2 7I2 0I1 7W2 0W1 .   7F3 7I3 0I2 7W3 0W2 .   .   .   0I3 0W3
1 | .   1F0 1F1 .   .   .   6F0 .   6F1 6I0 6W0 1F2 6I1 6W1 1I0 1F3 1W0 .   6F2 .   1I1 6I2 1W1 6W2 6F3 .   1I2 6I3 1W2 6W3 .   .   1I3 1W3 .
2 | .   .   2F0 2F1 .   5F0 .   5F1 .   .   5I0 5W0 2F2 2I0 5I1 2W0 5W1 5F2 2F3 2I1 2W1 .   5I2 5F3 5W2 2I2 2W2 .   5I3 5W3 .   2I3 2W3 .   .
3 | .   .   .   3F0 4F0 3F1 4F1 .   .   .   .   4I0 3I0 4W0 3F2 3W0 4F2 4I1 3I1 4W1 3F3 3W1 4F3 4I2 3I2 4W2 3W2 .   .   4I3 3I3 4W3 3W3 .   .
)");
}

TEST_CASE("drawings: the drawing of dualpipe")
{
    CHECK(drawing("dualpipe", {4, 8, 0, 0, 0}) == R"(
0 | 0F0     0F1     0F2     7F4     7I4     7W4     7F5     0F3+7B5 =       =       .       7F6+0B0 =       =       7B6     =       .       7F7+0B1 =       =       7B7     =       0I2     0W2     0I3     0W3
1 | .       1F0     6F4     1F1     6F5     1F2     6B4     =       6F6+1B0 =       =       1F3+6B5 =       =       6F7+1B1 =       =       6B6     =       1B2     =       .       6I7     1I3     6W7     1W3
2 | .       5F4     2F0     5F5     2F1     5F6     2B0     =       2F2+5B4 =       =       5F7+2B1 =       =       2F3+5B5 =       =       2B2     =       5B6     =       .       2I3     5I7     2W3     5W7
3 | 4F4     4F5     4F6     3F0     3I0     3W0     3F1     4F7+3B1 =       =       .       3F2+4B4 =       =       3B2     =       .       3F3+4B5 =       =       3B3     =       4I6     4W6     4I7     4W7
)");
}

TEST_CASE("drawings: the drawing of dualpipe-v")
{
    CHECK(drawing("dualpipe-v", {3, 6, 0, 0, 0}) == R"(
0 | 0F0     0F1     0F2     0F3     0F4     5F0     5I0     5W0     5F1     5I1     5W1     5F2     0F5+5B2 =       =       .       .       5F3+0B0 =       =       5B3     =       .       5F4+0B1 =       =       5B4     =       .       5F5+0B2 =       =       5B5     =       0I3     0W3     0I4     0W4     0I5     0W5
1 | .       1F0     1F1     1F2     4F0     1F3     4F1     4I0     4W0     4F2     1F4+4B1 =       =       .       4F3+1B0 =       =       1F5+4B2 =       =       4F4+1B1 =       =       4B3     =       .       4F5+1B2 =       =       4B4     =       1B3     =       .       4I5     1I4     4W5     1I5     1W4     1W5
2 | .       .       2F0     3F0     2F1     3F1     2F2     3F2     2F3     3B0     =       3F3+2B0 =       =       2F4+3B1 =       =       3F4+2B1 =       =       2F5+3B2 =       =       3F5+2B2 =       =       3B3     =       2B3     =       .       3B4     =       2I4     .       3I5     2I5     2W4     3W5     2W5
)");
}

TEST_CASE("drawings: the drawing of chimera")
{
    CHECK(drawing("chimera", {4, 4, 0, 0, 0}) == R"(
0 | 0F0 0F2 .   7F1 7B1 =   7F3 7B3 =   .   0B0 =   .   .   0B2 =
1 | .   1F0 6F1 1F2 6F3 .   6B1 =   1B0 =   6B3 =   1B2 =   .   .
2 | .   5F1 2F0 5F3 2F2 .   2B0 =   5B1 =   2B2 =   5B3 =   .   .
3 | 4F1 4F3 .   3F0 3B0 =   3F2 3B2 =   .   4B1 =   .   .   4B3 =
)");
}

TEST_CASE("drawings: the drawing of bitpipe")
{
    CHECK(drawing("bitpipe", {4, 4, 0, 0, 0}) == R"(
0 | 0F0  0F2  .    11F1 12F1 11F3 12F3 7F0  7B0  =    7F2  7B2  =    .    12B1 =    11B1 =    12B3 =    11B3 =    0B0  =    .    .    0B2  =
1 | .    1F0  10F1 1F2  10F3 13F1 6F0  13F3 6F2  .    6B0  =    13B1 =    6B2  =    13B3 =    10B1 =    1B0  =    10B3 =    1B2  =    .    .
2 | .    9F1  2F0  9F3  2F2  5F0  14F1 5F2  14F3 .    14B1 =    5B0  =    14B3 =    5B2  =    2B0  =    9B1  =    2B2  =    9B3  =    .    .
3 | 8F1  8F3  .    3F0  4F0  3F2  4F2  15F1 15B1 =    15F3 15B3 =    .    4B0  =    3B0  =    4B2  =    3B2  =    8B1  =    .    .    8B3  =
)");
}

TEST_CASE("drawings: the drawing of hanayo")
{
    CHECK(drawing("hanayo", {3, 3, 2, 0, 0}) == R"(
0 | 0F0 0F1 0F2 .   .   5F0 5B0 =   5F1 5B1 =   5F2 5B2 =   .   .   .   .   0B0 =   0B1 =   .   .   0B2 =
1 | .   1F0 1F1 1F2 4F0 .   4F1 .   4B0 =   4F2 4B1 =   .   4B2 =   1B0 =   1B1 =   .   .   1B2 =   .   .
2 | .   .   2F0 3F0 2F1 3F1 2F2 3F2 .   .   3B0 =   2B0 =   3B1 =   2B1 =   3B2 =   2B2 =   .   .   .   .
)");
}

TEST_CASE("drawings: the drawing of seq1f1b")
{
    CHECK(drawing("seq1f1b", {3, 3, 0, 0, 2}) == R"(
0 | F0 F1 F2 F3 .  .  .  .  B1 =  F4 B0 =  F5 B3 =  .  B2 =  .  B5 =  B4 =
1 | .  F0 F1 F2 .  .  B1 =  F3 B0 =  F4 B3 =  F5 B2 =  .  B5 =  B4 =  .  .
2 | .  .  F0 F1 B1 =  F2 B0 =  F3 B3 =  F4 B2 =  F5 B5 =  B4 =  .  .  .  .
)");
}
