// SPDX-License-Identifier: Apache-2.0
// JSON lines: events come back bit for bit, a torn end is distinguished from a bad line, and every deviation is named.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>

#include "rheo/trace/json_lines.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

static_assert([] {
    for (int a = 0; a < activity_count; ++a) {
        if (activity_named(name_of(static_cast<activity>(a))) != static_cast<activity>(a)) {
            return false;
        }
    }
    return activity_named("F") == activity::forward && activity_named("first_instruction") == activity::first_instruction && !activity_named("f") &&
           !activity_named("");
}());
static_assert([] {
    for (int k = 0; is_event(static_cast<instruction_kind>(k)); ++k) {
        if (name_of(activity_of(static_cast<instruction_kind>(k))) != name_of(static_cast<instruction_kind>(k))) {
            return false;
        }
    }
    return !is_event(instruction_kind::overlap);
}());
static_assert(activity_of(instruction_kind::await_reduction) == activity::await_reduction && !is_instruction(activity::decide));
static_assert(is_recovery(activity::detect) && !is_recovery(activity::decide) && !is_recovery(activity::evaluate));

trace_event example()
{
    return {.rank = rank_id{3},
            .activity = activity::send_activation,
            .pipeline = pipeline_id{1},
            .stage = stage_id{2},
            .item = 7,
            .generation = generation_id{4},
            .step = step_id{12},
            .attempt = attempt_id{1},
            .start = {0.1},
            .end = {0.25}};
}

std::string text_of(std::vector<trace_event> const& events)
{
    std::ostringstream out;
    write_json_lines(out, events);
    return out.str();
}

trace_record read(std::string const& text)
{
    std::istringstream in{text};
    return read_json_lines(in);
}

}  // namespace

TEST_CASE("json_lines: clock and energy round-trip at the end")
{
    auto event = example();
    event.clock = {1410.0};
    CHECK_THAT(text_of({event}), Catch::Matchers::EndsWith(R"("end_s":0.25,"clock_MHz":1410})"
                                                           "\n"));
    CHECK(read(text_of({event})).events == std::vector{event});
    event.energy = {0.125};
    CHECK_THAT(text_of({event}), Catch::Matchers::EndsWith(R"("end_s":0.25,"clock_MHz":1410,"energy_J":0.125})"
                                                           "\n"));
    auto alone = example();
    alone.energy = {1e-3};
    CHECK(read(text_of({event, alone, example()})).events == std::vector{event, alone, example()});
    CHECK_THAT(read(R"({"rank":0,"name":"F","pipeline":0,"stage":0,"item":0,"generation":0,"step":0,"attempt":0,"start_s":0,"end_s":1,"clock_MHz":x})"
                    "\n")
                   .error,
               Catch::Matchers::ContainsSubstring("a number after ',\"clock_MHz\":'"));
}

TEST_CASE("json_lines: peer and bytes round-trip at the end")
{
    auto event = example();
    event.peer = rank_id{0};
    event.size = bytes{131072};
    CHECK_THAT(text_of({event}), Catch::Matchers::EndsWith(R"("end_s":0.25,"peer":0,"bytes":131072})"
                                                           "\n"));
    auto computed = example();
    computed.activity = activity::backward;
    computed.clock = {1410.0};
    computed.energy = {0.125};
    computed.peer = rank_id{4};
    computed.held = bytes{0};  // that nothing is held is known
    CHECK_THAT(text_of({computed}), Catch::Matchers::EndsWith(R"("clock_MHz":1410,"energy_J":0.125,"peer":4,"held_bytes":0})"
                                                              "\n"));
    auto sums = example();
    sums.activity = activity::await_reduction;
    sums.size = bytes{std::int64_t{9} << 30};
    CHECK(read(text_of({event, computed, sums, example()})).events == std::vector{event, computed, sums, example()});
    CHECK_THAT(read(R"({"rank":0,"name":"F","pipeline":0,"stage":0,"item":0,"generation":0,"step":0,"attempt":0,"start_s":0,"end_s":1,"bytes":1,"peer":2})"
                    "\n")
                   .error,
               Catch::Matchers::ContainsSubstring("expected '}'"));
}

TEST_CASE("json_lines: a line without peer and bytes is read as before")
{
    auto const record = read(R"({"rank":3,"name":"SEND_F","pipeline":1,"stage":2,"item":7,"generation":4,"step":12,"attempt":1,"start_s":0.1,"end_s":0.25})"
                             "\n");
    REQUIRE(record);
    REQUIRE(record.events.size() == 1);
    CHECK(record.events[0] == example());
    CHECK(record.events[0].peer == no_rank);
    CHECK(record.events[0].size == bytes{});
    CHECK(record.events[0].held == unknown_bytes);
}

