// SPDX-License-Identifier: Apache-2.0
// Described clusters as files: what is written reads the same, and every mistake is refused with file, line and a sentence.
#include "executor/config/cluster/cluster_file.hpp"

#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/source_file.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

std::string good() { return source_file("tests/unit/fuzz/corpus/cluster/whole"); }

/// The error for a text; its named files have this content.
std::string said_of_text(std::string const& text, std::string const& named = "")
{
    try {
        (void)parse_cluster(text, "c.toml", [&](std::string const&) { return named; });
    } catch (exit_error const& error) {
        CHECK(error.code == exit_code::usage);
        return error.what();
    }
    return "nothing";
}

/// The error for the good file with one text in it replaced.
std::string said_of(std::string const& text, std::string const& instead)
{
    auto changed = good();
    auto const where = changed.find(text);
    REQUIRE(where != std::string::npos);
    return said_of_text(changed.replace(where, text.size(), instead));
}

constexpr auto two_devices = R"(schema = 1
[device]
compute_tflops = 1
memory_rate_gb_per_s = 2
memory_gib = 4
[[level]]
name = "node"
members = 2
topology = "ring"
)";

std::string measured(std::string const& rows) { return said_of_text(std::string{two_devices} + "measured = \"m.csv\"\n", rows); }
std::string recovered(std::string const& report)
{
    return said_of_text(std::string{two_devices} + "latency_us = 1\nrate_gb_per_s = 1\n[recovery]\nreport = \"r.json\"\n", report);
}

}  // namespace

TEST_CASE("cluster_file: a whole file gives its cluster")
{
    auto const cluster = parse_cluster(good(), "c.toml", {});
    CHECK(cluster.device == cluster_device{{{989.4e12}, {3350e9}, {static_cast<std::int64_t>(79.6 * 1073741824.0)}}, {650.0}, {120.5}});
    REQUIRE(cluster.levels.size() == 2);
    CHECK(cluster.levels[0] == cluster_level{"node", {8, network_topology::switched, {microseconds(1.1), {450e9}}}});
    CHECK(cluster.levels[1] == cluster_level{"rack", {16, network_topology::ring, {microseconds(5.3), {50.0 * 1073741824.0}}, 4}});
    REQUIRE(cluster.different.size() == 2);
    CHECK(device_of(cluster, rank_id{23}) == cluster.device);
    CHECK(device_of(cluster, rank_id{24}).description.compute == flop_rate{800e12});
    CHECK(device_of(cluster, rank_id{31}).description.traffic == cluster.device.description.traffic);
    CHECK(device_of(cluster, rank_id{32}) == cluster.device);
    CHECK(device_of(cluster, rank_id{48}).description.compute == cluster.device.description.compute);
    CHECK(cluster.different[1].links == std::vector{std::optional<modelled_link>{}, std::optional{modelled_link{microseconds(5.3), {25e9}}}});
    CHECK(has_different_links(cluster));
    CHECK(cluster.storage == cluster_storage{{100e9}, {50e9}, bytes_per_second{4e9}, bytes_per_second{2e9}});
    REQUIRE(cluster.recovery);
    CHECK(total_time(*cluster.recovery) == seconds{0.31 + 2.5});
    CHECK(cluster_fault(cluster).empty());
}

TEST_CASE("cluster_file: what was written is what is read")
{
    auto const cluster = parse_cluster(good(), "c.toml", {});
    CHECK(parse_cluster(to_toml(cluster), "again", {}) == cluster);
    auto small = parse_cluster(std::string{two_devices} + "latency_us = 0\nrate_gb_per_s = 3.3333333333333335\n", "c.toml", {});
    CHECK_FALSE(small.storage);
    CHECK_FALSE(small.recovery);
    CHECK(parse_cluster(to_toml(small), "again", {}) == small);
}

