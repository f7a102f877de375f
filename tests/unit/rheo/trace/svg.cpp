// SPDX-License-Identifier: Apache-2.0
// Pictures: the text of a small one, and of drawings the laws that make them readable.
#include <cmath>
#include <string>
#include <vector>

#include "rheo/trace/svg.hpp"
#include "rheo/trace/svg_curves.hpp"
#include "rheo/trace/svg_lanes.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::size_t count_of(std::string const& text, std::string const& what)
{
    std::size_t count = 0;
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) {
        ++count;
    }
    return count;
}

trace_event event(int rank, activity what, int item, double start, double end)
{
    return {.rank = rank_id{rank},
            .what = what,
            .pipeline = pipeline_id{0},
            .stage = stage_id{0},
            .item = item,
            .generation = {},
            .step = {},
            .attempt = {},
            .start = {start},
            .end = {end}};
}

}  // namespace

static_assert(colour_of(activity::forward) != colour_of(activity::backward));
static_assert(colour_of(activity::shrink) != colour_of(activity::detect));

TEST_CASE("svg: a picture of one of each shape")
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

TEST_CASE("svg: lanes: boxes in proportion on the rank's lane")
{
    std::vector<trace_event> const events{event(0, activity::forward, 0, 1.0, 1.5),      event(4, activity::backward, 7, 1.5, 2.0),
                                          event(4, activity::update, no_item, 1.0, 1.0), event(0, activity::forward, 1, 0.0, 1.0),
                                          event(4, activity::forward, 2, 2.0, 3.0),      event(9, activity::forward, 3, 1.0, 2.0)};
    auto const text = draw_lanes(events, {{rank_id{0}, rank_id{4}}, {1.0}, {2.0}});
    CHECK(count_of(text, "<title>") == 2);  // what touches the span only is outside of it
    CHECK(count_of(text, "F 0: 500 ms") == 1);
    CHECK(count_of(text, "<rect x=\"60\" y=\"1\" width=\"448\" height=\"18\" fill=\"#4c78a8\"><title>F 0") == 1);
    CHECK(count_of(text, "<rect x=\"508\" y=\"21\" width=\"448\" height=\"18\" fill=\"#54a24b\"><title>B 7") == 1);
    CHECK(count_of(text, ">rank 4<") == 1);
    CHECK(count_of(text, ">1 s<") == 1);
    CHECK_THROWS_AS(draw_lanes(events, {{rank_id{0}}, {1.0}, {1.0}}), precondition_error);

    svg_lanes const narrow{.ranks = {rank_id{0}, rank_id{4}}, .begin = {1.0}, .end = {2.0}, .width = {480}};
    CHECK(count_of(draw_lanes(events, narrow), "viewBox=\"0 0 480 58\"") == 1);
    CHECK(count_of(draw_lanes(events, narrow), "<rect x=\"60\" y=\"1\" width=\"208\" height=\"18\" fill=\"#4c78a8\"><title>F 0") == 1);
    CHECK_THROWS_AS(draw_lanes(events, {.ranks = {rank_id{0}}, .begin = {1.0}, .end = {2.0}, .width = {100}}), precondition_error);
}

TEST_CASE("svg: curves: spikes are drawn, NaN is not")
{
    svg_curve loss{"loss", "#000", {}};
    for (int i = 0; i < 20000; ++i) {
        loss.samples.push_back({static_cast<double>(i), i == 7777 ? 50.0 : 1.0});
    }
    auto const peak = draw_curves({{loss}, {}});
    CHECK(count_of(peak, " 22L") == 2);         // the highest line of the grid, and the spike
    CHECK(count_of(peak, "L") < 3 * 960);
    loss.samples[7777].y = std::nan("");
    CHECK(count_of(draw_curves({{loss}, {}}), "nan") == 0);
    CHECK(count_of(draw_curves({{loss}, {{100, "a <loss>"}}}), "a &lt;loss&gt;") == 1);
}

TEST_CASE("svg: curves: nothing, one point and a constant can be drawn")
{
    CHECK(count_of(draw_curves({}), "nothing to draw") == 1);
    CHECK(count_of(draw_curves({{{"none", "#000", {{1, std::nan("")}}}}, {}}), "nothing to draw") == 1);
    auto const one = draw_curves({{{"one", "#000", {{1, 2}}}}, {}});
    CHECK(count_of(one, "nothing to draw") == 0);
    CHECK(count_of(one, "nan") + count_of(one, "inf") == 0);
    CHECK(count_of(draw_curves({{{"rate", "#000", {{0, 5}, {1, 10}}}}, {}, true}), ">0<") >= 1);
}
