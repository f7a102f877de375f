// SPDX-License-Identifier: Apache-2.0
#include "runtime/run.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "mpi/messenger.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/json.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/checkpoint_resume.hpp"
#include "runtime/collectives.hpp"
#include "runtime/fence.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/planning.hpp"
#include "runtime/toml.hpp"
#include "runtime/same_command.hpp"
#include "runtime/trainer.hpp"

namespace rheo::inline v0 {

namespace {

/// A refusal that all ranks come to together, before anything is started.
struct refusal {
    int exit_code = 0;
    std::string sentence;
};

/// What the first member decides for all at the start.
struct launch_words {
    launch_id launch{};
    std::int64_t launched_ns = 0;
    generation_id last{0};
};

std::filesystem::path nonce_of(std::filesystem::path const& folder, launch_id launch)
{
    return folder / fmt::format(".launch-{}", launch.value);
}

/// All ranks compare fingerprints; a mixture is refused with the line that differs.
refusal compare_fingerprints(mpi::messenger& messages, std::vector<fingerprint_line> const& lines)
{
    std::vector<std::int64_t> hashes;
    for (auto const& line : lines) {
        hashes.push_back(static_cast<std::int64_t>(hash_text(line.value)));
    }
    auto const all = all_gather(messages, hashes);
    for (std::size_t r = 0; r < all.size(); ++r) {
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (all[r].size() != lines.size() || all[r][i] != all[0][i]) {
                return {5, fmt::format("rank {} differs from rank {} in {}: all ranks must have the same for the same bits",
                                       messages.members().members[r].value, messages.members().members[0].value, lines[i].what)};
            }
        }
    }
    return {};
}

/// The first member looks at the run folder and names the launch; the others check that they see the same folder.
refusal agree_on_launch(mpi::messenger& messages, std::filesystem::path const& folder, launch_words& launch)
{
    bool const first = messages.members().members.front() == messages.members().me;
    std::vector<std::int64_t> words(3);
    if (first) {
        std::random_device random;
        launch.launch.value = (std::uint64_t{random()} << 31) ^ random();
        launch.launched_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
        launch.last = last_generation(folder);
        std::ofstream{nonce_of(folder, launch.launch)} << "rheo\n";
        words = {static_cast<std::int64_t>(launch.launch.value), launch.launched_ns, launch.last.value};
    }
    broadcast(messages, words);
    launch = {{static_cast<std::uint64_t>(words[0])}, words[1], generation_id{static_cast<std::int32_t>(words[2])}};
    step_scalars missing{{}, {std::filesystem::exists(nonce_of(folder, launch.launch)) ? 0 : 1}};
    all_reduce(messages, missing);
    if (first) {
        std::filesystem::remove(nonce_of(folder, launch.launch));
    }
    if (missing.sums.front() != 0) {
        return {5, fmt::format("{} of {} ranks do not see the run folder {}: it must be one folder shared by all ranks", missing.sums.front(),
                               messages.members().members.size(), folder.string())};
    }
    return {};
}

/// Whether any rank has a reason not to begin. One rank speaks, the lowest with a reason.
refusal first_refusal(mpi::messenger& messages, refusal const& mine)
{
    auto const all = all_gather(messages, std::vector<std::int64_t>{mine.exit_code});
    for (std::size_t r = 0; r < all.size(); ++r) {
        if (all[r][0] != 0) {
            auto const culprit = messages.members().members[r];
            return culprit == messages.members().me ? mine : refusal{static_cast<int>(all[r][0]), fmt::format("rank {} cannot begin", culprit.value)};
        }
    }
    return {};
}

/// The folder of a run, or of its k-th fork.
std::string folder_of(std::string const& folder, std::int64_t fork) { return fork == 0 ? folder : fmt::format("{}-fork-{}", folder, fork); }

/// What the lowest rank does with the run folder: looks for a checkpoint to go on from, and begins the folder.
/// @param words out: the checkpoint's step or -1, and which fork, 0 for none
refusal begin_folder(run_config config, std::vector<fingerprint_line> const& fingerprint, resume_mode mode, std::vector<std::int64_t>& words,
                     std::vector<std::string>& notes)
{
    auto const folder = config.run.folder;
    try {
        notes.clear();
        if (mode == resume_mode::never) {
            if (auto const aside = set_checkpoints_aside(folder); !aside.empty()) {
                notes.push_back(fmt::format("the checkpoints of an earlier run are in {} now", aside.string()));
            }
        } else {
            auto const found = find_newest_checkpoint(folder);
            notes = found.skipped;
            if (found.newest) {
                words[0] = found.newest->step().value;
                auto const differs = differences(found.newest->manifest().fingerprint, fingerprint);
                if (mode == resume_mode::fork) {
                    while (std::filesystem::exists(folder_of(folder, ++words[1]))) {
                    }
                } else if (!differs.empty()) {
                    return {2, fmt::format("cannot go on from the checkpoint of step {} in {}: {}; --resume fork starts a new folder from that state, "
                                           "--resume never begins anew",
                                           words[0], folder, differs.front().sentence())};
                }
                notes.push_back(fmt::format("going on after {} steps, from {}", words[0], found.newest->folder().string()));
                for (auto const& difference : differs) {
                    notes.push_back(difference.sentence());
                }
                for (auto const& key : changed_keys(found.newest->manifest().config, to_toml(config))) {
                    notes.push_back(key);
                }
            }
        }
        config.run.folder = folder_of(folder, words[1]);
        begin_run_folder(config.run.folder, config, words[0] >= 0 && words[1] == 0);
    } catch (records_error const& error) {
        return {5, error.what()};
    } catch (checkpoint_error const& error) {
        return {4, error.what()};
    }
    return {};
}

refusal open_checkpoint(std::string const& folder, step_id step, collection const& state, std::optional<checkpoint>& from)
{
    try {
        from.emplace(checkpoint_folder(folder, step));
        if (auto const reason = from->why_not(state); !reason.empty()) {
            return {2, reason};
        }
    } catch (checkpoint_error const& error) {
        return {4, error.what()};
    }
    return {};
}

volatile std::sig_atomic_t stop_signal = 0;

/// Tells whether somebody or the clock wants the job to stop after the step.
std::function<bool()> stop_asker(run_options const& options, std::int64_t launched_ns)
{
    if (options.stop_on_signals) {
        stop_signal = 0;
        for (int const number : {SIGTERM, SIGUSR1}) {
            std::signal(number, [](int) { stop_signal = 1; });
        }
    }
    return [limit = options.max_time, clock = launch_clock{launched_ns}] { return stop_signal != 0 || (limit.count > 0 && clock.now() > limit); };
}

run_result refused(refusal const& why, bool speaks)
{
    run_result result;
    result.exit_code = why.exit_code;
    result.record.exit_code = why.exit_code;
    result.record.sentence = why.sentence;
    result.speaks = speaks;
    return result;
}

/// What every run says first, and keeps for whoever starts it again: plan.json and, when no loss is survived, the command.
void say_first(records& record, run_config const& config, plan const& first, mpi::generation const& members,
               std::vector<std::string> const& notes)
{
    bool const survives = mpi::survives_losses();
    record.note(what_a_loss_does(survives));
    for (auto const& sentence : notes) {
        record.note(sentence);
    }
    if (members.members.front() != members.me) {
        return;
    }
    std::ofstream file{config.run.folder + "/plan.json"};
    write_json(file, first);
    if (!survives) {
        auto const line = same_command(static_cast<int>(members.members.size()));
        keep_command(config.run.folder, line);
        record.note("the same command, also in " + config.run.folder + "/command: " + line);
    }
}

/// The first member that is not known to have failed; those that have are acknowledged.
rank_id lowest_alive(mpi::generation const& members)
{
    auto const failed = mpi::acknowledge_failed(members.recovery);
    for (int position = 0; position < static_cast<int>(members.members.size()); ++position) {
        if (std::find(failed.begin(), failed.end(), position) == failed.end()) {
            return members.members[static_cast<std::size_t>(position)];
        }
    }
    return members.me;
}

/// Ends a rank that is in an error of its own: for the others it is lost.
[[noreturn]] void end_alone(std::string const& sentence)
{
    std::fprintf(stderr, "rheo: %s\n", sentence.c_str());
    std::fflush(stderr);
    for (;;) {
        kill(getpid(), SIGKILL);
    }
}

}  // namespace

