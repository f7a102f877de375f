// SPDX-License-Identifier: Apache-2.0
#include "executor/train/run.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include "executor/clocks/clock_request.hpp"
#include "executor/clocks/frontier_cache.hpp"
#include "executor/clocks/rank_device.hpp"
#include "executor/faults/time_limit.hpp"
#include "executor/host/backend.hpp"
#include "executor/mpi/cuda_support.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/os/exit_without_finalize.hpp"
#include "executor/plan/job_summary.hpp"
#include "executor/plan/plan_json.hpp"
#include "executor/plan/planning.hpp"
#include "executor/records/record_text.hpp"
#include "executor/train/ending.hpp"
#include "executor/train/fingerprint.hpp"
#include "executor/train/job_setup.hpp"
#include "executor/train/opened_backend.hpp"
#include "executor/train/rank_services.hpp"
#include "executor/train/same_command.hpp"
#include "executor/train/startup.hpp"
#include "executor/train/trainer.hpp"
#include "kernels/blas.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

volatile std::sig_atomic_t stop_signal = 0;
volatile std::sig_atomic_t leave_signal = 0;

/// True when a signal or the time limit stops the job after the step.
std::function<bool()> stop_request(run_options const& options, launch_clock clock)
{
    if (options.stop_on_signals) {
        std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of the write, as a full disk is
        stop_signal = 0;
        for (int const number : {SIGTERM, SIGUSR1}) {
            std::signal(number, [](int) { stop_signal = 1; });
        }
    }
    return [limit = options.max_time, clock] { return stop_signal != 0 || (limit.count > 0 && clock.now() > limit); };
}

/// True when a signal asks this rank to leave. Only where the others can continue without it.
std::function<bool(step_id)> leave_request(run_options const& options, fault_injector faults)
{
    bool const possible = mpi::survives_losses();
    if (options.stop_on_signals) {
        leave_signal = 0;
        std::signal(SIGUSR2, possible ? [](int) { leave_signal = 1; } : SIG_IGN);
    }
    if (!possible) {
        return {};
    }
    return [faults = std::move(faults)](step_id step) { return leave_signal != 0 || faults.leaves(step); };
}

run_result refused(startup_error const& error, bool is_reporter)
{
    run_result result;
    result.exit_code = number_of(error.code);
    result.record.exit_code = number_of(error.code);
    result.record.message = error.message;
    result.is_reporter = is_reporter;
    return result;
}

/// What every run prints first, and keeps for the next start: plan.json and, when no loss is survived, the command.
void say_first(records& record, run_config const& config, plan const& first, mpi::generation const& members, std::vector<std::string> const& notes,
               bool stops_on_signals)
{
    bool const survives = mpi::survives_losses();
    record.note(what_a_loss_does(survives));
    for (auto const& message : notes) {
        record.note(message);
    }
    if (members.members.front() != members.self) {
        return;
    }
    std::ofstream{config.run.folder + "/plan.json"} << format_members(to_json(first));
    record.in_force(first, members.id);
    if (stops_on_signals) {
        record.note(how_to_stop(static_cast<int>(members.members.size())));
    }
    if (!survives) {
        auto const line = same_command(static_cast<int>(members.members.size()));
        keep_command(config.run.folder, line);
        record.note("the same command, also in " + config.run.folder + "/command: " + line);
    }
}

/// What a rank needs for clocks and energy; nothing where the config wants none.
struct opened_power {
    std::unique_ptr<frontier_cache> clocks{};
    std::unique_ptr<rank_device> device{};
    watts blocking{};
};

opened_power open_power(run_config const& config, model_description const& model, rank_id self, startup_error& failure)
{
    opened_power power;
    if (config.power.device == power_source::none || failure) {
        return power;
    }
    profile measured;
    if (!config.power.clock_profile.empty()) {
        auto read = read_clock_profile(config.power, static_cast<int>(model.layers.size()));
        if (!read) {
            failure = {exit_code::bad_data, read.error().message};
            return power;
        }
        measured = *read;
        power.clocks = std::make_unique<frontier_cache>(measured, clock_request_of(config.power, measured), group_exchanges_of(model, config));
    }
    power.blocking = blocking_of(measured, config.power.blocking);
    auto device = rank_device::open(config.power, measured, self, place_on_host(), group_exchanges_of(model, config));
    if (device) {
        power.device = std::move(*device);
    } else {
        failure = {exit_code::environment, device.error().message};
    }
    return power;
}

