// SPDX-License-Identifier: Apache-2.0
// `rheo reshard` as its users start it: degrees of a model, files with layouts, each form of output, each refusal.
#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

namespace {

nlohmann::json planned(std::string const& arguments)
{
    temporary_folder const folder;
    auto const shown = run_rheo(folder, "reshard " + arguments + " --json");
    CAPTURE(shown.err);
    REQUIRE(shown.exit_code == 0);
    return nlohmann::json::parse(shown.out);
}

std::string refused(temporary_folder const& folder, std::string const& arguments, int code)
{
    auto const shown = run_rheo(folder, "reshard " + arguments);
    CHECK(shown.exit_code == code);
    CHECK(shown.out.empty());
    return shown.err;
}

/// Six numbers: three at each of two ranks, or all at one.
constexpr auto halves = R"({"schema": 1, "tensors": [{"name": "w", "shape": [6], "dtypes": {"parameter": "f64"}}],
 "places": [{"ranks": [0], "parts": [{"tensor": "w", "box": [[0, 3]]}]}, {"ranks": [1], "parts": [{"tensor": "w", "box": [[3, 6]]}]}]})";
constexpr auto at_2 = R"({"schema": 1, "tensors": [{"name": "w", "shape": [6], "dtypes": {"parameter": "f64"}}],
 "places": [{"ranks": [2], "parts": [{"tensor": "w", "box": [[0, 6]]}]}]})";

}  // namespace

TEST_CASE("reshard_command: figures stand beside their bounds")
{
    temporary_folder const folder;
    folder.write("a.json", halves);
    folder.write("b.json", at_2);
    auto const shown = run_rheo(folder, "reshard --from a.json --to b.json --bandwidth 0.000000012");
    CHECK(shown.exit_code == 0);
    CHECK(shown.out == R"(a.json on 2 ranks to b.json on 3 ranks
1 tensors, 2 transfers, ranks pinned

                            plan     bound
  needed                48 bytes  48 bytes    least possible
  moved                 48 bytes  48 bytes    least possible
  largest send          24 bytes  24 bytes    least possible
  largest receive       48 bytes  48 bytes    least possible
  rounds                       1         1    least possible
  peak                  48 bytes  48 bytes    least possible
  time at 1.2e-08 GB/s   4.000 s   4.000 s    least possible
)");
}

TEST_CASE("reshard_command: sizes have a unit that fits")
{
    temporary_folder const folder;
    auto const resized = [&](std::string text, std::string const& half, std::string const& all) {
        for (auto const& [from, to] : {std::pair{std::string{"[3, 6]"}, "[" + half + ", " + all + "]"},
                                       {"[0, 3]", "[0, " + half + "]"},
                                       {"[0, 6]", "[0, " + all + "]"},
                                       {"[6]", "[" + all + "]"}}) {
            if (auto const at = text.find(from); at != text.npos) {
                text.replace(at, from.size(), to);
            }
        }
        return text;
    };
    auto const row = [&](std::string const& half, std::string const& all, std::string const& title) {
        folder.write("a.json", resized(halves, half, all));
        folder.write("b.json", resized(at_2, half, all));
        auto const shown = run_rheo(folder, "reshard --from a.json --to b.json");
        CAPTURE(shown.err);
        CHECK(shown.exit_code == 0);
        auto const begin = shown.out.find("  " + title);
        return shown.out.substr(begin, shown.out.find('\n', begin) - begin);
    };
    CHECK(row("64", "127", "needed") == "  needed           1016 bytes  1016 bytes    least possible");
    CHECK(row("64", "192", "moved") == "  moved            1.50 KiB  1.50 KiB    least possible");
    CHECK(row("65536", "1048576", "moved") == "  moved            8.00 MiB  8.00 MiB    least possible");
}

TEST_CASE("reshard_command: only equal bytes are called least possible")
{
    // Rank 0 gets one element for another: it has 8 bytes more for a while, which no digit of the table shows.
    std::string const head = R"({"schema": 1, "tensors": [{"name": "w", "shape": [1048577], "dtypes": {"parameter": "f64"}}], "places": [)";
    temporary_folder const folder;
    folder.write("a.json", head + R"({"ranks": [0], "parts": [{"tensor": "w", "box": [[0, 1048576]]}]},
 {"ranks": [1], "parts": [{"tensor": "w", "box": [[1048576, 1048577]]}]}]})");
    folder.write("b.json", head + R"({"ranks": [0], "parts": [{"tensor": "w", "box": [[1, 1048577]]}]},
 {"ranks": [1], "parts": [{"tensor": "w", "box": [[0, 1]]}]}]})");
    auto const shown = run_rheo(folder, "reshard --from a.json --to b.json");
    CHECK(shown.exit_code == 0);
    CHECK(shown.out.ends_with("  peak             8.00 MiB  8.00 MiB\n"));
}

