// SPDX-License-Identifier: Apache-2.0
// The Chrome trace: its text for a few events, arrows and counters, and that any set of events is well-formed.
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "rheo/trace/chrome.hpp"
#include "support/catch.hpp"
#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#define RHEO_TEST_JSON
#endif

using namespace rheo;

namespace {

std::string text_of(std::vector<trace_event> const& events)
{
    std::ostringstream out;
    write_chrome_trace(out, events);
    return out.str();
}

}  // namespace

static_assert(stream_of(activity::forward) == trace_stream::compute && stream_of(activity::send_gradient) == trace_stream::send);
static_assert(stream_of(activity::receive_gradient) == trace_stream::receive && stream_of(activity::await_reduction) == trace_stream::reduction);
static_assert(stream_of(activity::decide) == trace_stream::step && stream_of(activity::shrink) == trace_stream::recovery);

TEST_CASE("chrome: two ranks on one time line")
{
    std::vector<trace_event> const events{
        {.rank = rank_id{0},
         .activity = activity::forward,
         .pipeline = pipeline_id{0},
         .stage = stage_id{1},
         .item = 3,
         .generation = {},
         .step = step_id{2},
         .attempt = {},
         .start = {0.5},
         .end = {0.75}},
        {.rank = rank_id{1}, .activity = activity::shrink, .generation = generation_id{1}, .step = step_id{2}, .attempt = {}, .start = {1.0}, .end = {1.0}},
    };
    CHECK('\n' + text_of(events) == R"(
{"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0"}},
{"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"compute"}},
{"ph":"X","name":"F 3","pid":0,"tid":0,"ts":500000,"dur":250000,"args":{"pipeline":0,"stage":1,"generation":0,"step":2,"attempt":0}},
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"rank 1"}},
{"ph":"M","name":"thread_name","pid":1,"tid":5,"args":{"name":"recovery"}},
{"ph":"X","name":"shrink","pid":1,"tid":5,"ts":1000000,"dur":0,"args":{"pipeline":-1,"stage":-1,"generation":1,"step":2,"attempt":0}}
]}
)");
    CHECK(text_of({}) == "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n\n]}\n");
}

TEST_CASE("chrome: an arrow from a send to the computation it feeds")
{
    trace_event sent{.rank = rank_id{0},
                     .activity = activity::send_activation,
                     .pipeline = pipeline_id{0},
                     .stage = stage_id{0},
                     .item = 3,
                     .generation = {},
                     .step = step_id{2},
                     .attempt = {},
                     .peer = rank_id{1},
                     .start = {0.5},
                     .end = {0.625},
                     .size = bytes{4096}};
    auto computed = sent;
    computed.rank = rank_id{1};
    computed.activity = activity::forward;
    computed.stage = stage_id{1};
    computed.peer = rank_id{0};
    computed.start = seconds{0.75};
    computed.end = seconds{1.0};
    computed.clock = megahertz{1410.0};
    computed.energy = joules{25.0};
    computed.size = {};
    computed.held = bytes{1 << 20};
    auto reduced = sent;
    reduced.activity = activity::await_reduction;
    reduced.peer = no_rank;
    reduced.size = bytes{512};
    CHECK('\n' + text_of({sent, computed, reduced}) == R"(
{"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0"}},
{"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"send"}},
{"ph":"X","name":"SEND_F 3","pid":0,"tid":1,"ts":500000,"dur":125000,"args":{"pipeline":0,"stage":0,"generation":0,"step":2,"attempt":0,"peer":1,"bytes":4096}},
{"ph":"s","cat":"message","name":"activation","id":"0x5695ba3a9d74379a","pid":0,"tid":1,"ts":500000},
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"rank 1"}},
{"ph":"M","name":"thread_name","pid":1,"tid":0,"args":{"name":"compute"}},
{"ph":"X","name":"F 3","pid":1,"tid":0,"ts":750000,"dur":250000,"args":{"pipeline":0,"stage":1,"generation":0,"step":2,"attempt":0,"clock_MHz":1410,"energy_J":25,"peer":0}},
{"ph":"f","bp":"e","cat":"message","name":"activation","id":"0x5695ba3a9d74379a","pid":1,"tid":0,"ts":750000},
{"ph":"C","name":"activations","pid":1,"ts":1000000,"args":{"bytes":1048576}},
{"ph":"C","name":"power of computations","pid":1,"ts":750000,"args":{"W":100}},
{"ph":"C","name":"power of computations","pid":1,"ts":1000000,"args":{"W":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":3,"args":{"name":"reduction"}},
{"ph":"X","name":"AWAIT 3","pid":0,"tid":3,"ts":500000,"dur":125000,"args":{"pipeline":0,"stage":0,"generation":0,"step":2,"attempt":0,"bytes":512}}
]}
)");
}

#ifdef RHEO_TEST_JSON
TEST_CASE("chrome: any events make well-formed JSON")
{
    std::mt19937 draw{4};
    std::vector<trace_event> events;
    for (int k = 0; k < 500; ++k) {
        trace_event e{};
        e.rank = rank_id{static_cast<int>(draw() % 9)};
        e.activity = static_cast<activity>(draw() % activity_count);
        e.item = static_cast<int>(draw() % 9) - 1;
        e.start = seconds{static_cast<double>(draw()) * 1e-7};
        e.end = e.start + seconds{static_cast<double>(draw()) * 1e-9};
        e.peer = rank_id{static_cast<int>(draw() % 4) - 1};
        e.energy = joules{static_cast<double>(draw() % 3)};
        e.size = bytes{static_cast<std::int64_t>(draw() % 3)};
        e.held = bytes{static_cast<std::int64_t>(draw() % 3) - 1};
        events.push_back(e);
    }
    auto const json = nlohmann::json::parse(text_of(events));
    std::set<std::pair<int, int>> named;
    std::size_t next = 0;
    for (auto const& e : json.at("traceEvents")) {
        if (e.at("ph") == "C") {  // of the event before it
            auto const& of = events.at(next - 1);
            CHECK(e.at("pid") == of.rank.value);
            CHECK((e.at("name") == "activations" ? e.at("args").at("bytes") == of.held.count && of.held != unknown_bytes : of.energy > joules{}));
            continue;
        }
        auto const thread = std::pair{e.at("pid").get<int>(), e.at("tid").get<int>()};
        if (e.at("ph") == "M") {
            CHECK((e.at("name") == "process_name" || named.insert(thread).second));
            continue;
        }
        if (e.at("ph") == "s" || e.at("ph") == "f") {
            auto const& of = events.at(next - 1);
            auto const end = message_end_of(of);
            REQUIRE(end);
            CHECK(end->is_sent == (e.at("ph") == "s"));
            CHECK(thread == std::pair{of.rank.value, static_cast<int>(stream_of(of.activity))});
            CHECK(e.at("ts").get<double>() == in_microseconds(of.start));
            continue;
        }
        REQUIRE(e.at("ph") == "X");
        auto const& event = events.at(next++);
        CHECK(named.count(thread) == 1);
        CHECK(e.at("name") == label_of(event));
        CHECK(thread.first == event.rank.value);
        CHECK(e.at("ts").get<double>() == in_microseconds(event.start));
        CHECK(e.at("dur").get<double>() == in_microseconds(event.end - event.start));
    }
    CHECK(next == events.size());
}
#endif
