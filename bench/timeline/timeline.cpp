// SPDX-License-Identifier: Apache-2.0
// How long a step takes beside what the library says of its program: the real worker interprets each family's program on one
// pipeline, over the MPI, and the library's timeline of the same program is made with the times of its operations.
//   mpirun -n 8 bench_timeline [--schedules all|a,b] [--microbatches 16] [--repeats 3] [--copies 6] [--unit-ms 10] [--json]
//   mpirun -n 2 bench_timeline --kernels [--blocks 6] [--width 256] ...
// Without --kernels the model is as small as it can be, and after each operation its rank waits until the time that the operation
// takes is over: a forward of a rank's whole part takes one unit, a backward two, each half of a split one one. Ranks sleep
// then, so that there may be more of them than cores, and messages are modelled as planning models them. With --kernels operations take what they
// take: predicted from what a message took by itself and operations took when each rank ran its own by itself in the order of its program, before each step; explained from
// what each kind of operation took in the step itself. Families take turns in rotating order; figures are those of a typical turn.
//
// Whether the families are in the order that was predicted is judged by what one family shows: --copies of the first one take their turns among the
// others, and as far as their steps are apart, two predictions that are no further apart are a tie.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "family.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/families/families.hpp"

namespace {

using namespace rheo;

struct arguments {
    std::vector<std::string> schedules{};
    int microbatches = 16;
    int repeats = 3;
    int copies = 6;  ///< of the first family, to see how far apart equal ones are
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
        } else if (word == "--copies" && more) {
            result.copies = std::max(1, std::stoi(argv[++i]));
        } else if (word == "--unit-ms" && more) {
            result.unit_ms = std::stod(argv[++i]);
        } else if (word == "--blocks" && more) {
            result.blocks = std::stoi(argv[++i]);
        } else if (word == "--width" && more) {
            result.width = std::stoi(argv[++i]);
        } else {
            fmt::print(
                stderr,
                "usage: bench_timeline [--schedules all|NAME,...] [--microbatches N] [--repeats N] [--copies N] [--unit-ms X] [--kernels] [--blocks N] [--width N] [--json]\n");
            std::exit(2);
        }
    }
    if (wanted == "all") {
        auto const names = schedule_names();
        result.schedules.assign(names.begin(), names.end());
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
    std::string instead;   ///< the family cannot be made here
    double predicted = 0;  ///< seconds
    double measured = 0;
    double explained = 0;
    double over_predicted = 0;  ///< by how much a step takes longer, as a part
    double over_explained = 0;
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
    config.plan.schedule = *parse_schedule(schedule);
    return config;
}

/// Linux leaves a twentieth of each second to others even beside ranks of a real-time priority: given here, it is not taken in the middle of a step.
void let_others_run() { std::this_thread::sleep_for(std::chrono::milliseconds{80}); }

/// The families in the order of a turn: copies spread among the others, and every turn begins elsewhere.
std::vector<std::size_t> order_of_turn(std::size_t turn, std::size_t own, std::size_t all)
{
    std::vector<std::size_t> order;
    std::size_t copy = own;
    for (std::size_t f = 0; f < own; ++f) {
        order.push_back(f);
        for (; copy < all && (copy - own + 1) * own <= (f + 1) * (all - own); ++copy) {
            order.push_back(copy);
        }
    }
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(turn * 7 % order.size()), order.end());
    return order;
}

/// What was measured of a family in the turns.
struct step_times {
    std::size_t turn;
    double predicted, measured, explained;  ///< seconds
};

/// The mean of the middle half: what disturbed one does not count, nor what was lucky. @param value of a step
template <class Value>
double typical(std::vector<step_times> const& steps, Value const& value)
{
    std::vector<double> values;
    for (auto const& each : steps) {
        values.push_back(value(each));
    }
    std::sort(values.begin(), values.end());
    auto const cut = static_cast<std::ptrdiff_t>(values.size() / 4);
    return std::accumulate(values.begin() + cut, values.end() - cut, 0.0) / static_cast<double>(values.end() - values.begin() - 2 * cut);
}

/// The row of a family. @param pace of each turn, 1 on the mean: divided out of times, while a step is compared with what was predicted just before it
row row_of(std::string const& name, std::vector<step_times> const& steps, std::vector<double> const& pace)
{
    return {.schedule = name,
            .instead = {},
            .predicted = typical(steps, [&](step_times const& s) { return s.predicted / pace[s.turn]; }),
            .measured = typical(steps, [&](step_times const& s) { return s.measured / pace[s.turn]; }),
            .explained = typical(steps, [&](step_times const& s) { return s.explained / pace[s.turn]; }),
            .over_predicted = typical(steps, [&](step_times const& s) { return s.measured / s.predicted; }) - 1,
            .over_explained = typical(steps, [&](step_times const& s) { return s.measured / s.explained; }) - 1};
}

struct result {
    std::vector<row> rows;
    int copies = 0;    ///< of the first family that can be made
    double apart = 0;  ///< the part by which steps of these are apart
};

