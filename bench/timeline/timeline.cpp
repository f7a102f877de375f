// SPDX-License-Identifier: Apache-2.0
// How long a step takes beside what the library says of its program: the real worker interprets each family's program on one
// pipeline, over the MPI, and the library's timeline of the same program is made with the times of its operations.
//   mpirun -n 8 bench_timeline [--schedules all|a,b] [--microbatches 16] [--repeats 3] [--unit-ms 10] [--json]
//   mpirun -n 2 bench_timeline --kernels [--blocks 6] [--width 256] ...
// Without --kernels the model is as small as it can be, and after each operation its rank waits until the time that the operation
// is said to take is over: a forward of a rank's whole part takes one unit, a backward two, each half of a split one one. Ranks sleep
// then, so that there may be more of them than cores. With --kernels operations take what they take: foretold from times measured on each
// rank right before the step, while the others do the same; explained from what each kind of operation took in the step itself. Messages
// are modelled as planning models them. Families take turns; medians of the turns.

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <unistd.h>

#include "family.hpp"
#include "rheo/schedule/any_schedule.hpp"

namespace {

using namespace rheo;

struct arguments {
    std::vector<std::string> schedules{};
    int microbatches = 16;
    int repeats = 3;
    double unit_ms = 10;
    bool kernels = false;
    int blocks = 0;  ///< 0: as many as all families need, or 6 with kernels
    int width = 256;
    bool json = false;
};

arguments read_arguments(int argc, char** argv)
{
    arguments result;
    std::string wanted = "all";
    for (int i = 1; i < argc; ++i) {
        std::string_view const word{argv[i]};
        bool const more = i + 1 < argc;
        if (word == "--json") {
            result.json = true;
        } else if (word == "--kernels") {
            result.kernels = true;
        } else if (word == "--schedules" && more) {
            wanted = argv[++i];
        } else if (word == "--microbatches" && more) {
            result.microbatches = std::stoi(argv[++i]);
        } else if (word == "--repeats" && more) {
            result.repeats = std::stoi(argv[++i]);
        } else if (word == "--unit-ms" && more) {
            result.unit_ms = std::stod(argv[++i]);
        } else if (word == "--blocks" && more) {
            result.blocks = std::stoi(argv[++i]);
        } else if (word == "--width" && more) {
            result.width = std::stoi(argv[++i]);
        } else {
            fmt::print(stderr, "usage: bench_timeline [--schedules all|NAME,...] [--microbatches N] [--repeats N] [--unit-ms X] [--kernels] [--blocks N] [--width N] [--json]\n");
            std::exit(2);
        }
    }
    if (wanted == "all") {
        result.schedules.assign(schedule_names.begin(), schedule_names.end());
    }
    for (std::size_t from = 0; wanted != "all" && from <= wanted.size();) {
        auto const comma = std::min(wanted.find(',', from), wanted.size());
        result.schedules.push_back(wanted.substr(from, comma - from));
        from = comma + 1;
    }
    return result;
}

struct row {
    std::string schedule;
    std::string instead;  ///< the family cannot be made here
    double foretold = 0;  ///< seconds
    double measured = 0;
    double explained = 0;
};

run_config config_for(arguments const& wanted, std::string const& schedule, int ranks)
{
    run_config config;
    auto const blocks = wanted.blocks > 0 ? wanted.blocks : wanted.kernels ? 6 : 4 * ranks - 2;
    config.model = {.vocabulary = 256, .context = 64, .width = wanted.kernels ? wanted.width : 8, .heads = wanted.kernels ? 4 : 1, .blocks = blocks};
    config.train.microbatches = wanted.microbatches;
    config.train.microbatch = wanted.kernels ? microbatch_shape{4, 64} : microbatch_shape{1, 2};
    config.train.microbatch.slices = schedule == "seq1f1b" ? 2 : 1;
    config.plan.pipelines = {ranks};
    config.plan.failures = 0;
    config.plan.schedule = schedule;
    return config;
}

double median(std::vector<double> times)
{
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
}

std::vector<row> measured_in_turns(arguments const& wanted, mpi::generation const& members)
{
    auto const ranks = static_cast<int>(members.members.size());
    auto const scratch = std::filesystem::temp_directory_path() / fmt::format("rheo-timeline-{}", ::getpid());
    std::vector<std::unique_ptr<bench::family>> families;
    for (auto const& schedule : wanted.schedules) {
        families.push_back(std::make_unique<bench::family>(config_for(wanted, schedule, ranks), members, seconds{wanted.kernels ? 0 : wanted.unit_ms * 1e-3}, scratch));
    }
    mpi::messenger messages{members};
    std::vector<std::array<std::vector<double>, 3>> times(families.size());
    for (int repeat = 0; repeat <= wanted.repeats; ++repeat) {
        for (std::size_t f = 0; f < families.size(); ++f) {
            if (!families[f]->cannot().empty()) {
                continue;
            }
            auto const foretold = families[f]->foretold();
            auto const measured = families[f]->measured(messages);
            auto const explained = families[f]->explained();
            for (std::size_t k = 0; k < 3 && repeat > 0; ++k) {  // the first turn makes buffers and meets its peers
                times[f][k].push_back(std::array{foretold, measured, explained}[k]);
            }
        }
    }
    std::vector<row> rows;
    for (std::size_t f = 0; f < families.size(); ++f) {
        auto const& each = *families[f];
        rows.push_back(each.cannot().empty() ? row{each.name(), {}, median(times[f][0]), median(times[f][1]), median(times[f][2])} : row{each.name(), each.cannot()});
    }
    families.clear();
    std::filesystem::remove_all(scratch);
    return rows;
}

/// How many pairs of families are in the order that was predicted, of those whose predictions are more than 2 % apart.
std::pair<int, int> pairs_in_order(std::vector<row> const& rows)
{
    int right = 0;
    int all = 0;
    for (auto const& a : rows) {
        for (auto const& b : rows) {
            if (a.instead.empty() && b.instead.empty() && a.foretold * 1.02 < b.foretold) {
                ++all;
                right += a.measured < b.measured ? 1 : 0;
            }
        }
    }
    return {right, all};
}

void print(arguments const& wanted, int ranks, std::vector<row> const& rows)
{
    auto const [right, all] = pairs_in_order(rows);
    if (wanted.json) {
        for (auto const& r : rows) {
            nlohmann::ordered_json object{{"bench", "timeline"}, {"ranks", ranks}, {"microbatches", wanted.microbatches}, {"kernels", wanted.kernels}, {"schedule", r.schedule}};
            if (r.instead.empty()) {
                object.update({{"foretold_s", r.foretold}, {"measured_s", r.measured}, {"explained_s", r.explained}});
            } else {
                object["cannot"] = r.instead;
            }
            fmt::print("{}\n", object.dump());
        }
        fmt::print("{}\n", nlohmann::ordered_json{{"bench", "timeline"}, {"pairs_in_order", right}, {"pairs", all}}.dump());
        return;
    }
    fmt::print("{} ranks, {} microbatches, {}\n  {:<16}{:>12}{:>12}{:>9}{:>12}{:>9}\n", ranks, wanted.microbatches,
               wanted.kernels ? "operations take what they take" : fmt::format("a forward takes {} ms", wanted.unit_ms), "schedule", "foretold", "measured", "more", "explained", "more");
    for (auto const& r : rows) {
        if (r.instead.empty()) {
            fmt::print("  {:<16}{:>9.2f} ms{:>9.2f} ms{:>7.2f} %{:>9.2f} ms{:>7.2f} %\n", r.schedule, r.foretold * 1e3, r.measured * 1e3,
                       100 * (r.measured / r.foretold - 1), r.explained * 1e3, 100 * (r.measured / r.explained - 1));
        } else {
            fmt::print("  {:<16}{}\n", r.schedule, r.instead);
        }
    }
    fmt::print("  {} of {} pairs whose predictions are 2 % apart are in the order that was predicted\n", right, all);
}

void measure_all(arguments const& wanted)
{
    auto const members = mpi::first_generation(MPI_COMM_WORLD, generation_id{1});
    auto const rows = measured_in_turns(wanted, members);
    if (members.me.value == 0) {
        print(wanted, static_cast<int>(members.members.size()), rows);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    auto const wanted = read_arguments(argc, argv);
    prctl(PR_SET_TIMERSLACK, 1000);  // sleeps end within a microsecond of their time, not fifty
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    measure_all(wanted);  // its communicators are freed before the end
    MPI_Finalize();
}
