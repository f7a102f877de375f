// SPDX-License-Identifier: Apache-2.0
// `rheo trace import` as its users start it: published ends, text, JSON, pictures, groups as PyTorch lists them, each kind of refusal.
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "rheo/trace/chakra/writer.hpp"
#include "support/public_vectors.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

std::string cluster_of(int members, std::string const& topology, std::string const& rest = "latency_us = 1.0\nrate_gb_per_s = 1.0\n")
{
    return "schema = 1\n[device]\ncompute_tflops = 1.0\nmemory_rate_gb_per_s = 50.0\nmemory_gib = 1.0\n[[level]]\nname = \"node\"\nmembers = " +
           std::to_string(members) + "\ntopology = \"" + topology + "\"\n" + rest;
}

std::string file_of(std::vector<chakra_node> const& nodes)
{
    std::string file;
    chakra_writer writer{[&](std::string_view piece) { file += piece; }, chakra_metadata{"1.0.0"}};
    for (auto const& node : nodes) {
        writer.add(node);
    }
    writer.finish();
    return file;
}

/// Ranks 0 to 2 compute, rank 3 later than they; then pairs reduce, in a group of the name.
void write_pairs(temporary_folder const& folder, std::string_view group, std::string_view process_groups = {})
{
    std::vector<std::uint64_t> const first{1, 77};
    for (int rank = 0; rank < 4; ++rank) {
        std::vector<chakra_attribute> const reduces{make_attribute("comm_type", std::int64_t{0}), make_attribute("comm_size", std::int64_t{8000}),
                                                    make_attribute("pg_name", group)};
        std::vector<chakra_node> nodes{{.id = 1, .name = "matmul", .type = chakra_node_type::comp, .duration_micros = rank == 3 ? 30U : 10U},
                                       {.id = 2, .type = chakra_node_type::comm_coll, .ctrl_deps = first, .attributes = reduces}};
        if (!process_groups.empty()) {
            nodes.insert(nodes.begin(), {.id = 0, .name = "## process_group:init ##", .type = chakra_node_type::metadata, .inputs = chakra_io{process_groups}});
        }
        folder.write("job." + std::to_string(rank) + ".et", file_of(nodes));
    }
}

std::string refused(temporary_folder const& folder, std::string const& arguments, int code = 2)
{
    auto const shown = run_rheo(folder, "trace " + arguments);
    CHECK(shown.exit_code == code);
    CHECK(shown.out.empty());
    return shown.err;
}

}  // namespace

TEST_CASE("trace_import_command: published pipelines end as published")
{
    auto const text = test::read_vectors("chakra/two_pipelines/expected.csv");
    if (text.empty()) {
        return;
    }
    auto const prefix = (std::filesystem::path{std::getenv("RHEO_SHARED")} / "vectors" / "chakra" / "two_pipelines" / "job").string();
    temporary_folder const folder;
    test::vector_table const table{text};
    for (auto const& line : table.lines) {
        CAPTURE(line);
        auto const topology = table.cell(line, "topology");
        folder.write("c.toml", cluster_of(4,
                                          topology == "Switch" ? "switch"
                                          : topology == "Ring" ? "ring"
                                                               : "full",
                                          "latency_us = " + std::to_string(table.number(line, "latency_ns") / 1000.0) +
                                              "\nrate_gib_per_s = " + table.cell(line, "GB_per_s") + "\n"));
        auto const shown = run_rheo(folder, "trace import '" + prefix + "' --cluster c.toml --network integer-ns --json" +
                                                (table.cell(line, "network") == "contended" ? "" : " --unshared"));
        CAPTURE(shown.err);
        REQUIRE(shown.exit_code == 0);
        std::string ends;
        auto const json = nlohmann::json::parse(shown.out);
        for (auto const& rank : json.at("ranks")) {
            ends += (ends.empty() ? "" : "|") + rank.at("end_ns").dump();
        }
        CHECK(ends == table.cell(line, "finish_ns_by_rank"));
    }
}