TEST_CASE("reshard_command: JSON has each figure and its bound")
{
    temporary_folder const folder;
    folder.write("a.json", halves);
    folder.write("b.json", at_2);
    auto const shown = run_rheo(folder, "reshard --from a.json --to b.json --json --node-size 2 --bandwidth 1");
    REQUIRE(shown.exit_code == 0);
    auto const is = nlohmann::json::parse(shown.out);
    auto const expect = [&](std::string const& key, std::int64_t value) {
        CAPTURE(key);
        CHECK(is.at(key) == value);
        CHECK(is.at(key + "_bound") == value);
    };
    expect("needed_bytes", 48);
    expect("moved_bytes", 48);
    expect("largest_send_bytes", 24);
    expect("largest_receive_bytes", 48);
    expect("between_nodes_bytes", 48);
    expect("rounds", 1);
    expect("peak_bytes", 48);
    CHECK(is.at("time_s").get<double>() == Approx(48e-9));
    CHECK(is.at("time_s_bound").get<double>() == Approx(48e-9));

    auto const rows = run_rheo(folder, "reshard --from a.json --to b.json --csv");
    CHECK(rows.out == "round,from,to,tensor,roles,box,bytes\n0,0,2,w,parameter,\"[0:3]\",24\n0,1,2,w,parameter,\"[3:6]\",24\n");
}

TEST_CASE("reshard_command: who may take places changes what moves")
{
    // Of two replicas one goes: half of each node's stages stay, a quarter of each rank's, all of them when ranks are chosen.
    std::string const change = "--from 2,4,2 --to 2,4,1 --model gpt3-125m --node-size 4 --roles ";
    auto const pinned = planned(change + "pinned").at("moved_bytes").get<std::int64_t>();
    auto const nodes = planned(change + "nodes").at("moved_bytes").get<std::int64_t>();
    CHECK(planned(change + "any").at("moved_bytes") == 0);
    CHECK(nodes > 0);
    CHECK(nodes < pinned);
}

TEST_CASE("reshard_command: rounds and memory are kept or refused")
{
    std::string const change = "--from 4,2,1 --to 2,4,1 --model gpt3-125m --layers 4 ";
    auto const one = planned(change);
    auto const receive = one.at("largest_receive_bytes").get<std::int64_t>();
    CHECK(one.at("rounds") == 1);
    auto const cut = planned(change + "--round 16");
    CHECK(cut.at("rounds") == (receive + (16 << 20) - 1) / (16 << 20));
    CHECK(cut.at("rounds") == cut.at("rounds_bound"));
    temporary_folder const folder;
    auto const message = refused(folder, change + "--memory 1", 3);
    CHECK(message.find("gpt3-125m, 4 blocks: 4,2,1 on 8 ranks to 2,4,1 on 8 ranks: ") != std::string::npos);
    CHECK(message.find("memory") != std::string::npos);
}

TEST_CASE("reshard_command: the picture shows who sends what to whom")
{
    temporary_folder const folder;
    folder.write("a.json", halves);
    folder.write("b.json", at_2);
    auto const shown = run_rheo(folder, "reshard --from a.json --to b.json --round 0.00003 --svg moves.svg");
    CHECK(shown.exit_code == 0);
    auto const picture = folder.read("moves.svg");
    CHECK(picture.starts_with("<svg "));
    CHECK(picture.ends_with("</svg>\n"));
    CHECK(picture.find("<title>rank 1 to rank 2: ") != std::string::npos);
    CHECK(picture.find(">round 1: 24 bytes<") != std::string::npos);
    CHECK(run_rheo(folder, "reshard --from a.json --to b.json --csv --svg none/moves.svg").err == "rheo: none/moves.svg: this file cannot be written\n");
}