result measured_in_turns(arguments const& wanted, mpi::generation const& members)
{
    auto const ranks = static_cast<int>(members.members.size());
    auto const scratch = std::filesystem::temp_directory_path() / fmt::format("rheo-timeline-{}", ::getpid());
    std::vector<std::unique_ptr<bench::family>> families;
    auto const add = [&](std::string const& schedule) {
        families.push_back(
            std::make_unique<bench::family>(config_for(wanted, schedule, ranks), members, seconds{wanted.kernels ? 0 : wanted.unit_ms * 1e-3}, scratch));
    };
    for (auto const& schedule : wanted.schedules) {
        add(schedule);
    }
    auto const own = families.size();
    auto const first = std::find_if(families.begin(), families.end(), [](auto const& each) { return each->error().empty(); });
    for (auto const name = first != families.end() ? (*first)->name() : "";
         !name.empty() && families.size() + 1 < own + static_cast<std::size_t>(wanted.copies);) {
        add(name);
    }
    mpi::messenger messages{members};
    std::vector<std::vector<step_times>> times(families.size());
    std::vector<double> pace;  // of each turn: all its steps
    for (int repeat = 0; repeat <= wanted.repeats; ++repeat) {
        if (repeat == 1) {  // what was before made buffers and met its peers
            times.assign(families.size(), {});
            pace.clear();
        }
        auto const turn = pace.size();
        pace.push_back(0);
        for (auto const f : order_of_turn(static_cast<std::size_t>(repeat), own, families.size())) {
            auto& each = *families[f];
            if (!each.error().empty()) {
                continue;
            }
            for (int step = 0; step < (wanted.kernels ? 2 : 1); ++step) {
                seconds message{};
                if (wanted.kernels) {
                    let_others_run();
                    message = each.measured_message(messages);
                    each.measure_operations();
                    let_others_run();
                }
                auto const predicted = each.predicted(message);
                auto const measured = each.measured(messages);
                times[f].push_back({turn, predicted, measured, each.explained(message)});
                pace.back() += measured;
            }
        }
    }
    auto const mean = std::accumulate(pace.begin(), pace.end(), 0.0) / static_cast<double>(pace.size());
    for (auto& each : pace) {
        each /= mean;
    }
    result found;
    std::vector<double> copies;
    for (std::size_t f = 0; f < families.size(); ++f) {
        auto const& each = *families[f];
        auto const r = each.error().empty() ? row_of(each.name(), times[f], pace) : row{each.name(), each.error()};
        if (each.error().empty() && (f >= own || copies.empty())) {
            copies.push_back(r.measured);
        }
        if (f < own) {
            found.rows.push_back(r);
        }
    }
    found.copies = static_cast<int>(copies.size());
    found.apart = copies.empty() ? 0.0 : *std::max_element(copies.begin(), copies.end()) / *std::min_element(copies.begin(), copies.end()) - 1;
    families.clear();
    std::filesystem::remove_all(scratch);
    return found;
}

/// How many pairs of families are in the order that was predicted, of those that are no tie.
struct judged_order {
    int right = 0;
    int all = 0;
    int ties = 0;
    std::string wrong{};  ///< the other pairs
};

judged_order order_of(result const& found)
{
    judged_order order;
    for (auto const& a : found.rows) {
        for (auto const& b : found.rows) {
            if (&a == &b || !a.instead.empty() || !b.instead.empty() || a.predicted > b.predicted || (a.predicted == b.predicted && &a > &b)) {
                continue;
            }
            if (b.predicted <= a.predicted * (1 + found.apart)) {
                ++order.ties;
                continue;
            }
            ++order.all;
            if (a.measured < b.measured) {
                ++order.right;
            } else {
                order.wrong += fmt::format("{}{} before {}", order.wrong.empty() ? "" : ", ", a.schedule, b.schedule);
            }
        }
    }
    return order;
}

void print(arguments const& wanted, int ranks, result const& found)
{
    auto const order = order_of(found);
    if (wanted.json) {
        for (auto const& r : found.rows) {
            nlohmann::ordered_json object{
                {"bench", "timeline"}, {"ranks", ranks}, {"microbatches", wanted.microbatches}, {"kernels", wanted.kernels}, {"schedule", r.schedule}};
            if (r.instead.empty()) {
                object.update({{"predicted_s", r.predicted},
                               {"measured_s", r.measured},
                               {"explained_s", r.explained},
                               {"over_predicted", r.over_predicted},
                               {"over_explained", r.over_explained}});
            } else {
                object["error"] = r.instead;
            }
            fmt::print("{}\n", object.dump());
        }
        fmt::print("{}\n",
                   nlohmann::ordered_json{
                       {"bench", "timeline"}, {"pairs_in_order", order.right}, {"pairs", order.all}, {"ties", order.ties}, {"copies_apart", found.apart}}
                       .dump());
        return;
    }
    fmt::print("{} ranks, {} microbatches, {}\n  {:<16}{:>12}{:>12}{:>9}{:>12}{:>9}\n", ranks, wanted.microbatches,
               wanted.kernels ? "operations take what they take" : fmt::format("a forward takes {} ms", wanted.unit_ms), "schedule", "predicted", "measured",
               "more", "explained", "more");
    for (auto const& r : found.rows) {
        if (r.instead.empty()) {
            fmt::print("  {:<16}{:>9.2f} ms{:>9.2f} ms{:>7.2f} %{:>9.2f} ms{:>7.2f} %\n", r.schedule, r.predicted * 1e3, r.measured * 1e3,
                       100 * r.over_predicted, r.explained * 1e3, 100 * r.over_explained);
        } else {
            fmt::print("  {:<16}{}\n", r.schedule, r.instead);
        }
    }
    fmt::print("  steps of {} copies of one family are {:.2f} % apart; order: {} of {} pairs, {} ties{}{}\n", found.copies, 100 * found.apart, order.right,
               order.all, order.ties, order.wrong.empty() ? "" : "; not: ", order.wrong);
}

void measure_all(arguments const& wanted)
{
    auto const members = mpi::first_generation(MPI_COMM_WORLD, generation_id{1});
    auto const found = measured_in_turns(wanted, members);
    if (members.self.value == 0) {
        print(wanted, static_cast<int>(members.members.size()), found);
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
