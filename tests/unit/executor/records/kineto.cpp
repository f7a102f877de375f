// SPDX-License-Identifier: Apache-2.0
// The reader of Kineto traces: what it keeps, what it refuses and where, and every small damage of a small file.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/records/kineto/kineto_reader.hpp"
#include "executor/records/kineto/microseconds.hpp"
#include "rheo/analyze/device/analysis.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// The bytes of a text, in pieces of at most that many.
byte_source bytes_of(std::string_view text, std::size_t piece = 1 << 20)
{
    return [text, piece](char* to, std::size_t room) mutable {
        auto const count = std::min({room, text.size(), piece});
        std::memcpy(to, text.data(), count);
        text.remove_prefix(count);
        return count;
    };
}

std::int64_t ns(std::string_view text) { return nanoseconds_of(text).value_or(whole_nanoseconds{-1}).count; }

/// A trace with all that the reader takes, and some of what it passes over: nested values, escapes, words, other phases.
constexpr std::string_view small_trace = R"~({"schemaVersion":1,
"deviceProperties":[{"id":0,"sm":{"count":[132,null,true]},"name":"a\u00e9\ud83d\ude00\"\\"}],"rate":inf,
"distributedInfo":{"backend":"nccl","rank":3,"world_size":8},"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,"ts":0,"args":{"name":"python"}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#12","pid":1,"tid":1,"ts":1700000000000000.125,"dur":90.5,"args":{}},
{"ph":"X","cat":"gpu_user_annotation","name":"ProfilerStep#12","pid":0,"tid":7,"ts":1700000000000001,"dur":90,"args":{}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":1700000000000001.001,"dur":2,"args":{"correlation":5}},
{"ph":"X","cat":"cuda_runtime","name":"cudaEventRecord","pid":1,"tid":1,"ts":1700000000000004,"dur":1,"args":{"correlation":6}},
{"ph":"X","cat":"kernel","name":"void gemm<float>(int)","pid":0,"tid":7,"ts":1700000000000010.5,"dur":20,"args":{"correlation":5,"stream":7,"device":0}},
{"args":{"Collective name":"_allgather_base","Process Group Name":"2","Process Group Ranks":"[1, 3]","stream":"20","correlation":9},
"dur":1.5e1,"ts":1.7000000000000400e15,"tid":"stream 20","pid":0,"name":"ncclDevKernel_AllGather_RING_LL(x)","cat":"kernel","ph":"X"},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":"stream 7","ts":1700000000000060,"dur":5,"args":{}},
{"ph":"X","cat":"kernel","name":"no time","pid":0,"tid":7,"args":{"stream":7}},
{"ph":"s","id":5,"pid":1,"tid":1,"ts":1700000000000001,"cat":"ac2g","name":"ac2g"}],"traceName":"x.json"})~";

}  // namespace

