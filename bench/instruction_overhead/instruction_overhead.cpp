// SPDX-License-Identifier: Apache-2.0
// What the worker adds to the kernels, per instruction: its own loop, messages, books and trace around computations
// that are as small as they can be. Thousands of instructions are interpreted by the real worker; the same forwards and
// backwards, called one after the other without it, are subtracted. Besides, the parts of the loop are timed one by one.
//   bench_instruction_overhead [--json] [--microbatches 2000] [--blocks 2] [--schedule 1f1b]     one rank, no messages
//   mpirun -n 2 bench_instruction_overhead ...                                                   a pipeline of two, with messages
// Times are of the thread's processor clock, so other programs on the machine disturb them little. A wait for the other rank is
// the schedule's bubble, not the worker's work, but it polls, which is processor time: so with two ranks the sections are timed
// by the wall clock and the messenger's account of its waits is taken off. That needs an idle machine.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>
#include <time.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "executor/host/backend.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/plan/planning.hpp"
#include "executor/train/worker.hpp"
#include "executor/transport/mpi_transport.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/recover/protocol.hpp"
#include "rheo/recover/replan.hpp"
#include "rheo/schedule/families/families.hpp"

namespace {

using namespace rheo;

double processor_seconds()
{
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The least of several repetitions, in microseconds per one of `count`, by a clock that gives seconds.
template <class Work, class Clock = double (*)()>
double microseconds_each(std::size_t count, Work&& work, Clock&& clock = processor_seconds)
{
    double least = 1e30;
    for (int repetition = 0; repetition < 7; ++repetition) {
        auto const start = clock();
        work();
        least = std::min(least, clock() - start);
    }
    return 1e6 * least / static_cast<double>(count);
}

struct arguments {
    bool json = false;
    int microbatches = 2000;
    int blocks = 2;
    std::string schedule = "1f1b";
};

arguments read_arguments(int argc, char** argv)
{
    arguments result;
    for (int i = 1; i < argc; ++i) {
        std::string_view const word{argv[i]};
        if (word == "--json") {
            result.json = true;
        } else if (word == "--microbatches" && i + 1 < argc) {
            result.microbatches = std::stoi(argv[++i]);
        } else if (word == "--blocks" && i + 1 < argc) {
            result.blocks = std::stoi(argv[++i]);
        } else if (word == "--schedule" && i + 1 < argc) {
            result.schedule = argv[++i];
        } else {
            fmt::print(stderr, "usage: bench_instruction_overhead [--json] [--microbatches N] [--blocks N] [--schedule NAME]\n");
            std::exit(2);
        }
    }
    return result;
}

/// The protocol's books of a rank, as a running step has them.
protocol_state<recovery_plan> books_of(job const& about, worker& w)
{
    protocol_state<recovery_plan> state;
    state.phase = protocol_phase::section;
    for (std::size_t u = 0; u < about.state.uses.size(); ++u) {
        auto const layer = about.state.uses[u].layer;
        auto const here = w.stages();
        if (std::any_of(here.begin(), here.end(), [&](stage const* s) { return layer >= s->first_layer() && layer < s->last_layer(); })) {
            state.holds.uses.push_back({use_id{static_cast<std::int32_t>(u)}, {}});
        }
    }
    return state;
}

struct line {
    std::string_view what;
    double microseconds;
};

void measure(arguments const& wanted_by_user)
{
    auto const members = mpi::first_generation(MPI_COMM_WORLD, generation_id{1});
    auto const ranks = static_cast<int>(members.members.size());
    auto const self = members.self;

    run_config config;
    config.model = {.vocabulary = 256, .context = 8, .width = 8, .heads = 1, .blocks = wanted_by_user.blocks};
    config.train.microbatches = wanted_by_user.microbatches;
    config.train.microbatch = {1, 2};
    config.plan.pipelines = {ranks};
    config.plan.failures = 0;
    config.plan.schedule = *parse_schedule(wanted_by_user.schedule);
    auto const runs = fused(gpt_model(config.model));
    auto const state = state_of(runs);
    auto const first = make_plan(runs, config, ranks);
    if (!first) {
        fmt::print(stderr, "{}\n", first.error());
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    auto const folder = std::filesystem::temp_directory_path() / fmt::format("rheo-instruction-overhead-{}", ::getpid());
    dataset const data{config.data, config.model.vocabulary, config.train.microbatch};
    host_backend backend{1};
    records silent{(folder / "silent").string(), self, false, true};
    records tracing{(folder / "tracing").string(), self, true, true};
    job const about{runs, state, reduction_units(state, static_cast<int>(runs.layers.size())), config};
    rank_services const with{.data = data, .backend = backend, .record = silent};
    rank_services const with_traces{.data = data, .backend = backend, .record = tracing};
    resident_state resident{about.state, backend};
    initialise_layers(resident, layer_id{0}, layer_id{static_cast<int>(runs.layers.size())}, 1);
    std::fill(resident.scales.begin(), resident.scales.end(), 20);
    for (std::size_t u = 0; u < state.uses.size(); ++u) {
        resident.accumulator(use_id{static_cast<std::int32_t>(u)});
    }
    worker w{about, with, first->plan, self, resident};
    worker tracing_worker{about, with_traces, first->plan, self, resident};
    auto* in_use = &w;
    auto const place = w.place();
    auto const programs = programs_of(first->plan, about.units, about.layers());
    auto const& row = programs[at(place.pipeline)].rows[static_cast<std::size_t>(place.position)];
    auto const& work = first->plan.work[at(place.pipeline)];
    mpi::messenger messages{members};
    section_context const context{members.id, step_id{1}, attempt_id{0}, true};
    loss_sum unused;
    std::size_t computed = 0;
    w.computed = tracing_worker.computed = [&](instruction, seconds) { ++computed; };

    std::chrono::steady_clock::duration computed_for{};  // what sections took but for waits
    auto const section = [&](std::function<bool(use_id, microbatch_id)> const& wanted,
                             std::function<void(std::span<use_id const>, microbatch_id)> const& contributed) {
        MPI_Barrier(MPI_COMM_WORLD);  // a rank that waits for the other spins, and would count that as its own
        messages.begin_section();
        auto const waited = messages.waited();
        auto const start = std::chrono::steady_clock::now();
        in_use->run(row, work, context, messages, wanted, contributed, unused);
        computed_for += std::chrono::steady_clock::now() - start - (messages.waited() - waited);
    };
    auto const plain_section = [&] { section([](use_id, microbatch_id) { return true; }, [](std::span<use_id const>, microbatch_id) {}); };
    auto const booked_section = [&] {
        auto books = books_of(about, *in_use);
        section([&](use_id use, microbatch_id m) { return wanted(books, use, m); },
                [&](std::span<use_id const> uses, microbatch_id m) { note(books, uses, m); });
    };

    auto const instructions = row.size();
    std::function<double()> const clock_of_sections = [&] { return ranks == 1 ? processor_seconds() : std::chrono::duration<double>(computed_for).count(); };
    double const plain = microseconds_each(instructions, plain_section, clock_of_sections);
    double const booked = microseconds_each(instructions, booked_section, clock_of_sections);
    in_use = &tracing_worker;
    double const traced = microseconds_each(
        instructions,
        [&] {
            booked_section();
            auto const start = std::chrono::steady_clock::now();
            tracing.flush();
            computed_for += std::chrono::steady_clock::now() - start;
        },
        clock_of_sections);
    in_use = &w;

    // The same computations without a worker, and what else the loop does, piece by piece.
    auto& layers = *w.stages().front();
    activation kept{layers.layout()};
    std::vector<float> above(layers.output_bytes() / sizeof(float), 0.01F);
    std::vector<float> below(layers.input_bytes() / sizeof(float));
    if (layers.input(kept) != nullptr) {
        std::fill_n(static_cast<float*>(layers.input(kept)), layers.input_bytes() / sizeof(float), 0.01F);
    }
    std::function<bool(use_id)> const all = [](use_id) { return true; };
    bool const reads = layers.input_bytes() == 0 || layers.has_loss();
    auto const count = static_cast<std::size_t>(config.train.microbatches);
    auto const read = [&](int m) { data.training_microbatch(1, context.step, microbatch_id{m}, kept.tokens, kept.targets); };
    read(0);
    mpi_transport by{messages, backend.has_one_memory()};
    double const kernels = microseconds_each(instructions, [&] {
        for (int m = 0; m < config.train.microbatches; ++m) {
            stage_item const item{1, context.step, microbatch_id{m}, true};
            layers.forward(kept, item, unused);
            layers.backward(kept, item, layers.first_layer(), layers.has_loss() ? nullptr : above.data(), below.empty() ? nullptr : below.data(), all);
        }
        for (auto& r : w.reductions()) {
            if (ranks == 1) {  // with no peer, a post is the conversion and nothing else
                r.reset();
                r.post(by);
            }
        }
    });
    double const reading = reads ? microseconds_each(count,
                                                     [&] {
                                                         for (int m = 0; m < config.train.microbatches; ++m) {
                                                             read(m);
                                                         }
                                                     })
                                 : 0;
    constexpr int many = 20000;
    double const looking = microseconds_each(many, [&] {
        for (int i = 0; i < many; ++i) {
            messages.throw_if_failed();
        }
    });
    double const clock = microseconds_each(many, [&] {
        double sum = 0;
        for (int i = 0; i < many; ++i) {
            sum += with.clock.now().count;
        }
        if (sum == 1) {
            fmt::print("\n");
        }
    });
    double const event = microseconds_each(many,
                                           [&] {
                                               for (int i = 0; i < many; ++i) {
                                                   auto const now = with.clock.now();
                                                   tracing.event({.rank = self,
                                                                  .activity = activity::forward,
                                                                  .pipeline = place.pipeline,
                                                                  .stage = stage_id{place.position},
                                                                  .item = i,
                                                                  .generation = context.generation,
                                                                  .step = context.step,
                                                                  .attempt = context.attempt,
                                                                  .start = now,
                                                                  .end = now});
                                               }
                                               tracing.flush();
                                           }) -
                         clock;
    double const noting = microseconds_each(count, [&] {
        auto books = books_of(about, *in_use);
        for (int m = 0; m < config.train.microbatches; ++m) {
            note(books, layers.uses(), microbatch_id{m});
        }
    });

    constexpr int stream = 4096;
    double const message = ranks < 2 || self.value > 1 ? 0 : microseconds_each(stream, [&] {
        rank_id const other{1 - self.value};
        constexpr int burst = 16;
        std::vector<float> sent(8);
        std::vector<std::vector<float>> received(burst, std::vector<float>(8));
        std::vector<mpi::messenger::ticket> tickets;
        for (int i = 0; i < stream / 2; i += burst) {
            tickets.clear();
            for (int k = 0; k < burst; ++k) {
                tickets.push_back(messages.receive(other, mpi::channel::copy, k, std::span{received[static_cast<std::size_t>(k)]}));
            }
            for (int k = 0; k < burst; ++k) {
                tickets.push_back(messages.send(other, mpi::channel::copy, k, std::span<float const>{sent}));
            }
            for (auto const ticket : tickets) {
                messages.wait(ticket);
            }
        }
    });

    std::vector<line> const table{
        {"worker, no trace, no books", plain},
        {"worker, no trace", booked},
        {"worker with trace", traced},
        {"kernels alone", kernels},
        {"beyond the kernels, no trace", booked - kernels},
        {"beyond the kernels with trace", traced - kernels},
        {"  look at the generation, each", looking},
        {"  clock, each (two an instruction)", clock},
        {"  trace event written, each", event},
        {"  reading a microbatch, each", reading},
        {"  books of a backward, each", noting},
        {"  message in a stream, each", message},
    };
    for (int sender = 0; sender < ranks; ++sender) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (sender != self.value) {
            continue;
        }
        if (wanted_by_user.json) {
            nlohmann::ordered_json const object{{"bench", "instruction_overhead"},
                                                {"ranks", ranks},
                                                {"rank", self.value},
                                                {"instructions", instructions},
                                                {"uses", layers.uses().size()},
                                                {"worker_us", booked},
                                                {"worker_without_books_us", plain},
                                                {"worker_traced_us", traced},
                                                {"kernels_us", kernels},
                                                {"overhead_us", booked - kernels},
                                                {"overhead_traced_us", traced - kernels},
                                                {"look_us", looking},
                                                {"clock_us", clock},
                                                {"event_us", event},
                                                {"read_us", reading},
                                                {"books_of_a_backward_us", noting},
                                                {"message_us", message}};
            fmt::print("{}\n", object.dump());
        } else {
            fmt::print("rank {} of {}: {} instructions, microseconds per instruction, {}\n", self.value, ranks, instructions,
                       ranks == 1 ? "processor time" : "without waits for the other rank");
            for (auto const& [what, microseconds] : table) {
                fmt::print("  {:<36}{:>9.3f}\n", what, microseconds);
            }
        }
        std::fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv)
{
    auto const wanted_by_user = read_arguments(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    measure(wanted_by_user);
    MPI_Finalize();
}
