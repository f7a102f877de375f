// SPDX-License-Identifier: Apache-2.0
#include "runtime/run.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "mpi/messenger.hpp"
#include "rheo/model/state.hpp"
#include "runtime/collectives.hpp"
#include "runtime/fence.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/planning.hpp"
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
refusal compare_fingerprints(mpi::messenger& messages, job const& about)
{
    auto const lines = fingerprint_of(about);
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

run_result refused(refusal const& why, bool speaks)
{
    run_result result;
    result.exit_code = why.exit_code;
    result.record.exit_code = why.exit_code;
    result.record.sentence = why.sentence;
    result.speaks = speaks;
    return result;
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

run_result run(MPI_Comm comm, model_description const& model, run_config const& config, run_options options)
{
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

    std::optional<dataset> data;
    refusal why;
    try {
        data.emplace(config.data, vocabulary, config.train.microbatch);
    } catch (data_error const& error) {
        why = {4, error.what()};
    }
    tile_pool pool{config.run.threads};
    launch_words launch;
    std::optional<records> record;
    // Beginning is a section like any other: a rank that dies in it is shrunk away and the rest begin again.
    for (;;) {
        try {
            mpi::messenger messages{*generation};
            if (generation->members.front() == me && why.exit_code == 0) {
                try {
                    begin_run_folder(config.run.folder, config);
                } catch (records_error const& error) {
                    why = {5, error.what()};
                }
            }
            auto const failed = all_gather(messages, std::vector<std::int64_t>{why.exit_code});
            for (std::size_t r = 0; r < failed.size(); ++r) {  // one rank speaks, the lowest with a reason
                if (failed[r][0] != 0) {
                    auto const culprit = generation->members[r];
                    auto const other = refusal{static_cast<int>(failed[r][0]), fmt::format("rank {} cannot begin", culprit.value)};
                    return refused(culprit == me ? why : other, culprit == me);
                }
            }
            if (auto const bad = agree_on_launch(messages, config.run.folder, launch); bad.exit_code != 0) {
                return refused(bad, generation->members.front() == me);
            }
            job const about{runs, state, {}, config, &*data, launch_clock{launch.launched_ns}, nullptr, {}, &pool};
            if (auto const bad = compare_fingerprints(messages, about); bad.exit_code != 0) {
                return refused(bad, generation->members.front() == me);
            }
            if (auto const settled = mpi::agree(generation->recovery, 1); settled.success && (settled.bits & 1) != 0) {
                break;
            }
        } catch (mpi::peer_lost const&) {
            generation->revoke();
            mpi::agree(generation->recovery, 0);
        }
        generation->revoke();
        generation = std::make_unique<mpi::generation>(mpi::next_generation(*generation));
    }

    run_result result;
    try {
        record.emplace(config.run.folder, me, config.run.trace, options.quiet);
        job const about{runs,   state,    reduction_units(state, static_cast<int>(runs.layers.size())), config,
                        &*data, launch_clock{launch.launched_ns}, &*record, fault_injector{faults, me},
                        &pool};
        generation->id = generation_id{launch.last.value + 1};
        trainer training{about, std::move(generation), launch.launch, std::move(first), what_ranks_know(runs, state, config, launched)};
        auto const end = training.run();
        result.record = end.record;
        result.exit_code = end.record.exit_code;
        record->flush();
        // The rank that speaks may die before the report is written: then the next one writes it.
        do {
            result.speaks = lowest_alive(training.members()) == me;
            if (result.speaks) {
                record->speaker(true);
                record->finish(end.record);
            }
        } while (!mpi::agree(training.members().recovery, 1).success);
        result.survivors = training.members().data.release();
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