/// Whether this is the lowest rank of a communicator that is not known to have failed.
bool is_lowest_alive(MPI_Comm comm)
{
    mpi::communicator borrowed{comm};
    auto const failed = mpi::get_failed(borrowed);
    int lowest = 0;
    while (std::find(failed.begin(), failed.end(), lowest) != failed.end()) {
        ++lowest;
    }
    bool const mine = lowest == borrowed.rank();
    static_cast<void>(borrowed.release());
    return mine;
}

/// The communicators of the ranks that begin; none when one was lost meanwhile, on all ranks alike. The caller's communicator is not ours to revoke:
/// a rank that the MPI does not wake from making one has the limit.
std::unique_ptr<mpi::generation> join(MPI_Comm comm, watchdog_config const& watch)
{
    time_limit const waits{limited_start(watch.start, false, "all ranks to make communicators")};
    MPI_Errhandler before = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(comm, &before);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    auto generation = std::make_unique<mpi::generation>();
    bool const joined = mpi::unless_peer_lost([&] { *generation = mpi::first_generation(comm, generation_id{0}); });
    mpi::communicator borrowed{comm};
    auto const settled = mpi::agree(borrowed, joined ? 1 : 0);
    static_cast<void>(borrowed.release());
    if (!settled.success || (settled.bits & 1) == 0) {
        static_cast<void>(generation.release());  // freeing what some ranks have not made may wait for them, and the process ends
    }
    MPI_Comm_set_errhandler(comm, before);
    MPI_Errhandler_free(&before);
    return generation;
}

/// The width of the first embedding, the number of different tokens; 0 where there is none.
int vocabulary_of(model_description const& model)
{
    int vocabulary = 0;
    for (auto const& o : model.layers.front().ops) {
        vocabulary = o.kind == op_kind::embedding ? o.in_width : vocabulary;
    }
    return vocabulary;
}

/// Beginning is a section like any other: a rank that dies in it is shrunk away and the rest begin again. A refusal is agreed, too: no rank leaves
/// while others could take that for a loss.
/// @param mine why this rank cannot begin, if it cannot; out: the refusal, on the rank that should say it
startup_error begin_all(std::unique_ptr<mpi::generation>& generation, run_config const& config, std::vector<fingerprint_line>& fingerprint,
                        state_digest planned, resume_mode mode, collection const& state, watchdog& watch, startup_error& mine, startup& begun)
{
    auto const launched = static_cast<int>(generation->members.size());
    time_limit const all_of_it{limited_start(config.run.watchdog.start, true, "all ranks to begin")};
    watchdog::wait const waits{&watch};
    for (;;) {
        auto agreed = mine;
        startup_error bad;
        bool const together = mpi::unless_peer_lost([&] {
            mpi::messenger messages{*generation, &watch.heartbeat()};
            bad = start_together(messages, config, fingerprint, planned, mode, state, agreed, begun);
        });
        if (together && !bad) {
            watch.join_host(begun.launch.launch.value, launched);
        }
        auto const settled = mpi::agree(generation->recovery(), together ? 1 : 0);
        if (settled.success && (settled.bits & 1) != 0) {
            mine = agreed;
            return bad;
        }
        generation->revoke();
        generation = std::make_unique<mpi::generation>(mpi::next_generation(std::move(*generation)));
    }
}