TEST_CASE("cluster_file: what was measured is written to the last bit")
{
    std::mt19937 draw{9};
    for (int round = 0; round < 300; ++round) {
        auto const rows = fmt::format("bytes,time_us\n{},{}\n{},{}\n", 1 + draw() % 5000, 1.0 + static_cast<double>(draw() % 1000) / 7.0,
                                      10'000'000 + draw() % 1000, 200.0 + static_cast<double>(draw() % 1000) / 3.0);
        CAPTURE(rows);
        auto const cluster = parse_cluster(std::string{two_devices} + "measured = \"m.csv\"\n", "c.toml", [&](std::string const&) { return rows; });
        CHECK(parse_cluster(to_toml(cluster), "again", {}) == cluster);
        auto const binary =
            fmt::format("{}latency_us = 0.{}\nrate_gib_per_s = {}\n", two_devices, draw() % 100000, 0.001 * static_cast<double>(1 + draw() % 100000));
        CAPTURE(binary);
        auto const other = parse_cluster(binary, "c.toml", {});
        CHECK(parse_cluster(to_toml(other), "again", {}) == other);
    }
}

TEST_CASE("cluster_file: lines of measured messages are kept")
{
    // a protocol for small messages, and one that is slow to begin
    auto const rows = "bytes,time_us\n8,5.0\n1024,6.0\n4096,9.0\n16384,21.0\n65536,50.0\n262144,80.0\n1048576,200.0\n4194304,680.0\n16777216,2600.0\n";
    auto const cluster = parse_cluster(std::string{two_devices} + "measured = \"m.csv\"\n", "c.toml", [&](std::string const&) { return rows; });
    auto const& lines = cluster.levels[0].lines;
    REQUIRE(lines.size() >= 2);
    CHECK(in_microseconds(fitted_time(array_view<fitted_line const>{lines}, bytes{8})) == Approx(5.0).epsilon(0.1));
    CHECK(in_microseconds(fitted_time(array_view<fitted_line const>{lines}, bytes{16'777'216})) == Approx(2600.0).epsilon(0.1));
    CHECK(network_of<fitted_path>(cluster)[0].link.lines == lines);
    auto const given =
        parse_cluster(std::string{two_devices} +
                          "latency_us = 1\nrate_gb_per_s = 1\nlines = [{ latency_us = 5.0, us_per_mib = 1024.0 }, { latency_us = 30, us_per_mib = 180 }]\n",
                      "c.toml", {});
    CHECK(fitted_time(array_view<fitted_line const>{given.levels[0].lines}, bytes{1024}).count == Approx(6e-6));
    CHECK(parse_cluster(to_toml(given), "again", {}) == given);
    auto const refused = [](std::string const& key) { return said_of_text(std::string{two_devices} + "latency_us = 1\nrate_gb_per_s = 1\n" + key); };
    CHECK(refused("lines = 3\n") == "c.toml:12: level 1: lines must be a list of tables, [[lines]], not a whole number");
    CHECK(refused("lines = [{ latency_us = 1 }]\n") == "c.toml:12: level 1: lines.us_per_mib is missing; expected a number of at least 0 and at most 1e+15");
    CHECK(refused("lines = [{ latency_us = 1, us_per_mb = 2 }]\n") ==
          "c.toml:12: unknown key 'level 1: lines.us_per_mb'; the nearest known one is level 1: lines.us_per_mib");
}

TEST_CASE("cluster_file: what NCCL finds is described")
{
    auto const cluster = parse_cluster(good(), "c.toml", {});
    REQUIRE(cluster.nccl);
    CHECK(*cluster.nccl == nccl_machine{.ranks = 0,
                                        .nodes = 0,
                                        .channels = 16,
                                        .channel_bandwidth = 22.5,
                                        .gpu = nccl_gpu::hopper,
                                        .cpu = nccl_cpu::intel,
                                        .has_tree_pattern = false,
                                        .nvls_bandwidth = 360.0});
    CHECK(said_of("gpu = \"hopper\"", "gpu = \"kepler\"") == "c.toml:47: nccl.gpu must be one of volta, ampere, hopper, not 'kepler'");
    CHECK(said_of("channels = 16", "channels = 0") == "c.toml:49: nccl.channels must be a whole number from 1 to 1024, not 0");
    CHECK(said_of("nvlink = true", "nvlink = 1") == "c.toml:51: nccl.nvlink must be true or false, not a whole number");
    CHECK(said_of("nvls_gb", "nvl_gb") == "c.toml:53: unknown key 'nccl.nvl_gb_per_s'; the nearest known one is nccl.nvls_gb_per_s");
}

