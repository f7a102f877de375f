#pragma once
// SPDX-License-Identifier: Apache-2.0

// Turns a rank that hangs into a rank that is lost, which the job survives. A thread of each
// rank looks at two things. Its own rank: when an operation takes a multiple of the longest one so far, the
// rank sends itself SIGKILL. The other ranks of its host, by a page of shared memory in which every rank's
// thread counts: when one no longer counts and its process is stopped (SIGSTOP), it is killed, so that it cannot come back; one
// that only has no processor is left alone. Time that
// a rank spends waiting for others is none of its own: a wait that polls shows signs of life, and one that
// blocks inside MPI says so, and has a longer deadline. Time in which this thread itself did not run (a suspended job or machine) does not count.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executor/config/config.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// How long a count has stood still, and how long it may. A value without a clock: it is given the time that passed.
struct patience {
    seconds longest{};  ///< the longest stand-still that ended
    seconds still{};    ///< the one in progress
    std::uint64_t seen = 0;

    /// Takes note of a count after some time. @return how long it has stood still by now
    constexpr seconds observe(std::uint64_t count, seconds passed)
    {
        if (count == seen) {
            still += passed;
            return still;
        }
        seen = count;
        longest = still > longest ? still : longest;
        still = {};
        return still;
    }

    /// Forgives the stand-still in progress.
    constexpr void forgive() { still = {}; }
};

/// How long an operation may take: a multiple of the longest one so far, and never less than the configured least.
constexpr seconds deadline_of(watchdog_config const& config, patience const& own)
{
    seconds const multiple{config.factor * own.longest.count};
    return multiple > config.least ? multiple : config.least;
}

/// How long a rank may block in a call that waits for others. They arrive there within deadlines of their own, which may be longer
/// than this rank's; an MPI whose agreement has lost count of who died never returns from it.
constexpr seconds longest_wait_of(seconds deadline) { return {10 * deadline.count}; }

class watchdog {
public:
    /// Starts the thread, which watches this rank only.
    watchdog(watchdog_config const& config, rank_id self);
    ~watchdog();  ///< the others of the host no longer expect this rank to count
    watchdog(watchdog const&) = delete;
    watchdog& operator=(watchdog const&) = delete;

    /// Counts, from now on, where the ranks of this host see it, and watches them. What was joined before is left. When
    /// there is no shared memory it says so and continues alone. @param ranks how many the job was launched with
    void join_host(std::uint64_t launch, int ranks);

    /// All ranks have joined: the shared memory is unlinked, so that nothing stays behind.
    void all_joined();

    /// Shows the others of the host what this rank's device has counted, so that it is known when the rank is lost. Costs a store.
    /// @pre called by the thread that joins the host
    void shows(joules counted) noexcept;

    /// What a rank of this host had shown last, also one that is gone. @return none: it is on another host, or has shown nothing
    std::optional<joules> shown_by(rank_id rank) const noexcept;

    /// This rank has got something done. Costs an addition.
    void progress() noexcept { signs_.fetch_add(1, std::memory_order_relaxed); }

    /// The same for those who only know a counter.
    std::atomic<std::uint64_t>& heartbeat() noexcept { return signs_; }

    /// All that this rank has to write is written: when the others do not end with it within a deadline, it ends with this exit code, and no longer by SIGKILL.
    void all_is_written(int exit_code) noexcept { code_of_end_.store(exit_code, std::memory_order_relaxed); }

    /// While it lives the rank blocks in a call that waits for others.
    class wait {
    public:
        explicit wait(watchdog* of) noexcept : of_{of}
        {
            if (of_ != nullptr) {
                of_->waiting_.fetch_add(1, std::memory_order_relaxed);
            }
        }
        ~wait()
        {
            if (of_ != nullptr) {
                of_->progress();
                of_->waiting_.fetch_sub(1, std::memory_order_relaxed);
            }
        }
        wait(wait const&) = delete;
        wait& operator=(wait const&) = delete;

    private:
        watchdog* of_;
    };

private:
    struct slot;

    /// Another rank of this host, as this one sees it.
    struct other_rank {
        patience counts;
        bool was_stopped = false;  ///< in the middle of the stand-still in progress
    };

    void run();
    void look_at_own(seconds passed);
    void look_at_others(seconds passed);
    void judge(std::size_t r, other_rank& watched);
    void leave_host();

    watchdog_config config_;
    rank_id self_;
    std::atomic<std::uint64_t> signs_{0};
    std::atomic<int> waiting_{0};
    std::atomic<int> code_of_end_{-1};
    patience own_{};
    patience blocked_{};  ///< the same, waits included

    std::mutex mutex_;  // of all below
    std::condition_variable ended_;
    bool ends_ = false;
    std::string name_;  // of the shared memory, while it has one
    slot* slots_ = nullptr;
    std::size_t count_ = 0;
    std::vector<other_rank> others_;
    std::thread thread_;
};

}  // namespace rheo::inline v0
