// SPDX-License-Identifier: Apache-2.0
// Blocks of a page: numbers as short as a screen needs, curves thinned without losing a spike, and nothing in the data that could become markup.
#include "executor/report/blocks.hpp"

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "rheo/units/expects.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

trace_event event(int rank, activity what, int item, double start, double end)
{
    trace_event e{.rank = rank_id{rank}, .activity = what, .generation = {}, .step = {}, .attempt = {}, .start = {start}, .end = {end}};
    e.item = item;
    return e;
}

curve long_curve(int points)
{
    curve c{.name = "loss"};
    for (int i = 0; i < points; ++i) {
        c.x.push_back(i + 1);
        c.y.push_back(2.0 + 0.001 * (i % 7));
    }
    return c;
}

std::size_t count_of(std::string const& text, std::string const& what)
{
    std::size_t count = 0;
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) {
        ++count;
    }
    return count;
}

}  // namespace

TEST_CASE("report: numbers have six digits, whole ones no point")
{
    CHECK(shown_number(5.4361189325281885).dump() == "5.43612");
    CHECK(shown_number(400).dump() == "400");
    CHECK(shown_number(-0.0).dump() == "0");
    CHECK(shown_number(1.5e-9).dump() == "1.5e-09");
    CHECK(shown_number(std::nan("")).dump() == "null");
    CHECK(shown_number(std::numeric_limits<double>::infinity()).dump() == "null");
    CHECK(std::isfinite(shown_number(std::numeric_limits<double>::max()).get<double>()));
}

