#pragma once
// SPDX-License-Identifier: Apache-2.0

// A thread that does jobs in the order in which they were given.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "executor/os/background_thread.hpp"

namespace rheo::inline v0 {

class job_thread {
public:
    job_thread() : thread_{background_thread([this] { run(); })} {}
    ~job_thread()  ///< when all jobs are done
    {
        {
            std::lock_guard const lock{mutex_};
            quit_ = true;
            changed_.notify_all();
        }
        thread_.join();
    }
    job_thread(job_thread const&) = delete;
    job_thread& operator=(job_thread const&) = delete;

    /// @param job throws nothing
    void add(std::function<void()> job)
    {
        std::lock_guard const lock{mutex_};
        jobs_.push_back(std::move(job));
        changed_.notify_all();
    }

    /// Until all jobs are done.
    void wait()
    {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [this] { return jobs_.empty() && !busy_; });
    }

private:
    void run()
    {
        std::unique_lock lock{mutex_};
        for (;;) {
            changed_.wait(lock, [this] { return quit_ || !jobs_.empty(); });
            if (jobs_.empty()) {
                return;
            }
            auto const job = std::move(jobs_.front());
            jobs_.pop_front();
            busy_ = true;
            lock.unlock();
            job();
            lock.lock();
            busy_ = false;
            changed_.notify_all();
        }
    }

    std::mutex mutex_{};
    std::condition_variable changed_{};
    std::deque<std::function<void()>> jobs_{};
    bool busy_ = false;
    bool quit_ = false;
    std::thread thread_;
};

}  // namespace rheo::inline v0
