// SPDX-License-Identifier: Apache-2.0
// Pictures: the text of a small one.
#include <vector>

#include "rheo/trace/svg.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("svg: one of each shape, as text")
{
    svg_picture picture{{{100}, {50}}};
    picture.box({{1}, {2}}, {{11.25}, {4}}, "#fff", "a < \"b\" & c");
    picture.line({{0}, {0}}, {{100}, {50}}, "red");
    picture.text({{50}, {25}}, "x > y", svg_anchor::middle);
    picture.curve(std::vector<svg_point>{{{0}, {0}}, {{1}, {2}}, {{2}, {1}}}, "blue");
    CHECK('\n' + picture.str() == R"(
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50" font-family="sans-serif" font-size="11">
<rect x="1" y="2" width="10.2" height="2" fill="#fff"><title>a &lt; &quot;b&quot; &amp; c</title></rect>
<path d="M0 0L100 50" stroke="red"/>
<text x="50" y="25" text-anchor="middle" fill="#333">x &gt; y</text>
<path fill="none" stroke-width="1.5" stroke="blue" d="M0 0L1 2L2 1"/>
</svg>
)");
}

TEST_CASE("svg: steps of an axis are round and few")
{
    CHECK(axis_step(100.0, 4.0) == Approx(20.0));
    for (double const fewest : {3.0, 4.0}) {
        for (double most = 1e-9; most < 1e9; most *= 1.37) {
            auto const fit = most / axis_step(most, fewest);
            CAPTURE(most, fewest);
            CHECK(fit > 0.999 * fewest);
            CHECK(fit < 2.501 * fewest);
        }
    }
}
