#pragma once
// SPDX-License-Identifier: Apache-2.0

// What this rank works with: data, device, records, clock, watchdog. run() owns them for the time of the job; the trainer and its worker use them, and
// other parts get the one that they need.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "executor/clocks/frontier_cache.hpp"
#include "executor/clocks/rank_device.hpp"
#include "executor/config/inject.hpp"
#include "executor/data/data.hpp"
#include "executor/device/backend.hpp"
#include "executor/faults/watchdog.hpp"
#include "executor/nccl/library.hpp"
#include "executor/os/launch_clock.hpp"
#include "executor/records/energy_account.hpp"
#include "executor/records/records.hpp"

namespace rheo::inline v0 {

/// Requests from outside the job, polled between two steps; none: never.
struct outside_requests {
    std::function<bool()> stop{};          ///< by a signal or because time is up
    std::function<bool(step_id)> leave{};  ///< this rank alone, after this step

    bool to_stop() const { return stop && stop(); }
    bool to_leave(step_id after) const { return leave && leave(after); }
};

struct rank_services {
    dataset const& data;
    compute_backend& backend;
    records& record;
    launch_clock clock{};
    fault_injector inject{};
    watchdog* watch = nullptr;  ///< none: no watchdog
    outside_requests asked{};
    rank_device* device = nullptr;                ///< none: no clock is set, no energy is read
    frontier_cache* frontiers = nullptr;          ///< none: plans have no clocks
    energy_account* energies = nullptr;           ///< of all ranks; there where there is a device
    std::shared_ptr<nccl::library const> nccl{};  ///< none: everything goes by MPI
    int multiprocessors = 0;                      ///< of this rank's device, its share, for kernels of NCCL
    bool mpi_reaches_device = false;              ///< messages of MPI may lie where a device computes

    /// The rank has got something done.
    void progress() const
    {
        if (watch != nullptr) {
            watch->progress();
        }
    }

    /// For those who know no watchdog, only its counter.
    std::atomic<std::uint64_t>* heartbeat() const { return watch == nullptr ? nullptr : &watch->heartbeat(); }
};

}  // namespace rheo::inline v0
