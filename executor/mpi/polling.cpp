// SPDX-License-Identifier: Apache-2.0
#include "executor/mpi/polling.hpp"

#include <algorithm>
#include <thread>

#include <sched.h>

namespace rheo::inline v0::mpi {

namespace {

using namespace std::chrono_literals;

constexpr unsigned spins = 200;
constexpr unsigned probe = 16;   ///< polls, after which it shows whether the core is shared
constexpr auto slow_poll = 2us;  ///< a poll takes a tenth of it, but an MPI that yields by itself takes long where others run
constexpr auto slow_yield = 20us;
constexpr auto yields_for = 1ms;
constexpr auto looks_from = 100us;

}  // namespace

polling::clock::duration polling::sleep_after(clock::duration waited, bool shared)
{
    return std::clamp<clock::duration>(waited / (shared ? 8 : 64), 20us, 1ms);
}

bool polling::pause()
{
    ++count_;
    if (count_ < probe) {
        if (count_ == 1) {
            since_ = clock::now();
        }
        return false;
    }
    if (count_ == probe) {
        shared_ = clock::now() - since_ > probe * slow_poll;
    }
    if (!shared_ && count_ <= spins) {
        return false;
    }
    auto const now = clock::now();
    if (!shared_ && now - since_ < yields_for) {
        sched_yield();
        shared_ = clock::now() - now > slow_yield;
        return count_ % 64 == 0;
    }
    auto const sleep = sleep_after(now - since_, shared_);
    std::this_thread::sleep_for(sleep);
    return sleep >= looks_from || count_ % 16 == 0;
}

}  // namespace rheo::inline v0::mpi