TEST_CASE("cluster_file: the page's example is a cluster")
{
    auto const page = source_file("docs/reference/cluster.md");
    auto const begin = page.find("```toml\n") + 8;
    auto const cluster = parse_cluster(std::string_view{page}.substr(begin, page.find("```", begin) - begin), "cluster.md", {});
    CHECK(devices_of(cluster) == 128);
    CHECK(nodes_of(cluster) == 16);
    for (auto const key :
         {"compute_tflops", "waiting_w", "links_per_member", "rate_gib_per_s", "measured", "lines", "node_write_gb_per_s", "merge_s", "channel_gb_per_s"}) {
        CAPTURE(key);
        CHECK(page.find("`" + std::string{key}) != std::string::npos);
    }
}

TEST_CASE("cluster_file: a link is fitted to measured messages")
{
    temporary_folder const folder;
    folder.write("m.csv", "# here\nbytes,time_us\n1000,3.0\n2000,4.0\n1000000,1002.0\n");
    auto const path = folder.write("c.toml", std::string{two_devices} + "measured = \"m.csv\"\n");
    auto const link = read_cluster_file(path).levels.front().network.link;
    CHECK(in_microseconds(link.latency) == Approx(2.0));
    CHECK(link.bandwidth.count == Approx(1e9));
    CHECK(measured("1,2\n") == "m.csv:1: '1,2' are no columns of measured messages; expected bytes,time_us");
    CHECK(measured("bytes,time_us\n1,2\n1,x\n") == "m.csv:3: '1,x' is no measured message; expected bytes from 0 on and a time in us above 0");
    CHECK(measured("bytes,time_us\n1,-2\n") == "m.csv:2: '1,-2' is no measured message; expected bytes from 0 on and a time in us above 0");
    CHECK(measured("bytes,time_us\n2,2\n1,2\n") == "m.csv:3: 1 bytes come after 2; expected rows that ascend in bytes");
    CHECK(measured("") == "m.csv:1: a table of measured messages has at least two rows, after the columns bytes,time_us");
    CHECK(measured("bytes,time_us\n1,2\n5,1\n") ==
          "c.toml:10: m.csv: the measured times are not those of a link: expected at least two rows whose times grow with the bytes, and less than in "
          "proportion");
    CHECK(measured("bytes,time_us\n1,1e-14\n1000000000,2e-14\n") ==
          "c.toml:10: m.csv: gives a link of 1e-14 us and 1e+20 GB/s; expected 1e-9 to 1e15 us and 1e-9 to 1e9 GB/s");
    std::string many = "bytes,time_us\n";
    for (int k = 0; k < 5000; ++k) {
        many += std::to_string(k) + ",1\n";
    }
    CHECK(measured(many) == "m.csv:4098: there are more than 4096 measured messages; expected fewer, spread over the sizes");
}