/// The result of a run that had ended before this launch: what its report says.
run_result had_ended(ended_run const& run, std::vector<std::string> const& notes, mpi::generation members, bool quiet)
{
    run_result result;
    result.exit_code = run.record.exit_code;
    result.record = run.record;
    result.is_reporter = members.members.front() == members.self;
    if (result.is_reporter && !quiet) {
        fmt::print("{}\n{}", fmt::join(notes, "\n"), final_table(run.record, run.recoveries));
        std::fflush(stdout);
    }
    result.survivors = mpi::survivors_of(std::move(members)).release();
    return result;
}

/// What this rank computes with. @param failure set when it cannot: then it uses the host until all ranks know
std::unique_ptr<compute_backend> open_backend(run_config const& given, model_description const& model, startup_error& failure)
{
    try {
        return open_backend(given, model);
    } catch (std::runtime_error const& error) {
        failure = {exit_code_of(error), error.what()};
        return std::make_unique<host_backend>(given.run.threads);
    }
}

/// What a rank opens before it meets the others.
struct opened_rank {
    std::unique_ptr<compute_backend> backend;
    std::optional<dataset> data;
    std::vector<fingerprint_line> fingerprint;
    opened_power power;
    startup_error failure;  ///< what this rank cannot open: all ranks learn it when they begin
};

/// @param first the plan of the launch; out: with its clocks
opened_rank open_rank(run_config const& given, model_description const& model, rank_id self, plan& first)
{
    opened_rank o;
    o.backend = open_backend(given, model, o.failure);
    try {
        o.data.emplace(given.data, vocabulary_of(model), given.train.microbatch, given.train.microbatches);
        o.fingerprint = fingerprint_of(model, given, *o.data, *o.backend);
    } catch (std::runtime_error const& error) {
        o.failure = {exit_code_of(error), error.what()};
    }
    if (auto const free = o.backend->free_memory(); free && !o.failure) {
        if (auto message = over_device(first, model, given, self, o.backend->workspace_of_kernels(), *free); !message.empty()) {
            o.failure = {exit_code::impossible_plan, std::move(message)};
        }
    }
    o.power = open_power(given, model, self, o.failure);
    first.clocks.clear();
    if (o.power.clocks) {
        if (auto chosen = o.power.clocks->choose(first, {})) {
            first.clocks = std::move(chosen->clocks);
        } else if (!o.failure) {
            o.failure = {exit_code::impossible_plan, fmt::format("{}: the plan cannot have clocks: {}", given.power.clock_profile, chosen.error())};
        }
    }
    return o;
}

/// Trains until the job ends. Where the last copy of a layer is gone, but there is a checkpoint, the survivors resume from it, in this job.
/// @param training out: the last trainer, which has the members  @param launched ranks at launch
training_end train(std::optional<trainer>& training, job const& about, rank_services const& services, std::unique_ptr<mpi::generation>& generation,
                   startup& begun, plan const& first, int launched, bool stops_on_signals)
{
    for (;;) {
        training.emplace(about, services, generation, begun.launch.launch,
                         step_planner{about, about.config, first, make_replanning(about.model, about.config, launched)}, begun.from, begun.so_far);
        say_first(services.record, about.config, first, training->members(), std::exchange(begun.notes, {}), stops_on_signals);
        auto end = training->run();
        if (!end.resume_from) {
            return end;
        }
        begun.from.emplace(checkpoint_folder(about.config.run.folder, *end.resume_from));
        begun.so_far = end.so_far;
        generation = training->release_members();
        ++generation->id.value;
    }
}

/// The ranks end together; those that are left have a communicator. @param result out: how it ended
void conclude(trainer& training, training_end const& end, launch_id launch, run_config const& config, records& record, watchdog& watch, run_result& result)
{
    result.record = end.record;
    result.exit_code = end.record.exit_code;
    record.flush();
    if (end.reason == leave_reason::drained) {
        result.drained = true;
        // Communicators end with the process: freeing one may wait for those who continue, and they wait for this rank's end.
        static_cast<void>(training.release_members().release());
        return;
    }
    auto members = end_together(training.release_members(), launch, config, end.record, record, watch, result);
    watchdog::wait const waits{&watch};
    result.survivors = mpi::survivors_of(std::move(*members)).release();
}

}  // namespace