TEST_CASE("trace_import_command: an answer, and ranks by class")
{
    temporary_folder const folder;
    folder.write("c.toml", cluster_of(4, "full"));
    folder.write("job.groups.json", R"({"1": [0, 1], "2": [2, 3]})");
    write_pairs(folder, "1");
    for (int rank : {2, 3}) {
        std::vector<chakra_attribute> const reduces{make_attribute("comm_type", std::int64_t{0}), make_attribute("comm_size", std::int64_t{8000}),
                                                    make_attribute("pg_name", "2")};
        std::vector<std::uint64_t> const first{1};
        folder.write("job." + std::to_string(rank) + ".et",
                     file_of({{.id = 1, .type = chakra_node_type::comp, .duration_micros = rank == 3 ? 30U : 10U},
                              {.id = 2, .type = chakra_node_type::comm_coll, .ctrl_deps = first, .attributes = reduces}}));
    }
    auto const shown = run_rheo(folder, "trace import job --cluster c.toml --network free");
    CAPTURE(shown.err);
    CHECK(shown.exit_code == 0);
    CHECK(shown.out == R"(4 ranks end after 40.24 us; rank 3 ends last

2 control dependencies are on nodes that are not in the files: left out

ranks: times in ms, and shares of the whole in %
  rank   ends   busy     %  exposed communication     %   idle     %
  0-1   0.020  0.010  24.9                  0.010  25.4  0.020  49.7
  2     0.035  0.010  24.9                  0.005  13.0  0.025  62.1
  3     0.040  0.030  74.6                  0.010  25.4  0.000   0.0
)");
    auto const json = nlohmann::json::parse(run_rheo(folder, "trace import job --cluster c.toml --network free --json").out);
    CHECK(json.at("end_s").get<double>() == Approx(40.24e-6));
    CHECK(json.at("last_rank") == 3);
    CHECK(json.at("absent_control_dependencies") == 2);
    CHECK(json.at("played_ranks") == 4);
    CHECK(json.at("ranks").at(3).at("busy_s").get<double>() == Approx(30e-6));
    auto const slower = nlohmann::json::parse(run_rheo(folder, "trace import job --cluster c.toml --chunks 4 --form tree --json").out);
    CHECK(slower.at("end_s").get<double>() > json.at("end_s").get<double>());
}

TEST_CASE("trace_import_command: equal ranks are a class")
{
    temporary_folder const folder;
    folder.write("c.toml", cluster_of(8, "ring"));
    for (int rank = 0; rank < 8; ++rank) {
        std::vector<chakra_attribute> const reduces{make_attribute("comm_type", std::int64_t{0}), make_attribute("comm_size", std::int64_t{8000})};
        folder.write("job." + std::to_string(rank) + ".et", file_of({{.id = 1, .type = chakra_node_type::comm_coll, .attributes = reduces}}));
    }
    auto const shown = run_rheo(folder, "trace import job --cluster c.toml");
    CAPTURE(shown.err);
    CHECK(shown.out == R"(8 ranks end after 28.42 us; rank 0 ends last

ranks whose traces are equal up to their numbers are played once: 1 of 8

ranks: times in ms, and shares of the whole in %
  rank   ends   busy    %  exposed communication      %   idle    %
  0-7   0.028  0.000  0.0                  0.028  100.0  0.000  0.0
)");
}

TEST_CASE("trace_import_command: pictures and pages are written")
{
    temporary_folder const folder;
    folder.write("c.toml", cluster_of(4, "ring"));
    folder.write("job.groups.json", R"({"1": [0, 1, 2, 3]})");
    write_pairs(folder, "1");
    auto const shown = run_rheo(folder, "trace import job --cluster c.toml --chrome c.json --page p.html");
    CAPTURE(shown.err);
    REQUIRE(shown.exit_code == 0);
    int whole = 0;
    auto const picture = nlohmann::json::parse(folder.read("c.json"));
    for (auto const& event : picture.at("traceEvents")) {
        whole += event.at("ph") == "X" ? 1 : 0;
    }
    CHECK(whole == 8);
    CHECK(folder.read("p.html").find("rank 3 ends last") == folder.read("p.html").npos);  // all reduce together: the first one
    CHECK(folder.read("p.html").find("4 ranks end after") != std::string::npos);
}