TEST_CASE("cluster_file: a recovery is the mean of those of a run")
{
    temporary_folder const folder;
    auto const phases = [](std::string const& detect, std::string const& copy) {
        return "\"detect_s\": " + detect + R"(, "revoke_s": 0, "decide_s": 0, "shrink_s": 0, "link_s": 0, "exchange_s": 0, "plan_s": 0, "copy_s": )" + copy +
               R"(, "merge_s": null)";
    };
    folder.write("r.json", R"({"recoveries": [{"lost": [1], )" + phases("1.0", "3") + R"(}, {"lost": []}, {"lost": [2], )" + phases("2.0", "4") + "}]}");
    auto const text = std::string{two_devices} + "latency_us = 1\nrate_gb_per_s = 1\n[recovery]\nreport = \"r.json\"\n";
    CHECK(read_cluster_file(folder.write("c.toml", text)).recovery == recovery_times{{1.5}, {0.0}, {0.0}, {0.0}, {0.0}, {0.0}, {0.0}, {3.5}, {0.0}});
    CHECK(recovered(R"({"recoveries": [{"lost": []}]})") == "c.toml:13: r.json: has no recovery from a loss; expected the report of a run that lost a rank");
    CHECK(recovered(R"({"recoveries": [{"lost": [1], "detect_s": -1}]})") == "c.toml:13: r.json: has a 'detect_s' that is no time from 0 to 1e9 s");
    CHECK(recovered("{}") == "c.toml:13: r.json: has no 'recoveries'");
    CHECK_THAT(said_of("detect_s = 0.31", "report = \"r.json\""),
               Catch::Matchers::EndsWith(": recovery.report gives all phases; expected no other key beside it"));
}

TEST_CASE("cluster_file: keys that cannot be are refused")
{
    CHECK(said_of("schema = 1", "schema = 2") == "c.toml:1: schema must be the number 1, the only version of the form of a cluster");
    CHECK(said_of("schema = 1\n", "") == "c.toml:1: schema is missing; expected schema = 1, the version of the form of a cluster");
    CHECK(said_of("schema = 1", "scheme = 1") == "c.toml:1: unknown key 'scheme'; the nearest known one is schema");
    CHECK(said_of("memory_gib", "memory_mib") == "c.toml:7: unknown key 'device.memory_mib'; the nearest known one is device.memory_gib");
    CHECK(said_of("members = 8", "member = 8") == "c.toml:13: unknown key 'level 1: member'; the nearest known one is level 1: members");
    CHECK_THAT(said_of("schema = 1", "schema = "), Catch::Matchers::StartsWith("c.toml:1: no valid TOML: "));
    CHECK(said_of("compute_tflops = 989.4", "compute_tflops = 0") == "c.toml:5: device.compute_tflops must be a number above 0 and at most 1e+09, not 0");
    CHECK(said_of("compute_tflops = 989.4", "compute_tflops = inf") == "c.toml:5: device.compute_tflops must be a number above 0 and at most 1e+09, not inf");
    CHECK(said_of("compute_tflops = 989.4", "compute_tflops = nan") == "c.toml:5: device.compute_tflops must be a number above 0 and at most 1e+09, not nan");
    CHECK(said_of("compute_tflops = 989.4", "compute_tflops = \"1\"") ==
          "c.toml:5: device.compute_tflops must be a number above 0 and at most 1e+09, not a text");
    CHECK(said_of("compute_tflops = 989.4\n", "") == "c.toml:4: device.compute_tflops is missing; expected a number above 0 and at most 1e+09");
    CHECK(said_of("waiting_w = 120.5", "waiting_w = -1") == "c.toml:9: device.waiting_w must be a number of at least 0 and at most 1e+09, not -1");
    CHECK(said_of("members = 8", "members = 0") == "c.toml:13: level 1: members must be a whole number from 1 to 1048576, not 0");
    CHECK(said_of("members = 8", "members = 8.0") == "c.toml:13: level 1: members must be a whole number from 1 to 1048576, not a number with a fraction");
    CHECK(said_of("members = 8\n", "") == "c.toml:11: level 1: members is missing; expected a whole number from 1 to 1048576");
    CHECK(said_of("topology = \"switch\"", "topology = \"torus\"") == "c.toml:14: level 1: topology must be one of switch, ring, full, not 'torus'");
    CHECK(said_of("name = \"node\"", "name = 1") == "c.toml:12: level 1: name must be a text, not a whole number");
    CHECK(said_of("name = \"rack\"", "name = \"node\"") == "c.toml:19: level 2: name 'node' is that of another level; expected a name for each");
    CHECK(said_of("rate_gb_per_s = 450.0\n", "") ==
          "c.toml:11: level 1: rate_gb_per_s is missing; expected the rate of a link, or measured = FILE to fit one from");
    CHECK(said_of("rate_gib_per_s = 50.0", "rate_gib_per_s = 50.0\nrate_gb_per_s = 50.0") ==
          "c.toml:23: level 2: rate_gb_per_s and rate_gib_per_s say the same; expected one of them");
    CHECK(said_of("latency_us = 1.1", "measured = \"m.csv\"") ==
          "c.toml:15: level 1: measured gives latency, rate and lines; expected none of latency_us, rate_gb_per_s, rate_gib_per_s and lines beside it");
    CHECK(said_of("read_gb_per_s = 100.0", "read_gb_per_s = 0.0") == "c.toml:38: storage.read_gb_per_s must be a number above 0 and at most 1e+09, not 0");
    CHECK(said_of_text("schema = 1\n") == "c.toml:1: device is missing; expected a table [device]");
    CHECK(said_of_text("schema = 1\ndevice = 3\n") == "c.toml:2: device must be a table, [device], not a whole number");
}