TEST_CASE("reshard_command: config and presets name the model")
{
    temporary_folder const folder;
    folder.write("job.toml",
                 "schema = 1\nmodel = { vocabulary = 300, context = 16, width = 8, heads = 2, blocks = 2 }\n"
                 "train.microbatch = { sequences = 1, tokens = 16 }\n");
    auto const shown = run_rheo(folder, "reshard --from 1,1,1 --to 2,2,1 --model job.toml --json");
    CAPTURE(shown.err);
    CHECK(shown.exit_code == 0);
    CHECK(refused(folder, "--from 1,1,1 --to 4,1,1 --model job.toml", 2) == "rheo: --to 4,1,1: the model has 2 heads, fewer than tensor parallel ranks\n");
    CHECK(refused(folder, "--from 1,1,1 --to 1,3,1 --model job.toml", 2) == "rheo: --to 1,3,1: the model has 2 blocks, fewer than stages\n");
    CHECK(refused(folder, "--from 1,1,1 --to 1,2,1 --model gtp3-2.7b", 2) ==
          "rheo: --model: 'gtp3-2.7b' is neither a file nor a model; the nearest model is gpt3-2.7b\n");
}

TEST_CASE("reshard_command: bad input is refused with a sentence")
{
    temporary_folder const folder;
    folder.write("a.json", halves);
    folder.write("b.json", at_2);
    auto wrong = std::string{halves};
    wrong.replace(wrong.find("[3, 6]"), 6, "[2, 6]");
    wrong.replace(wrong.find("\"ranks\": [1]"), 12, "\"ranks\": [0]");
    folder.write("twice.json", wrong);
    auto hole = std::string{halves};
    hole.replace(hole.find("[3, 6]"), 6, "[4, 6]");
    folder.write("hole.json", hole);
    auto other = std::string{at_2};
    other.replace(other.find("[6]"), 3, "[7]");
    other.replace(other.find("[0, 6]"), 6, "[0, 7]");
    folder.write("other.json", other);
    std::string const hint = "; rheo --help and rheo train --help say what there is\n";
    CHECK(refused(folder, "--from twice.json --to b.json", 4) ==
          "rheo: twice.json: rank 0: the layout lists this rank twice; list it once with all its parts\n");
    CHECK(refused(folder, "--from hole.json --to b.json", 4) == "rheo: hole.json: tensor \"w\" [3:4]: no rank has these elements\n");
    CHECK(
        refused(folder, "--from a.json --to other.json", 3) ==
        "rheo: a.json on 2 ranks to other.json on 3 ranks: tensor \"w\": both layouts list the same tensors with the same shapes and roles in the same order; "
        "this one differs\n");
    CHECK(refused(folder, "--from a.json --to 1,1,1", 2) == "rheo: --from a.json --to 1,1,1: either both are degrees like 4,2,1 or both are files\n");
    CHECK(refused(folder, "--from none.json --to b.json", 4) == "rheo: none.json: this layout cannot be read\n");
    CHECK(refused(folder, "--from 0,1,2 --to 2,1,1", 2) ==
          "rheo: --from 0,1,2: degrees are at least 1, and their product, the number of ranks, at most 65536\n");
    CHECK(refused(folder, "--from a.json --to b.json --memory 1e30", 2) ==
          "rheo: --memory: '1e30' is no number of MiB above 0 and below 8796093022208, which are 2^63 bytes" + hint);
    CHECK(refused(folder, "--from a.json --to b.json --round nan", 2) ==
          "rheo: --round: 'nan' is no number of MiB above 0 and below 8796093022208, which are 2^63 bytes" + hint);
    for (auto const* const amount : {"-1", "0", "inf", "8796093022208", "ten"}) {
        CHECK(refused(folder, std::string{"--from a.json --to b.json --memory "} + amount, 2) ==
              std::string{"rheo: --memory: '"} + amount + "' is no number of MiB above 0 and below 8796093022208, which are 2^63 bytes" + hint);
    }
    for (auto const* const amount : {"-1", "0", "nan", "1e-300", "1e300"}) {
        CHECK(refused(folder, std::string{"--from a.json --to b.json --bandwidth "} + amount, 2) ==
              std::string{"rheo: --bandwidth: '"} + amount + "' is no number of GB/s from 1e-09, a byte per second, to 1e+09" + hint);
    }
    for (auto const* const command : {"convert run out --layout 1,1,1", "plan job.toml"}) {
        auto const shown = run_rheo(folder, std::string{command} + " --memory -1");
        CHECK(shown.exit_code == 2);
        CHECK(shown.err == "rheo: --memory: '-1' is no number of MiB above 0 and below 8796093022208, which are 2^63 bytes" + hint);
    }
    CHECK(refused(folder, "--from a.json --to b.json --layers 3", 2) == "rheo: --layers is for degrees like 4,2,1; files name their tensors themselves\n");
}