TEST_CASE("trace_import_command: groups are those that PyTorch lists")
{
    temporary_folder const folder;
    folder.write("c.toml", cluster_of(4, "full"));
    auto const end_of = [&] {
        auto const shown = run_rheo(folder, "trace import job --cluster c.toml --json");
        INFO(shown.err);
        REQUIRE(shown.exit_code == 0);
        return nlohmann::json::parse(shown.out).at("ranks").at(0).at("end_s").get<double>();
    };
    write_pairs(folder, "mp", R"(['[{"pg_name": "0", "ranks": []}, {"pg_name": "mp", "ranks": [0, 1, 2, 3], "group_size": 4}]'])");
    CHECK(end_of() > 30e-6);  // with rank 3
    write_pairs(folder, "0");
    CHECK(end_of() > 30e-6);  // no group named: all ranks
    write_pairs(folder, "3", R"([{"pg_name": 3, "ranks": [0, 1]}])");
    CHECK_THAT(refused(folder, "import job --cluster c.toml", 4),
               Catch::Matchers::ContainsSubstring("job.2.et: node 2 (''): pg_name is '3', a group that rank 2 is not in"));
    for (auto const& [values, sentence] : {std::pair{"nothing", "has no list like"}, std::pair{"[{}]", "has no 'pg_name'"},
                                           std::pair{R"([{"pg_name": "1", "ranks": [4]}])", "a rank of a process group"},
                                           std::pair{R"([{"pg_name": "1", "ranks": [1, 1]}])", "names a rank twice"}}) {
        write_pairs(folder, "1", values);
        auto const message = refused(folder, "import job --cluster c.toml", 4);
        CHECK_THAT(message, Catch::Matchers::ContainsSubstring("job.0.et: node 0 ('## process_group:init ##'): its process groups: "));
        CHECK_THAT(message, Catch::Matchers::ContainsSubstring(sentence));
    }
}

TEST_CASE("trace_import_command: nodes have links of their own")
{
    temporary_folder const folder;
    write_pairs(folder, "0");
    auto const nodes = cluster_of(2, "full") + "[[level]]\nname = \"rack\"\nmembers = 2\ntopology = \"full\"\nlatency_us = 1.0\nrate_gb_per_s = 1.0\n";
    folder.write("equal.toml", nodes);
    folder.write("other.toml", nodes + "[[different]]\nnodes = 1\n[[different.level]]\nname = \"rack\"\nrate_gb_per_s = 0.1\n");
    for (std::string const network : {"contended", "free", "integer-ns"}) {
        auto const end_on = [&](std::string const& cluster) {
            auto const shown = run_rheo(folder, "trace import job --json --network " + network + " --cluster " + cluster);
            REQUIRE(shown.exit_code == 0);
            return nlohmann::json::parse(shown.out).at(network == "integer-ns" ? "end_ns" : "end_s").get<double>();
        };
        CHECK(end_on("other.toml") > end_on("equal.toml"));
    }
}

TEST_CASE("trace_import_command: what cannot be is refused")
{
    temporary_folder const folder;
    folder.write("c.toml", cluster_of(2, "full"));
    folder.write("zero.toml", cluster_of(4, "full", "latency_us = 1.0\nrate_gb_per_s = 0.0\n"));
    folder.write("four.toml", cluster_of(4, "full"));
    CHECK(refused(folder, "import job --cluster c.toml", 4) == "rheo: job.0.et: no such file; traces are PREFIX.0.et, PREFIX.1.et, ...\n");
    write_pairs(folder, "0");
    CHECK(refused(folder, "import job") == "rheo: rheo trace import needs --cluster FILE: the cluster on which the traces are played\n");
    CHECK(refused(folder, "import job --cluster c.toml") == "rheo: c.toml: has 2 devices, but job are traces of 4 ranks; expected a device for each rank\n");
    CHECK(refused(folder, "import job --cluster zero.toml --chrome c.json") ==
          "rheo: zero.toml:11: level 1: rate_gb_per_s must be a number above 0 and at most 1e+09, not 0\n");
    CHECK_FALSE(std::filesystem::exists(folder.path / "c.json"));
    CHECK(refused(folder, "import job --cluster none.toml") == "rheo: none.toml: this file cannot be read\n");
    CHECK(refused(folder, "import job --cluster four.toml --unshared") ==
          "rheo: --unshared is for --network integer-ns; without it, messages have links for themselves with --network free\n");
    CHECK_THAT(refused(folder, "import job --cluster four.toml --network fast"), Catch::Matchers::ContainsSubstring("integer-ns"));
    CHECK_THAT(refused(folder, "import job --cluster four.toml --chunks 0"), Catch::Matchers::ContainsSubstring("--chunks"));
    CHECK_THAT(refused(folder, "check job --cluster four.toml"), Catch::Matchers::ContainsSubstring("--cluster is no option of rheo trace check"));
    folder.write("three.toml", cluster_of(3, "full"));
    std::filesystem::remove(folder.path / "job.3.et");
    CHECK(refused(folder, "import job --cluster three.toml --form halving_doubling", 4) ==
          "rheo: job: COMM_COLL node 2 of rank 0 is of 3 ranks; halving_doubling needs a power of two of them\n");
}
