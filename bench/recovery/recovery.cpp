// SPDX-License-Identifier: Apache-2.0
// How long a recovery takes, phase by phase, against the number of ranks on this machine. Starts `rheo train` under the
// launcher with two pipelines, kills the last rank from outside in the middle of the run, and reads the recovery's record. The
// whole is taken from outside, too: from the kill until the surviving reporter has written that record, which it does after its first
// computation of the next generation. Beside it stands what the MPI alone needs (mpi_loss.cpp).
//   bench_recovery [--json] [--ranks 2,3,4,5,6,7,8] [--repetitions 5] [--model small|large|both] [--change SETTINGS] [--keep FOLDER]
// --change "tensor=2 pipelines=[4]": kills no rank; the plan changes after five steps, on a grid of four shards. What moved stands beside the fewest bytes
// that any assignment of the ranks to the new places moves.
// small: a model of a hundred kilobytes, so that only the MPI and the protocol cost time; large: about 20 MB of parameters and
// moments per rank, so that copying shows.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "../step_durations.hpp"
#include "least_copied.hpp"

namespace {

using json = nlohmann::ordered_json;
using clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> phases{"detect", "revoke", "decide", "shrink", "link", "exchange", "plan", "copy", "merge", "first_instruction"};

struct arguments {
    bool json = false;
    std::vector<int> ranks{2, 3, 4, 5, 6, 7, 8};
    int repetitions = 5;
    bool small = true;
    bool large = true;
    std::string change{};  ///< of the plan; empty: a rank is killed
    fs::path keep;
};

std::vector<int> numbers(std::string_view text)
{
    std::vector<int> result;
    while (!text.empty()) {
        auto const comma = std::min(text.find(','), text.size());
        result.push_back(std::stoi(std::string{text.substr(0, comma)}));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return result;
}

arguments read_arguments(int argc, char** argv)
{
    arguments result;
    for (int i = 1; i < argc; ++i) {
        std::string_view const word{argv[i]};
        bool const more = i + 1 < argc;
        if (word == "--json") {
            result.json = true;
        } else if (word == "--ranks" && more) {
            result.ranks = numbers(argv[++i]);
        } else if (word == "--repetitions" && more) {
            result.repetitions = std::stoi(argv[++i]);
        } else if (word == "--model" && more) {
            std::string_view const model{argv[++i]};
            result.small = model != "large";
            result.large = model != "small";
        } else if (word == "--change" && more) {
            result.change = argv[++i];
        } else if (word == "--keep" && more) {
            result.keep = argv[++i];
        } else {
            fmt::print(stderr,
                       "usage: bench_recovery [--json] [--ranks 2,3] [--repetitions N] [--model small|large|both] [--change SETTINGS] "
                       "[--keep FOLDER]\n");
            std::exit(2);
        }
    }
    return result;
}

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

/// Starts a command under cmake/run_mpi.sh, which ends everything at its time limit and leaves no process behind.
pid_t start(int ranks, int limit, std::vector<std::string> command, fs::path const& output)
{
    std::vector<std::string> words{"bash", RHEO_RUN_MPI, RHEO_MPIRUN, "--ft", std::to_string(ranks), std::to_string(limit)};
    words.insert(words.end(), command.begin(), command.end());
    std::vector<char*> argv;
    for (auto& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    std::fflush(nullptr);  // or the child writes what is still in a buffer once more
    auto const child = fork();
    if (child == 0) {
        if (std::freopen(output.c_str(), "w", stdout) == nullptr || dup2(STDOUT_FILENO, STDERR_FILENO) < 0) {
            _exit(127);
        }
        execvp(argv.front(), argv.data());
        _exit(127);
    }
    return child;
}

int finish(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string text_of(fs::path const& path)
{
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

struct model {
    std::string_view name;
    bool large;

    std::vector<std::string> settings(int ranks) const
    {
        // Two blocks per rank of the larger pipeline: 12 * 256^2 parameters of 12 bytes each make 9.4 MB a block.
        auto const shape = large ? fmt::format("model.vocabulary=256;model.context=16;model.width=256;model.heads=4;model.blocks={}", 2 * ((ranks + 1) / 2))
                                 : std::string{"model.vocabulary=256;model.context=16;model.width=16;model.heads=2;model.blocks=8"};
        std::vector<std::string> result;
        for (std::size_t from = 0; from < shape.size();) {
            auto const to = std::min(shape.find(';', from), shape.size());
            result.push_back(shape.substr(from, to - from));
            from = to + 1;
        }
        result.push_back(fmt::format("plan.pipelines=[{}, {}]", ranks / 2, ranks - ranks / 2));
        return result;
    }
};

/// One run with one kill, or one change of the plan; the recovery as report.json has it with "outside_s" besides, or null.
json one_recovery(model const& what, int ranks, std::string const& change, fs::path const& folder)
{
    fs::remove_all(folder);
    fs::create_directories(folder);
    auto const run = folder / "run";
    std::ofstream{folder / "config.toml"} << "schema = 1\n[train]\nmicrobatches = 8\nmicrobatch = { sequences = 1, tokens = 16 }\n"
                                          << "steps = " << (what.large ? 30 : 150) << "\neval_microbatches = 2\n[plan]\nmin_ranks = 1\nfailures = 1\n";
    std::vector<std::string> command{RHEO_PROGRAM,
                                     "train",
                                     (folder / "config.toml").string(),
                                     "--json",
                                     "--set",
                                     fmt::format("run.folder=\"{}\"", run.string()),
                                     "--set",
                                     fmt::format("data.paths=[\"{}\"]", (folder / "text").string())};
    for (auto const& setting : what.settings(ranks)) {
        command.insert(command.end(), {"--set", setting});
    }
    if (!change.empty()) {
        command.insert(command.end(), {"--set", "train.shards=4", "--set", fmt::format("plan.changes=[\"5: {}\"]", change)});
    }
    std::ofstream text{folder / "text"};
    for (int i = 0; i < 20000; ++i) {
        text << static_cast<char>('a' + i * i % 23);
    }
    text.close();
    auto const job = start(ranks, 120, command, folder / "output");

    // Four steps are done: kill in the middle of the next ones, then watch for the record.
    auto const metrics = run / "metrics.jsonl";
    auto const begun = clock::now();
    auto const wait_for = [&](std::string_view what_for, int times) {
        while (seconds_since(begun) < 100) {
            auto const written = text_of(metrics);
            int found = 0;
            for (auto at = written.find(what_for); at != std::string::npos; at = written.find(what_for, at + 1)) {
                ++found;
            }
            if (found >= times) {
                return true;
            }
            std::this_thread::sleep_for(std::chrono::microseconds{300});
        }
        return false;
    };
    double outside = 0;
    if (change.empty() && wait_for(R"("kind":"step")", 4)) {
        auto const victim = json::parse(text_of(run / "ranks" / fmt::format("{}.json", ranks - 1)), nullptr, false);
        if (victim.is_object() && ::kill(victim["pid"].get<pid_t>(), SIGKILL) == 0) {
            auto const killed = clock::now();
            outside = wait_for(R"("kind":"recovery")", 1) ? seconds_since(killed) : 0;
        }
    }
    int const code = finish(job);
    auto const report = json::parse(text_of(run / "report.json"), nullptr, false);
    if (code != 0 || (outside == 0 && change.empty()) || !report.is_object() || !report.contains("recoveries") || report["recoveries"].size() != 1) {
        fmt::print(stderr, "{} ranks: no recovery to measure (exit code {}), see {}\n", ranks, code, folder.string());
        return nullptr;
    }
    json recovery = report["recoveries"][0];
    recovery["outside_s"] = outside;
    if (!change.empty()) {
        auto settings = what.settings(ranks);
        settings.insert(settings.end(), {"train.shards=4", fmt::format("data.paths=[\"{}\"]", (folder / "text").string())});
        if (auto const least = least_copied((folder / "config.toml").string(), settings, change, ranks)) {
            recovery["least_copied_bytes"] = least->count;
        }
    }
    return recovery;
}

json what_mpi_needs(int ranks, bool chain, fs::path const& folder)
{
    fs::create_directories(folder);
    std::vector<std::string> command{RHEO_MPI_LOSS};
    if (chain) {
        command.emplace_back("--chain");
    }
    auto const code = finish(start(ranks, 60, command, folder / "mpi-output"));
    auto const output = text_of(folder / "mpi-output");
    auto const begin = output.find('{');
    auto const line = begin == std::string::npos ? std::string{} : output.substr(begin, output.find('\n', begin) - begin);
    auto const result = json::parse(line, nullptr, false);
    return code == 0 && result.is_object() ? result : json(nullptr);
}

/// The median of each number over the repetitions.
json medians(std::vector<json> const& all)
{
    json result = json::object();
    if (all.empty()) {
        return result;
    }
    for (auto const& [key, value] : all.front().items()) {
        if (value.is_number()) {
            std::vector<double> values;
            for (auto const& one : all) {
                values.push_back(one.at(key).get<double>());
            }
            result[key] = bench::median(values);
        }
    }
    return result;
}

struct column {
    int ranks;
    json phases;
    json mpi;
    json chain;
};

void print_row(std::string_view name, std::vector<column> const& columns, auto cell)
{
    fmt::print("  {:<30}", name);
    for (auto const& c : columns) {
        fmt::print("{:>9}", cell(c));
    }
    fmt::print("\n");
}

std::string milliseconds(json const& object, std::string const& key)
{
    return object.contains(key) ? fmt::format("{:.2f}", 1e3 * object[key].get<double>()) : std::string{"-"};
}

/// The time that the MPI alone needs, for comparison.
void print_mpi_rows(std::vector<column> const& columns)
{
    print_row("kill to record, from outside", columns, [](column const& c) { return milliseconds(c.phases, "outside_s"); });
    print_row("the MPI alone: first notice", columns, [](column const& c) { return milliseconds(c.mpi, "first_notice_s"); });
    print_row("  last notice", columns, [](column const& c) { return milliseconds(c.mpi, "last_notice_s"); });
    print_row("  last notice by revocation", columns, [](column const& c) { return milliseconds(c.chain, "last_notice_s"); });
    print_row("  revoke", columns, [](column const& c) { return milliseconds(c.mpi, "revoke_s"); });
    print_row("  agree", columns, [](column const& c) { return milliseconds(c.mpi, "agree_s"); });
    print_row("  shrink, twice", columns, [](column const& c) { return milliseconds(c.mpi, "shrink_s"); });
    print_row("beyond the MPI's detection", columns, [](column const& c) {
        return c.phases.contains("outside_s") && c.mpi.contains("last_notice_s")
                   ? fmt::format("{:.2f}", 1e3 * (c.phases["outside_s"].get<double>() - c.mpi["last_notice_s"].get<double>()))
                   : std::string{"-"};
    });
}

}  // namespace

int main(int argc, char** argv)
{
    auto const given = read_arguments(argc, argv);
    auto const folder = given.keep.empty() ? fs::temp_directory_path() / fmt::format("rheo-bench-recovery-{}", ::getpid()) : given.keep;
    bool complete = true;
    for (auto const& what : {model{"small", false}, model{"large", true}}) {
        if (!(what.large ? given.large : given.small)) {
            continue;
        }
        std::vector<column> columns;
        for (int const ranks : given.ranks) {
            std::vector<json> recoveries;
            std::vector<json> alone;
            std::vector<json> chained;
            for (int repetition = 0; repetition < given.repetitions; ++repetition) {
                auto const place = folder / fmt::format("{}-{}-{}", what.name, ranks, repetition);
                if (auto recovery = one_recovery(what, ranks, given.change, place); recovery.is_object()) {
                    recoveries.push_back(std::move(recovery));
                }
                if (!given.change.empty()) {
                    continue;
                }
                if (auto mpi = what_mpi_needs(ranks, false, place); mpi.is_object()) {
                    alone.push_back(std::move(mpi));
                }
                if (auto mpi = what_mpi_needs(ranks, true, place); mpi.is_object()) {
                    chained.push_back(std::move(mpi));
                }
            }
            complete = complete && !recoveries.empty();
            columns.push_back({ranks, medians(recoveries), medians(alone), medians(chained)});
            auto& last = columns.back();
            last.phases["repetitions"] = recoveries.size();
            if (given.json) {
                fmt::print(
                    "{}\n",
                    json{{"bench", "recovery"}, {"model", what.name}, {"ranks", ranks}, {"recovery", last.phases}, {"mpi", last.mpi}, {"mpi_chain", last.chain}}
                        .dump());
                std::fflush(stdout);
            }
        }
        if (given.json) {
            continue;
        }
        fmt::print(
            "{} model, milliseconds, medians of {}; {}\n", what.name, given.repetitions,
            given.change.empty() ? "one rank of two pipelines is killed from outside" : fmt::format("two pipelines of single ranks become {}", given.change));
        print_row("ranks", columns, [](column const& c) { return std::to_string(c.ranks); });
        for (auto const phase : phases) {
            print_row(phase, columns, [&](column const& c) { return milliseconds(c.phases, fmt::format("{}_s", phase)); });
        }
        print_row("total of the phases", columns, [](column const& c) { return milliseconds(c.phases, "total_s"); });
        if (given.change.empty()) {
            print_mpi_rows(columns);
        }
        print_row("state copied, MB", columns, [](column const& c) { return fmt::format("{:.2f}", 1e-6 * c.phases.value("copied_bytes", 0.0)); });
        if (!given.change.empty()) {
            print_row("  the least possible, MB", columns, [](column const& c) {
                return c.phases.contains("least_copied_bytes") ? fmt::format("{:.2f}", 1e-6 * c.phases["least_copied_bytes"].get<double>()) : std::string{"-"};
            });
        }
        print_row("  MB/s", columns, [](column const& c) {
            auto const time = c.phases.value("copy_s", 0.0);
            return time > 0 && c.phases.value("copied_bytes", 0.0) > 0 ? fmt::format("{:.0f}", 1e-6 * c.phases.value("copied_bytes", 0.0) / time)
                                                                       : std::string{"-"};
        });
        fmt::print("\n");
    }
    if (given.keep.empty()) {
        fs::remove_all(folder);
    }
    return complete ? 0 : 1;
}