run_result run(MPI_Comm comm, model_description const& model, run_config const& given, run_options options)
{
    auto generation = join(comm, given.run.watchdog);
    if (generation == nullptr) {
        return refused({exit_code::environment, "a rank was lost before the job began: start it again"}, is_lowest_alive(comm));
    }
    auto const self = generation->self;
    auto const launched = static_cast<int>(generation->members.size());
    auto [wrong, config, faults, runs, state, units, first] = prepare(model, given, options, launched);
    if (wrong) {
        return refused(wrong, self.value == 0);
    }

    auto [backend, data, fingerprint, power, failure] = open_rank(config, runs, self, first);
    config.power.blocking = power.blocking;  // in effect
    startup begun;
    auto planned = digest_of(first);
    planned += digest_of(programs_of(first, units, static_cast<int>(runs.layers.size())));
    begun.clock_permission = power.device ? power.device->permission() : std::string{};
    begun.device = power.device ? power.device->message() : std::string{};
    begun.nccl = offer_nccl(config, *backend);
    watchdog watch{given.run.watchdog, self};
    try {
        if (auto const bad = begin_all(generation, config, fingerprint, planned, options.resume, state, watch, failure, begun)) {
            return refused(bad, static_cast<bool>(failure));
        }
    } catch (std::exception const& error) {
        return end_in_error(std::move(generation), false, error, nullptr, watch);
    }
    if (begun.ended) {
        return had_ended(*begun.ended, begun.notes, std::move(*generation), options.quiet);
    }
    if (auto const* const chosen = line_in(fingerprint, algorithms_line)) {
        backend->take_over_algorithms(chosen->value);
    }
    std::optional<records> record;
    watch.all_joined();
    config.run.folder = begun.folder;
    std::ranges::move(job_summary(first, runs, config, data->training_tokens(), data->order(), !begun.from), std::back_inserter(begun.notes));
    std::ranges::move(notes_of(*backend, given, runs), std::back_inserter(begun.notes));
    auto const& launch = begun.launch;
    std::optional<energy_account> energies;
    if (power.device) {
        energies.emplace(generation->members, begun.drawn, std::int64_t{config.train.microbatches} * microbatch_rows(config.train.microbatch));
    }

    run_result result;
    result.patience = given.run.watchdog.factor > 0 ? given.run.watchdog.least : seconds{};
    job const about{runs, state, units, config, fingerprint, begun.run};
    std::optional<rank_services> services;
    std::optional<trainer> training;
    try {
        record.emplace(config, self, options.quiet);
        launch_clock const clock{launch.launched};
        fault_injector const injector{faults, self};
        services.emplace(rank_services{.data = *data,
                                       .backend = *backend,
                                       .record = *record,
                                       .clock = clock,
                                       .inject = injector,
                                       .watch = &watch,
                                       .asked = {stop_request(options, clock), leave_request(options, injector)},
                                       .device = power.device.get(),
                                       .frontiers = power.clocks.get(),
                                       .energies = energies ? &*energies : nullptr,
                                       .nccl = begun.moves.by_nccl ? begun.nccl.library : nullptr,
                                       .multiprocessors = begun.moves.multiprocessors,
                                       .mpi_reaches_device = mpi::has_cuda_support()});
        generation->id = generation_id{launch.last.value + 1};
        auto const end = train(training, about, *services, generation, begun, first, launched, options.stop_on_signals);
        conclude(*training, end, launch.launch, config, *record, watch, result);
    } catch (mpi::excluded_from_job const& error) {  // the records are the others' now
        exit_without_finalize(fmt::format("rank {}: {}; it commits and writes nothing more, and ends itself", self.value, error.what()));
    } catch (std::exception const& error) {
        bool const voted = training && training->generation_is_voted_down();
        if (training && generation == nullptr) {
            generation = training->abandon();
        }
        return end_in_error(std::move(generation), voted, error, record ? &*record : nullptr, watch);
    }
    return result;
}

}  // namespace rheo::inline v0
