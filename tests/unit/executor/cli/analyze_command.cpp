// SPDX-License-Identifier: Apache-2.0
// `rheo analyze` of traces of PyTorch's profiler as its users start it: the published answers, text, CSV, packed files, each refusal.
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "support/public_vectors.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

namespace {

using json = nlohmann::json;

/// A trace of a rank: a kernel of 400 us launched in time, then an all-reduce that ends at 1000.
std::string trace_of(int rank, int begins_reduction)
{
    auto const begin = std::to_string(begins_reduction);
    auto const duration = std::to_string(1000 - begins_reduction);
    return R"~({"distributedInfo":{"rank":)~" + std::to_string(rank) + R"~(},"traceEvents":[
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":0,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"gemm","tid":7,"ts":10,"dur":400,"args":{"correlation":1,"stream":7}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)","tid":8,"args":{"stream":8},"ts":)~" +
           begin + R"~(,"dur":)~" + duration + "}]}";
}

std::string refused(temporary_folder const& folder, std::string const& arguments, int code = 4)
{
    auto const shown = run_rheo(folder, "analyze " + arguments);
    CHECK(shown.exit_code == code);
    CHECK(shown.out.empty());
    return shown.err;
}

std::size_t widest_line(std::string const& text)
{
    std::size_t widest = 0;
    for (auto const& line : test::split(text, '\n')) {
        widest = std::max(widest, line.size());
    }
    return widest;
}

std::string published_files()
{
    auto const folder = std::filesystem::path{std::getenv("RHEO_SHARED")} / "vectors" / "hta";
    std::string files;
    for (int rank : {2, 0, 3, 1}) {  // in any order
        files += " " + (folder / ("rank-" + std::to_string(rank) + ".json")).string();
    }
    return files;
}

}  // namespace

TEST_CASE("analyze_command: JSON has the published answers")
{
    auto const text = test::read_vectors("hta/expected.json");
    if (text.empty()) {
        return;
    }
    auto const expected = json::parse(text);
    temporary_folder const folder;
    auto const shown = run_rheo(folder, "analyze --json" + published_files());
    CAPTURE(shown.err);
    REQUIRE(shown.exit_code == 0);
    auto const found = json::parse(shown.out);
    auto const& ranks = expected.at("ranks");
    REQUIRE(found.at("ranks").size() == ranks.size());
    int compared = 0;
    auto const same = [&](json const& nanoseconds, json const& microseconds) {
        ++compared;
        CHECK(nanoseconds.get<std::int64_t>() == 1000 * microseconds.get<std::int64_t>());
    };
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        CAPTURE(r);
        auto const& mine = found["ranks"][r];
        CHECK(mine.at("rank") == r);
        for (auto const& [key, value] : ranks[r].items()) {
            CAPTURE(key);
            if (key != "streams") {
                same(mine.at(key.substr(0, key.size() - 2) + "ns"), value);
                continue;
            }
            REQUIRE(mine.at("streams").size() == value.size());
            for (auto const& stream : mine["streams"]) {
                auto const& gaps = value.at(std::to_string(stream.at("stream").get<int>()));
                same(stream.at("host_wait_ns"), gaps.at("host_wait"));
                same(stream.at("kernel_wait_ns"), gaps.at("kernel_wait"));
                same(stream.at("other_wait_ns"), gaps.at("other"));
                CHECK(gaps.size() == 3);
            }
        }
    }
    REQUIRE(found.at("last_collectives").size() == 1);
    auto const& last = found["last_collectives"][0];
    auto const& late = expected.at("last_collective");
    CHECK(last.at("name") == "AllReduce");
    CHECK(last.at("together") == true);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        same(last.at("late_ns").at(r), late.at("late_us").at(r));
    }
    same(last.at("limit_ns"), late.at("limit_us"));
    CHECK(last.at("stragglers") == late.at("stragglers"));
    CHECK(compared == 4 * 7 + 4 * 6 + 5);
    REQUIRE(found.at("stragglers").size() == 1);
    CHECK(found["stragglers"][0].at("rank") == 2);
    CHECK(found["ranks"][0].at("steps").at("slowest") == 1);
    CHECK(found["ranks"][0].at("steps").at("mean_ns") == 1'250'000);
}

TEST_CASE("analyze_command: one answer first, then a screen of tables")
{
    if (test::read_vectors("hta/expected.json").empty()) {
        return;
    }
    temporary_folder const folder;
    auto const shown = run_rheo(folder, "analyze" + published_files());
    CHECK(shown.exit_code == 0);
    CHECK(shown.out.starts_with("4 ranks wait most for exposed communication: 32.0 % of 7.52 ms; rank 2 is late, by up to 375 us\n\n"));
    CHECK(widest_line(shown.out) <= 100);
    CHECK(test::split(shown.out, '\n').size() <= 50);
}

TEST_CASE("analyze_command: two sets of traces are compared")
{
    temporary_folder const folder;
    for (int rank = 0; rank < 2; ++rank) {
        folder.write("old" + std::to_string(rank) + ".json", trace_of(rank, 500));
        folder.write("new" + std::to_string(rank) + ".json", trace_of(rank, rank == 1 ? 800 : 500));
    }
    auto const same = run_rheo(folder, "analyze old0.json old1.json --against old0.json old1.json");
    CAPTURE(same.err);
    CHECK(same.exit_code == 0);
    CHECK(same.out.starts_with("no difference to speak of: the longest span is 990 us and 990 us\n"));
    auto const later = run_rheo(folder, "analyze new0.json new1.json --against old0.json old1.json --csv rows.csv");
    CHECK(later.exit_code == 0);
    CHECK_THAT(later.out, Catch::Matchers::ContainsSubstring("before: "));
    auto const rows = test::split(folder.read("rows.csv"), '\n');
    REQUIRE(rows.size() == 13);
    CHECK(rows[0] == "rank,class,before_ns,after_ns");
    CHECK(rows[8] == "1,exposed communication,500000,200000");
    auto const json = nlohmann::json::parse(run_rheo(folder, "analyze new0.json new1.json --against old0.json old1.json --json").out);
    CHECK(json.at("ranks").size() == 12);
    CHECK(json.at("before").at("ranks").size() == 2);
}

