// SPDX-License-Identifier: Apache-2.0
#include "executor/train/ending.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "executor/faults/fence.hpp"
#include "executor/faults/time_limit.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/mpi/segment_folder.hpp"
#include "executor/os/exit_without_finalize.hpp"
#include "executor/records/trace_merge.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// The members after a loss. Their first deed is the link, as that of any generation; without a folder to link in there is nothing to write either.
std::unique_ptr<mpi::generation> without_lost(mpi::generation last, launch_id launch, std::string const& folder)
{
    auto next = std::make_unique<mpi::generation>(mpi::next_generation(std::move(last)));
    try {
        if (!link_generation_file(folder, {launch, generation_id{next->id.value - 1}, next->members}, next->self)) {
            throw mpi::excluded_from_job{"others have ended the job without it"};
        }
    } catch (exit_error const&) {
    }
    return next;
}

/// The records are written. One message to each other member: a tree of them would end with any rank that is lost.
void notify_others(mpi::messenger& messages)
{
    auto const& members = messages.members();
    std::int64_t const word = 1;
    std::vector<mpi::messenger::ticket> sent;
    for (auto const rank : members.members) {
        if (rank != members.self) {
            sent.push_back(messages.send(rank, mpi::channel::control, 0, std::span<std::int64_t const>{&word, 1}));
        }
    }
    for (auto const ticket : sent) {
        messages.wait(ticket);
    }
}

/// Waits for that message, also when ranks are lost that do not write: no rank enters an agreement before the one that writes can enter, too.
void wait_for_reporter(mpi::messenger& messages)
{
    auto const& members = messages.members();
    auto const reporter = members.members.front();
    std::int64_t word = 0;
    auto const heard = messages.receive(reporter, mpi::channel::control, 0, std::span{&word, 1});
    while (!messages.done(heard)) {
        auto const failed = mpi::get_failed(members.recovery());
        if (mpi::is_revoked(members.recovery()) || std::find(failed.begin(), failed.end(), members.address_of(reporter)) != failed.end()) {
            messages.throw_if_failed();
        }
        messages.beat();
        std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
}

}  // namespace

std::unique_ptr<mpi::generation> end_together(std::unique_ptr<mpi::generation> members, launch_id launch, run_config const& config, final_record const& end,
                                              records& record, watchdog& watch, run_result& result)
{
    for (bool written = false;;) {
        result.is_reporter = members->members.front() == members->self;
        bool const together = mpi::unless_peer_lost([&] {
            mpi::messenger messages{*members, &watch.heartbeat()};
            if (result.is_reporter && !written) {
                record.set_reporter(true);
                record.finish(end);
                written = true;
            }
            if (result.is_reporter) {
                notify_others(messages);
            } else {
                wait_for_reporter(messages);
            }
            written = true;
        });
        if (written) {
            watch.all_is_written(result.is_reporter ? end.exit_code : 0);
        }
        {
            watchdog::wait const waits{&watch};
            auto const settled = mpi::agree(members->recovery(), together ? 1 : 0);
            if (settled.success && (settled.bits & 1) != 0) {
                break;
            }
            members->revoke();
            members = without_lost(std::move(*members), launch, config.run.folder);
        }
    }
    if (result.is_reporter && config.run.trace) {
        result.merges = config.run.folder;
    }
    return members;
}

run_result end_in_error(std::unique_ptr<mpi::generation> members, bool voted, std::exception const& error, records* record, watchdog& watch)
{
    auto const message = members == nullptr ? std::string{error.what()} : fmt::format("rank {}: {}", members->self.value, error.what());
    bool const mpi_works = members != nullptr && members->recovery().handle() != MPI_COMM_NULL && dynamic_cast<mpi::error const*>(&error) == nullptr;
    auto const code = exit_code_of(error);
    bool all = false;
    bool lowest = false;
    if (!mpi::survives_losses()) {  // the launcher ends the others, with this code
        exit_without_finalize(message, number_of(code));
    }
    if (mpi_works) {
        try {
            watchdog::wait const waits{&watch};
            auto const last = mpi::end_of_generation(std::move(*members), voted, code == exit_code::bad_data ? mpi::no_other_error : mpi::no_error_of_data);
            all = last.all_end;
            lowest = last.lowest;
        } catch (std::exception const&) {  // what is wrong with the MPI matters less than the error itself
        }
    }
    if (!all) {
        if (record != nullptr) {
            record->note(error.what());
            record->flush();
        }
        exit_without_finalize(message);
    }
    run_result result;
    result.exit_code = number_of(code);
    result.record.exit_code = result.exit_code;
    result.record.message = message;
    result.is_reporter = lowest;
    if (lowest && record != nullptr) {
        try {
            record->set_reporter(true);
            record->finish(result.record);
        } catch (std::exception const&) {  // it is the error itself, perhaps
        }
    }
    return result;
}

void leave_job(run_result const& result)
{
    std::fflush(nullptr);
    auto const merge = [&] {
        if (result.merges.empty()) {
            return;
        }
        if (auto const missing = merge_traces(result.merges); !missing.empty()) {
            fmt::print(stderr, "rheo: {}\n", missing);
            std::fflush(stderr);
        }
    };
    if (!mpi::survives_losses()) {  // then no rank was lost, and a launcher may take a missing MPI_Finalize for a failure
        MPI_Finalize();
        mpi::leave_segment_folder();
        merge();
        _exit(result.exit_code);
    }
    auto const code = result.is_reporter ? result.exit_code : 0;
#if RHEO_HAS_ULFM
    if (result.survivors != MPI_COMM_NULL) {
        time_limit const waits{{.limit = result.patience, .exit_code = code}};
        int flag = 1;
        MPIX_Comm_agree(result.survivors, &flag);
    }
#endif
    if (result.is_reporter) {
        std::this_thread::sleep_for(std::chrono::milliseconds{300});
        merge();
    }
    mpi::leave_segment_folder();
    _exit(code);
}

}  // namespace rheo::inline v0