TEST_CASE("kineto: microseconds become nanoseconds, digit by digit")
{
    CHECK(ns("0") == 0);
    CHECK(ns("1") == 1000);
    CHECK(ns("12.345") == 12'345);
    CHECK(ns("1700000000000000.125") == 1'700'000'000'000'000'125);
    CHECK(ns("0.0004") == 0);
    CHECK(ns("0.0005") == 1);
    CHECK(ns("0.00049999999999999999999999") == 0);
    CHECK(ns("-2.5") == -2500);
    CHECK(ns("1.5e1") == 15'000);
    CHECK(ns("15E-4") == 2);
    CHECK(ns("1e-999999999999") == 0);
    CHECK(ns("0e999999999999") == 0);
    CHECK(ns("1.7000000000000400e+15") == 1'700'000'000'000'040'000);
    CHECK(ns("123.45600000000000000000000000000001") == 123'456);
    CHECK_FALSE(nanoseconds_of("1e99"));
    CHECK_FALSE(nanoseconds_of("2305843009213693.952"));
    CHECK(nanoseconds_of("2305843009213693.949") == whole_nanoseconds{2'305'843'009'213'693'949});
    CHECK_FALSE(nanoseconds_of("99999999999999999999999999999"));
    static_assert(nanoseconds_of("1020.001")->count == 1'020'001);
}

TEST_CASE("kineto: a small trace is read as what it says")
{
    rank_trace expected;
    auto const at = [](std::int64_t nanoseconds) { return whole_nanoseconds{1'700'000'000'000'000'000 + nanoseconds}; };
    expected.rank = rank_id{3};
    expected.streams = {{0, 7}, {0, 20}};
    expected.names = {"void gemm<float>(int)", "ncclDevKernel_AllGather_RING_LL(x)", "Memcpy HtoD (Pageable -> Device)"};
    expected.collectives = {"AllGather 2 [1, 3]"};
    expected.steps = {{12, at(125), at(90'625)}};
    expected.launches = {{at(1'001), at(3'001), 5}};
    expected.events = {{.begin = at(10'500), .end = at(30'500), .correlation = 5, .launch = 0},
                       {.begin = at(40'000), .end = at(55'000), .correlation = 9, .name = 1, .collective = 0, .stream = 1, .work = device_work::communication},
                       {.begin = at(60'000), .end = at(65'000), .name = 2, .work = device_work::memory}};
    for (std::size_t const window : {1, 2, 7, 64, 1 << 18}) {
        auto const read = read_kineto(bytes_of(small_trace, window));
        CAPTURE(read.error());
        REQUIRE(read);
        CHECK(read->trace == expected);
        CHECK(read->rank == 3);
        CHECK(read->events == 10);
        CHECK(read->left_out == 1);
    }
}

TEST_CASE("kineto: old categories and a list of events are read, too")
{
    auto const read = read_kineto(bytes_of(R"~([{"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","ts":1,"dur":1,"args":{"correlation":1}},
        {"ph":"X","cat":"Kernel","name":"ncclKernel_AllReduce_RING_LL_Sum_float(x)","tid":"stream 9","ts":3,"dur":4,"args":{"correlation":1}},
        {"ph":"X","cat":"cpu_op","name":"aten::add","ts":3,"dur":4}, {"ph":"X","cat":"Memset","name":"Memset","tid":9,"ts":9,"dur":1}])~"));
    REQUIRE(read);
    CHECK_FALSE(read->rank);
    REQUIRE(read->trace.events.size() == 2);
    CHECK(read->trace.streams == std::vector<traced_stream>{{0, 9}});
    CHECK(read->trace.collectives == std::vector<std::string>{"AllReduce"});
    CHECK(read->trace.events[0].launch == 0);
    CHECK(read->trace.events[1].work == device_work::memory);
}

TEST_CASE("kineto: refusals say at which byte what is wrong")
{
    for (auto const& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
             {"", "byte 0: the file ends where a value was expected"},
             {"7", "byte 0: expected an object with traceEvents, or a list of events"},
             {"{}", "byte 2: there are no traceEvents; a trace in Chrome's form was expected"},
             {R"({"traceEvents":{}})", "byte 15: expected a list of events"},
             {R"({"traceEvents":[7]})", "byte 16: expected an event, which is an object"},
             {R"({"traceEvents":[{]})", "byte 17: ']' where a key in quotes was expected"},
             {R"({"traceEvents":[}]})", "byte 16: '}' where a value was expected"},
             {R"({"traceEvents":[],})", "byte 18: '}' where a key in quotes was expected"},
             {R"({"traceEvents":[]} x)", "byte 19: 'x' where the end of the file was expected"},
             {R"({"traceEvents":[{"ts":01}]})", "byte 23: '1' where a comma or the end of the object was expected"},
             {R"({"traceEvents":[{"ts":1.}]})", "byte 24: '}' where a digit was expected"},
             {R"({"traceEvents":[{"ts":1e30}]})", "byte 22: a time of 2^61 ns or more"},
             {R"({"traceEvents":[{"ts":nul}]})", "byte 22: 'nul' is no value"},
             {R"({"traceEvents":[{"name":"\x"}]})", "byte 25: '\\x' is no escape"},
             {R"({"traceEvents":[{"name":"\ud800"}]})", "byte 25: '\\ud800' is no escape"},
             {"{\"traceEvents\":[{\"name\":\"a\nb\"}]}", "byte 26: '\\x0a' where a text without control characters was expected"},
             {R"({"traceEvents":[{"name":"a)", "byte 26: the file ends where the rest of a text was expected"},
             {R"({"distributedInfo":{"rank":-1},"traceEvents":[]})", "byte 27: expected a rank from 0 on"},
             {R"({"a":)" + std::string(300, '['), "byte 260: nested deeper than 256"}}) {
        auto const read = read_kineto(bytes_of(text));
        CAPTURE(text);
        CHECK(read.error() == sentence);
    }
    auto const far = read_kineto(bytes_of(R"([{"ph":"X","cat":"kernel","name":"k","ts":0,"dur":1},{"ph":"X","cat":"kernel","name":"k","ts":2e12,"dur":1}])"));
    CHECK_THAT(far.error(), Catch::Matchers::ContainsSubstring("but a trace is shorter than 2^50 ns (13 days)"));
}

TEST_CASE("kineto: each prefix of a file is refused, with its byte")
{
    REQUIRE(read_kineto(bytes_of(small_trace)));
    for (std::size_t length = 0; length < small_trace.size(); ++length) {
        auto const read = read_kineto(bytes_of(small_trace.substr(0, length), 11));
        REQUIRE_FALSE(read);
        CHECK(read.error().starts_with("byte "));
    }
}

TEST_CASE("kineto: each flipped bit is answered or refused")
{
    std::string strict{small_trace};  // as JSON has it, for the other parser
    strict.replace(strict.find(":inf,"), 5, ":123,");
    int accepted = 0;
    for (std::size_t k = 0; k < strict.size(); ++k) {
        for (int bit = 0; bit < 8; ++bit) {
            auto text = strict;
            text[k] = static_cast<char>(text[k] ^ 1 << bit);
            auto const read = read_kineto(bytes_of(text, 100));
            if (read) {
                ++accepted;
                auto const job = analyze(array_view<rank_trace const>{&read->trace, 1});
                CHECK(job.total.busy + idle(job.total) == job.total.span);
            } else {
                CHECK(read.error().starts_with("byte "));
            }
            // A parser of JSON by others agrees about what is JSON, but for bytes that are no UTF-8, and zero, which it takes for the end.
            json_scanner scanner{bytes_of(text)};
            bool const is_json = scanner.skip(scanner.next()) && scanner.next() == json_token::end;
            if (static_cast<unsigned char>(text[k]) < 0x80 && text[k] != '\0' && is_json != nlohmann::json::accept(text)) {
                CAPTURE(k, bit, text.substr(k > 20 ? k - 20 : 0, 40), scanner.error());
                CHECK_FALSE(is_json);
                CHECK_FALSE(nlohmann::json::accept(text));
            }
        }
    }
    CHECK(accepted > 1000);
}

TEST_CASE("kineto: random damage is answered or refused")
{
    std::mt19937 draw{7};
    constexpr std::string_view pieces[] = {"{", "}", "[", "]", ",", "\"", "\\u", "1e999", "-", "null", "9223372036854775808", "\"ts\":", "\"args\":{"};
    for (int round = 0; round < 20'000; ++round) {
        std::string text{small_trace};
        for (auto changes = 1 + draw() % 3; changes > 0; --changes) {
            auto const at = draw() % text.size();
            switch (draw() % 3) {
            case 0: text.erase(at, draw() % 30); break;
            case 1: text.insert(at, pieces[draw() % std::size(pieces)]); break;
            default: text.insert(at, text.substr(draw() % text.size(), draw() % 200)); break;
            }
        }
        auto const read = read_kineto(bytes_of(text, 1 + draw() % 300));
        if (read) {
            std::vector<rank_trace> const both{read->trace, read->trace};
            CHECK(analyze(both).stragglers.stragglers.empty());
        } else {
            CHECK(read.error().starts_with("byte "));
        }
    }
}

TEST_CASE("kineto: texts and numbers are those of another parser")
{
    std::string text{small_trace};
    text.replace(text.find(":inf,"), 5, ":123,");
    std::vector<std::string> ours;
    json_scanner scanner{bytes_of(text, 13), 4};
    for (auto token = scanner.next(); token != json_token::end; token = scanner.next()) {
        REQUIRE(token != json_token::error);
        if (token == json_token::key || token == json_token::text) {
            ours.emplace_back(scanner.text());
        }
    }
    std::vector<std::string> theirs;
    auto const note = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
        if (event == nlohmann::json::parse_event_t::key || (event == nlohmann::json::parse_event_t::value && value.is_string())) {
            theirs.push_back(value.get<std::string>());
        }
        return true;
    };
    CHECK(nlohmann::json::parse(text, note).is_object());
    CHECK(ours == theirs);
}
