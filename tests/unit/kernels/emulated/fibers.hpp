#pragma once
// SPDX-License-Identifier: Apache-2.0

// Threads that take turns only where they say so. Each has a stack; the caller of run() is the scheduler. A fiber runs
// jobs one after the other, so that a grid of many blocks makes its stacks once.

#include <memory>
#include <vector>

namespace emulated {

class fiber_set {
public:
    /// Calls job(context) on fiber `index` when it is resumed for the first time after begin().
    using job = void (*)(void* context);

    fiber_set();
    ~fiber_set();
    fiber_set(fiber_set const&) = delete;
    fiber_set& operator=(fiber_set const&) = delete;

    /// Makes fibers 0 .. count-1 ready to begin the job. @pre each has ended its last one
    void begin(int count, job call, void* context);
    /// Runs fiber `index` until it pauses or ends; true when it has ended. Rethrows what came out of the job.
    bool resume(int index);
    /// Returns from a fiber to the scheduler, until it is resumed.
    void pause();
    /// Drops all fibers, also those in the middle of a job: what they own on their stacks is not destroyed.
    void abandon();

private:
    struct fiber;
    static void enter(unsigned high, unsigned low);
    void switch_to_scheduler(fiber& from, bool ends);

    struct scheduler;
    std::unique_ptr<scheduler> scheduler_;
    std::vector<std::unique_ptr<fiber>> fibers_;
    fiber* running_ = nullptr;
};

}  // namespace emulated