TEST_CASE("cluster_file: levels and nodes that cannot be are refused")
{
    std::string const text = two_devices;
    CHECK(said_of_text(text.substr(0, text.find("[[level]]"))) == "c.toml:1: level is missing; expected at least one [[level]], from the inside out");
    CHECK(said_of_text("schema = 1\nlevel = 1\n" + text.substr(text.find("[device]"), text.find("[[level]]") - text.find("[device]"))) ==
          "c.toml:2: level must be a list of tables, [[level]], not a whole number");
    CHECK(said_of("devices = 128", "devices = 64") == "c.toml:2: devices = 64, but the levels multiply up to 128; expected the product of their members");
    CHECK(said_of("members = 16", "members = 1000000") == "c.toml:18: the levels of the network multiply up to more than 1048576 ranks");
    CHECK(said_of("nodes = 3", "nodes = 16") == "c.toml:27: different 1: nodes must be a node from 0 to 15, or [FIRST, LAST], not 16");
    CHECK(said_of("nodes = 3", "nodes = [3]") == "c.toml:27: different 1: nodes must be a node from 0 to 15, or [FIRST, LAST], not a list of 1");
    CHECK(said_of("nodes = 3", "nodes = [3, 2]") == "c.toml:27: different 1: nodes must be a node from 0 to 15, or [FIRST, LAST], not from 3 to 2");
    CHECK(said_of("nodes = 3", "nodes = \"3\"") == "c.toml:27: different 1: nodes must be a node from 0 to 15, or [FIRST, LAST], not a text");
    CHECK(said_of("nodes = 3\n", "") == "c.toml:26: different 1: nodes is missing; expected a node from 0 to 15, or [FIRST, LAST]");
    CHECK(said_of("nodes = [5, 6]", "nodes = [3, 6]") ==
          "c.toml:30: different 2: nodes begin at 3, but those before end at 3; expected ranges that ascend and share no node");
    CHECK(said_of("name = \"rack\"\nrate_gb", "name = \"rock\"\nrate_gb") ==
          "c.toml:34: different 2: level.name is 'rock', which no level has; the nearest is 'rack'");
    CHECK(said_of("\n[storage]", "[[different.level]]\nname = \"rack\"\n[storage]") ==
          "c.toml:37: different 2: level.name is 'rack' a second time; expected each level once");
}

TEST_CASE("cluster_file: a file that cannot be read is refused")
{
    temporary_folder const folder;
    auto const refused = [](std::string const& path) {
        try {
            (void)read_cluster_file(path);
        } catch (exit_error const& error) {
            return std::string{error.what()};
        }
        return std::string{"nothing"};
    };
    auto const missing = (folder.path / "none.toml").string();
    CHECK(refused(missing) == missing + ": this file cannot be read");
    CHECK(refused(folder.path.string()) == folder.path.string() + ": this file cannot be read");
    CHECK(refused(folder.write("c.toml", std::string{two_devices} + "measured = \"m.csv\"\n")) ==
          (folder.path / "m.csv").string() + ": this file cannot be read");
}