TEST_CASE("analyze_command: many ranks still fit a screen")
{
    temporary_folder const folder;
    std::string files;
    for (int rank = 0; rank < 40; ++rank) {
        auto const name = "r" + std::to_string(rank) + ".json";
        folder.write(name, trace_of(rank, rank == 17 ? 800 : 500));
        files += " " + name;
    }
    auto const shown = run_rheo(folder, "analyze --csv all.csv" + files);
    CAPTURE(shown.out, shown.err);
    CHECK(shown.exit_code == 0);
    CHECK(shown.out.starts_with("40 ranks wait most for exposed communication: "));
    CHECK_THAT(shown.out, Catch::Matchers::ContainsSubstring("rank 17 is late, by up to 300 us"));
    CHECK(widest_line(shown.out) <= 100);
    CHECK(test::split(shown.out, '\n').size() <= 50);
    auto const rows = test::split(folder.read("all.csv"), '\n');
    REQUIRE(rows.size() == 41);
    CHECK(rows[0].starts_with("rank,span_ns,idle_ns,busy_ns,compute_ns,"));
    CHECK(rows[18].starts_with("17,990000,390000,600000,400000,200000,200000,0,200000,0,0,0,390000,0,"));
}

TEST_CASE("analyze_command: nothing stands out where all is computed")
{
    temporary_folder const folder;
    folder.write("a.json", R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":5,"dur":1000}]})");
    auto const shown = run_rheo(folder, "analyze a.json");
    CHECK(shown.exit_code == 0);
    CHECK(shown.out.starts_with("nothing stands out: computation fills 100.0 % of 1 ms\n"));
}

TEST_CASE("analyze_command: copies from pageable memory are named")
{
    temporary_folder const folder;
    auto const shown_with = [&](std::string const& kind, int duration) {
        auto const copy = R"~({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD ()~" + kind + R"~( -> Device)","tid":7,"ts":1500,"dur":)~";
        folder.write("a.json", R"~({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","tid":7,"ts":0,"dur":1000},)~" + copy + std::to_string(duration) + "}," +
                                   copy + "100}]}");
        return run_rheo(folder, "analyze a.json").out;
    };
    CHECK_THAT(shown_with("Pageable", 500),
               Catch::Matchers::ContainsSubstring("\npageable copies, 30.0 %\n  rank 0 spends 600 us on 2 copies from or to memory that is not page-locked\n"));
    CHECK(shown_with("Pinned", 500).find("pageable") == std::string::npos);
    CHECK(shown_with("Pageable", 3000).find("pageable") != std::string::npos);
    folder.write("a.json", R"~({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","tid":7,"ts":0,"dur":1000},)~"
                           R"~({"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Pageable)","tid":7,"ts":1000,"dur":40}]})~");
    CHECK(run_rheo(folder, "analyze a.json").out.find("pageable") == std::string::npos);
}

TEST_CASE("analyze_command: gzip is unpacked, torn files are refused")
{
    temporary_folder const folder;
    folder.write("a.json", trace_of(0, 500));
    auto const plain = run_rheo(folder, "analyze a.json");
    REQUIRE(std::system(("cd '" + folder.path.string() + "' && gzip a.json && mv a.json.gz a.json").c_str()) == 0);
    auto const packed = run_rheo(folder, "analyze a.json");
    if (packed.exit_code != 0) {
        WARN("rheo was built without zlib: it refuses packed traces: " + packed.err);
        return;
    }
    CHECK(packed.out == plain.out);
    auto const bytes = folder.read("a.json");
    folder.write("a.json", bytes.substr(0, bytes.size() / 2));
    CHECK_THAT(refused(folder, "a.json"), Catch::Matchers::ContainsSubstring("a.json: cannot be read: "));
}

TEST_CASE("analyze_command: refusals name the file and the reason")
{
    temporary_folder const folder;
    folder.write("a.json", trace_of(0, 500));
    folder.write("b.json", trace_of(0, 600));
    folder.write("none.json", R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::add","ts":5,"dur":1000}]})");
    folder.write("torn.json", trace_of(0, 500).substr(0, 100));
    CHECK_THAT(refused(folder, "a.json b.json"), Catch::Matchers::ContainsSubstring("a.json and b.json are both of rank 0; expected one file per rank"));
    CHECK_THAT(refused(folder, "none.json"), Catch::Matchers::ContainsSubstring("none.json: nothing ran on a device: none of its 1 events is a kernel"));
    CHECK_THAT(refused(folder, "torn.json"), Catch::Matchers::ContainsSubstring("torn.json: byte 100: the file ends where "));
    CHECK_THAT(refused(folder, "absent.json"), Catch::Matchers::ContainsSubstring("absent.json: cannot be read: No such file"));
    CHECK_THAT(refused(folder, "a.json --csv absent/all.csv", 5), Catch::Matchers::ContainsSubstring("'absent/all.csv' cannot be written"));
    CHECK_THAT(refused(folder, "", 2), Catch::Matchers::ContainsSubstring("traces is required"));
}