TEST_CASE("json_lines: the longest event fits its line")
{
    constexpr auto index = std::numeric_limits<std::int32_t>::min();
    constexpr auto count = std::numeric_limits<std::int64_t>::min();
    constexpr auto number = -std::numeric_limits<double>::denorm_min() * 3.0;
    trace_event const longest{.rank = rank_id{index},
                              .activity = activity::first_instruction,
                              .pipeline = pipeline_id{index},
                              .stage = stage_id{index},
                              .item = index,
                              .generation = generation_id{index},
                              .step = step_id{count},
                              .attempt = attempt_id{index},
                              .peer = rank_id{index},
                              .start = {-1.2345678901234567e-301},
                              .end = {number},
                              .clock = {1.2345678901234567e-301},
                              .energy = {1.2345678901234567e+301},
                              .size = bytes{count},
                              .held = bytes{count}};
    CHECK(read(text_of({longest})).events == std::vector{longest});
}

TEST_CASE("json_lines: an event is one line with its units in the keys")
{
    CHECK(text_of({example()}) ==
          R"({"rank":3,"name":"SEND_F","pipeline":1,"stage":2,"item":7,"generation":4,"step":12,"attempt":1,"start_s":0.1,"end_s":0.25})"
          "\n");
}

TEST_CASE("json_lines: every activity round-trips bit for bit")
{
    std::mt19937_64 draw{9};
    std::vector<trace_event> events;
    for (int k = 0; k < 2000; ++k) {
        auto e = example();
        e.activity = static_cast<activity>(k % activity_count);
        e.rank = rank_id{static_cast<int>(draw() % 1000)};
        e.item = static_cast<std::int32_t>(draw() % 5) - 1;
        e.stage = stage_id{static_cast<int>(draw() % 5) - 1};
        e.step = step_id{static_cast<std::int64_t>(draw() >> 1)};
        auto const bits = draw();
        std::memcpy(&e.start.count, &bits, sizeof bits);
        if (!std::isfinite(e.start.count)) {
            e.start.count = std::numeric_limits<double>::denorm_min();
        }
        e.end.count = std::ldexp(static_cast<double>(draw()), -50);
        e.peer = rank_id{static_cast<int>(draw() % 5) - 1};
        e.size = bytes{static_cast<std::int64_t>(draw() % 3 == 0 ? 0 : draw() >> 1)};
        e.held = bytes{static_cast<std::int64_t>(draw() % 3 == 0 ? 0 : draw() >> 1) - 1};
        events.push_back(e);
    }
    auto const back = read(text_of(events));
    REQUIRE(back);
    CHECK_FALSE(back.torn);
    CHECK(back.events == events);
    CHECK(text_of(back.events) == text_of(events));
}

TEST_CASE("json_lines: a torn tail is reported after any kill")
{
    auto const text = text_of({example(), example()});
    auto const line = text.size() / 2;
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        auto const record = read(text.substr(0, cut));
        INFO(cut);
        REQUIRE(record);
        CHECK(record.events.size() == cut / line);
        CHECK(record.torn == (cut % line != 0));
    }
}

TEST_CASE("json_lines: bad lines name number, column, expectation")
{
    auto const good = text_of({example()});
    auto const answer = [&](std::string const& from, std::string const& to) {
        auto bad = good;
        bad.replace(bad.find(from), from.size(), to);
        auto const record = read(good + bad + good);
        CHECK(record.events.size() == 1);
        return record.error;
    };
    CHECK(answer(R"("rank":3)", R"("rank":x)") == "line 2, column 9: expected a number after '{\"rank\":'");
    CHECK(answer("SEND_F", "SEND_X") == "line 2, column 19: expected the name of an activity");
    CHECK(answer(R"("stage")", R"("stag")") == "line 2, column 39: expected ',\"stage\":'");
    CHECK(answer("}\n", "} \n") == "line 2, column 123: expected the end of the line");
    CHECK(answer("0.25}", "0.25") == "line 2, column 122: expected '}'");
    CHECK(answer(good, "\n") == "line 2, column 1: expected '{\"rank\":'");
}

TEST_CASE("json_lines: changed bytes are rejected or another event")
{
    auto const good = text_of({example()});
    for (std::size_t k = 0; k + 1 < good.size(); ++k) {
        for (char const c : {' ', 'x', '"', '7'}) {
            if (good[k] == c) {
                continue;
            }
            auto bad = good;
            bad[k] = c;
            auto const record = read(bad);
            INFO(bad);
            CHECK((!record || record.events != std::vector{example()}));
        }
    }
}