TEST_CASE("report: a thinned curve keeps its spikes and its gaps")
{
    auto whole = long_curve(100'000);
    whole.y[7777] = 50.0;
    whole.y[8888] = -50.0;
    auto const few = thinned(whole, 2000);
    CHECK(few.x.size() <= 2000);
    CHECK(few.x.size() > 1000);
    CHECK(few.x.front() == 1);
    CHECK(few.x.back() == 100'000);
    CHECK(std::is_sorted(few.x.begin(), few.x.end()));
    auto const spike = std::find(few.x.begin(), few.x.end(), 7778.0) - few.x.begin();
    REQUIRE(spike < std::ssize(few.x));
    CHECK(few.y[static_cast<std::size_t>(spike)] == 50.0);
    CHECK(std::find(few.y.begin(), few.y.end(), -50.0) != few.y.end());

    for (std::size_t i = 50'000; i < 60'000; ++i) {
        whole.y[i] = std::nan("");
    }
    auto const gap = thinned(whole, 2000);
    CHECK(std::any_of(gap.y.begin(), gap.y.end(), [](double y) { return std::isnan(y); }));
    CHECK(thinned(long_curve(2000), 2000).x.size() == 2000);  // nothing to thin
    CHECK(thinned(curve{}, 4).x.empty());
    CHECK_THROWS_AS(thinned(curve{.name = "", .x = {1}, .y = {}}, 4), precondition_error);
}

TEST_CASE("report: a chart of a long run is small and says so")
{
    auto const block = curves_block({.name = "Loss", .curves = {long_curve(10'000)}, .marks = {{100, "lost: rank 3"}}});
    CHECK(block["curves"][0]["x"].size() <= most_curve_points);
    CHECK(block["note"] == "Thinned: of every 11 of 10000 points the lowest and the highest are drawn.");
    CHECK(block.dump().size() < 40'000);
    CHECK(block["group"] == "steps");
    CHECK(block["marks"][0]["text"] == "lost: rank 3");
    auto const whole = curves_block({.name = "Loss", .curves = {long_curve(400)}, .over_time = true});
    CHECK_FALSE(whole.contains("note"));
    CHECK(whole["group"] == "seconds");
    CHECK(whole["curves"][0]["x"].size() == 400);
    CHECK(curves_block({.name = "none"})["curves"].empty());
}

TEST_CASE("report: lanes hold the events of their span")
{
    std::vector<trace_event> const events{event(0, activity::forward, 0, 1.0, 1.5),       event(4, activity::backward, 7, 1.5, 2.5),
                                          event(4, activity::update, no_item, 1.25, 1.5), event(0, activity::forward, 1, 0.0, 1.0),
                                          event(4, activity::forward, 2, 2.0, 3.0),       event(9, activity::forward, 3, 1.0, 2.0)};
    auto const block = lanes_block(events, {.ranks = {rank_id{0}, rank_id{4}}, .begin = {1.0}, .end = {2.0}, .group = "step"});
    CHECK(block["lanes"] == page_block{"rank 0", "rank 4"});
    CHECK(block["length"] == 1);
    CHECK(block["group"] == "step");
    CHECK(block["kinds"].dump() == R"([{"name":"F","text":"forward"},{"name":"B","text":"backward"},{"name":"update","text":"update"}])");
    // lane, kind, start, duration within the span, and the microbatch of a computation
    CHECK(block["boxes"].dump() == "[[0,0,0,0.5,0],[1,1,0.5,0.5,7],[1,2,0.25,0.25]]");
    CHECK_FALSE(block.contains("note"));
    CHECK_THROWS_AS(lanes_block(events, {.ranks = {rank_id{0}}, .begin = {1.0}, .end = {1.0}}), precondition_error);
}

TEST_CASE("report: too many lanes or boxes are left out and counted")
{
    std::vector<trace_event> events;
    lane_chart chart{.ranks = {}, .begin = {0.0}, .end = {1.0}};
    for (int rank = 0; rank < 200; ++rank) {
        chart.ranks.push_back(rank_id{rank});
        for (int i = 0; i < 200; ++i) {
            events.push_back(event(rank, activity::forward, i, i / 200.0, (i + 1) / 200.0));
        }
    }
    auto const block = lanes_block(events, chart);
    CHECK(block["lanes"].size() == most_lanes);
    CHECK(block["boxes"].size() == most_boxes);
    CHECK(block["note"] == "Drawn: 128 of 200 ranks, 20000 of 25600 events.");
}

TEST_CASE("report: bands are curves that are stacked")
{
    curve_chart chart{.name = "share, %", .curves = {{"one", {0.5, 1.5}, {25, 50}}, {"two", {0.5, 1.5}, {75, 50}}}, .over_time = true};
    CHECK(!curves_block(chart).contains("stacked"));
    chart.is_stacked = true;
    auto const block = curves_block(chart);
    CHECK(block["stacked"] == true);
    CHECK(block["curves"][1]["y"] == page_block::array({75, 50}));
}

TEST_CASE("report: every activity that is drawn has a colour")
{
    std::ifstream file{RHEO_SOURCE_DIR "/executor/report/assets/style.css"};
    std::string const style{std::istreambuf_iterator<char>{file}, {}};
    for (int a = 0; a < activity_count; ++a) {
        auto const what = static_cast<activity>(a);
        bool const drawn = !is_instruction(what) || is_work(static_cast<instruction_kind>(what)) || what == activity::await_reduction;
        CAPTURE(name_of(what));
        CHECK((!drawn || style.find(".kind-" + std::string{name_of(what)} + " ") != style.npos ||
               style.find(".kind-" + std::string{name_of(what)} + ",") != style.npos));
    }
}

TEST_CASE("report: data can't become markup, and nothing is loaded")
{
    std::string const evil = "</script><script>alert(1)</script><!--\xff\xc0";
    auto const page = page_of({{"title", evil}, {"sections", page_block::array({section(evil, page_block::array({note_block(evil), text_block(evil)}))})}});
    CHECK(page.starts_with("<!DOCTYPE html>"));
    CHECK(page.ends_with("</html>\n"));
    CHECK(count_of(page, "</script>") == 3);  // the page's own: data, chart, page
    CHECK(count_of(page, "alert(1)") == 4);
    CHECK(count_of(page, "<script>alert") == 0);
    CHECK(count_of(page, "<!--") == 0);
    auto const from = page.find("id=\"data\">") + 10;
    auto const data = page_block::parse(page.substr(from, page.find("</script>", from) - from));
    CHECK(data["title"] == "</script><script>alert(1)</script><!--\xef\xbf\xbd\xef\xbf\xbd");
    for (auto const* reference : {"src=", "href=", "url(http", "@import", "fetch(", "XMLHttpRequest", "import("}) {
        CAPTURE(reference);
        CHECK(count_of(page, reference) == 0);
    }
    CHECK(count_of(page, "http") == 1);  // the name of SVG
}