run_result run(MPI_Comm comm, model_description const& model, run_config const& given, run_options options)
{
    auto config = given;  // a fork changes its folder
    MPI_Errhandler before = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(comm, &before);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    auto generation = std::make_unique<mpi::generation>(mpi::first_generation(comm, generation_id{0}));
    MPI_Comm_set_errhandler(comm, before);
    MPI_Errhandler_free(&before);
    auto const me = generation->me;
    auto const launched = static_cast<int>(generation->members.size());

    // What is wrong with the arguments is wrong on all ranks alike.
    if (auto const fault = check(model); fault.what != model_fault::kind::none) {
        return refused({2, "the model cannot be run: " + to_string(fault)}, me.value == 0);
    }
    for (auto const& fault : {rheo::check(config), check_ranks(config, launched)}) {
        if (fault) {
            return refused({2, fault->key + ": " + fault->sentence}, me.value == 0);
        }
    }
    std::vector<fault> faults;
    for (auto const& text : config.run.inject) {
        auto const parsed = parse_fault(text);
        if (!parsed.what) {
            return refused({2, parsed.reason}, me.value == 0);
        }
        faults.push_back(*parsed.what);
    }

    auto const runs = config.run.fuse ? fused(model) : model;
    auto const state = state_of(runs);
    int vocabulary = 0;
    for (auto const& o : runs.layers.front().ops) {
        vocabulary = o.kind == op_kind::embedding ? o.in_width : vocabulary;
    }
    plan first;
    if (options.first_plan) {
        first = *options.first_plan;
        if (auto const reason = why_not(first, runs, config, launched); !reason.empty()) {
            return refused({3, "the plan cannot be run: " + reason}, me.value == 0);
        }
    } else {
        auto made = make_first_plan(runs, config, launched);
        if (!made) {
            return refused({3, made.cannot}, me.value == 0);
        }
        first = std::move(made.what);
    }

    // Messages name a microbatch of a stage, or a part of a tensor or of a use.
    auto const items = std::max({std::int64_t{launched} * microbatches_in_messages(config.train), 4 * std::ssize(state.tensors), 2 * std::ssize(state.uses)});
    if (items > mpi::messenger::largest_item()) {
        return refused({5, fmt::format("messages have to tell {} things apart, but the tags of this MPI allow {}: fewer microbatches per step, or "
                                       "another transport of the MPI", items, mpi::messenger::largest_item())}, me.value == 0);
    }

    std::optional<dataset> data;
    refusal why;
    try {
        data.emplace(config.data, vocabulary, config.train.microbatch);
    } catch (data_error const& error) {
        why = {4, error.what()};
    }
    tile_pool pool{config.run.threads};
    watchdog watch{config.run.watchdog, me};
    launch_words launch;
    std::vector<fingerprint_line> fingerprint;
    std::vector<std::string> notes;  ///< what to tell people about the beginning
    std::optional<checkpoint> from;
    std::optional<records> record;
    // Beginning is a section like any other: a rank that dies in it is shrunk away and the rest begin again.
    for (;;) {
        try {
            mpi::messenger messages{*generation, &watch.signs_of_life()};
            if (auto const bad = first_refusal(messages, why); bad.exit_code != 0) {
                return refused(bad, bad.exit_code == why.exit_code && !why.sentence.empty());
            }
            job const about{runs, state, {}, config, &*data, launch_clock{0}, nullptr, {}, &pool};
            fingerprint = fingerprint_of(about);
            if (auto const bad = compare_fingerprints(messages, fingerprint); bad.exit_code != 0) {
                return refused(bad, generation->members.front() == me);
            }
            std::vector<std::int64_t> words{-1, 0};
            if (generation->members.front() == me) {
                why = begin_folder(config, fingerprint, options.resume, words, notes);
            }
            if (auto const bad = first_refusal(messages, why); bad.exit_code != 0) {
                return refused(bad, !why.sentence.empty());
            }
            broadcast(messages, words);
            config.run.folder = folder_of(given.run.folder, words[1]);
            if (auto const bad = agree_on_launch(messages, config.run.folder, launch); bad.exit_code != 0) {
                return refused(bad, generation->members.front() == me);
            }
            from.reset();
            if (words[0] >= 0) {
                why = open_checkpoint(given.run.folder, step_id{words[0]}, state, from);
            }
            if (auto const bad = first_refusal(messages, why); bad.exit_code != 0) {
                return refused(bad, !why.sentence.empty());
            }
            watch.join_host(launch.launch.value, launched);
            watchdog::wait const waits{&watch};
            if (auto const settled = mpi::agree(generation->recovery, 1); settled.success && (settled.bits & 1) != 0) {
                break;
            }
        } catch (mpi::peer_lost const&) {
            watchdog::wait const waits{&watch};
            generation->revoke();
            mpi::agree(generation->recovery, 0);
        }
        watchdog::wait const waits{&watch};
        generation->revoke();
        generation = std::make_unique<mpi::generation>(mpi::next_generation(*generation));
    }

    watch.all_joined();

    run_result result;
    try {
        record.emplace(config.run.folder, me, config.run.trace, options.quiet);
        job const about{runs,   state,    reduction_units(state, static_cast<int>(runs.layers.size())), config,
                        &*data, launch_clock{launch.launched_ns}, &*record, fault_injector{faults, me},
                        &pool,  &watch,   fingerprint, stop_asker(options, launch.launched_ns)};
        generation->id = generation_id{launch.last.value + 1};
        std::optional<trainer> training;
        training_end end;
        for (;;) {
            training.emplace(about, std::move(generation), launch.launch, first, what_ranks_know(runs, state, config, launched), from);
            say_first(*record, config, first, training->members(), std::exchange(notes, {}));
            end = training->run();
            if (!end.goes_on_from) {
                break;
            }
            // The last copy of a layer is gone, but there is a checkpoint: the survivors go on from it, in this job.
            from.emplace(checkpoint_folder(config.run.folder, *end.goes_on_from));
            generation = training->release_members();
            ++generation->id.value;
        }
        result.record = end.record;
        result.exit_code = end.record.exit_code;
        record->flush();
        watchdog::wait const waits{&watch};  // also for whoever writes the report
        // The rank that speaks may die before the report is written: then the next one writes it.
        do {
            result.speaks = lowest_alive(training->members()) == me;
            if (result.speaks) {
                record->speaker(true);
                record->finish(end.record);
            }
        } while (!mpi::agree(training->members().recovery, 1).success);
        result.survivors = training->members().data.release();
    } catch (std::exception const& error) {
        if (record) {
            record->note(error.what());
            record->flush();
        }
        end_alone(fmt::format("rank {}: {}", me.value, error.what()));
    }
    return result;
}

void leave_job(run_result const& result)
{
    std::fflush(nullptr);
    if (!mpi::survives_losses()) {  // then nobody was lost, and a launcher may take a missing MPI_Finalize for a failure
        MPI_Finalize();
        _exit(result.exit_code);
    }
#if RHEO_HAS_ULFM
    if (result.survivors != MPI_COMM_NULL) {
        int flag = 1;
        MPIX_Comm_agree(result.survivors, &flag);
    }
#endif
    if (result.speaks) {
        std::this_thread::sleep_for(std::chrono::milliseconds{300});
        _exit(result.exit_code);
    }
    _exit(0);
}

}  // namespace rheo::inline v0
