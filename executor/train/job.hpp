#pragma once
// SPDX-License-Identifier: Apache-2.0

// What every rank of a job knows from start to end: the model, its state collection, the data, the
// configuration. It is the same on all ranks and never changes, so plans and results can be computed
// anywhere from it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/checkpoint/fingerprint_line.hpp"
#include "executor/clocks/frontier_cache.hpp"
#include "executor/clocks/rank_device.hpp"
#include "executor/config/config.hpp"
#include "executor/config/inject.hpp"
#include "executor/data/data.hpp"
#include "executor/device/backend.hpp"
#include "executor/faults/watchdog.hpp"
#include "executor/records/energy_account.hpp"
#include "executor/records/records.hpp"
#include "rheo/model/model.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Seconds since the launch message, by the steady clock: no host's time of day counts, since one that is ahead would end a
/// limited job at once. Zero is the same moment on all ranks of a host; on another host it is later by the way of the message.
class launch_clock {
public:
    /// @param launched when the launch message was sent, by this host's steady clock
    explicit launch_clock(std::chrono::steady_clock::time_point launched = {}) : launched_{launched} {}

    seconds now() const { return {std::chrono::duration<double>(std::chrono::steady_clock::now() - launched_).count()}; }

private:
    std::chrono::steady_clock::time_point launched_;
};

struct job {
    model_description model;             ///< as it runs: fused or not
    collection state;
    std::vector<reduction_unit> units;
    run_config config;
    dataset const* data;
    launch_clock clock;
    records* record;
    fault_injector inject;
    compute_backend* backend;                        ///< what this rank computes with
    watchdog* watch = nullptr;           ///< none: nobody looks whether this rank hangs
    std::vector<fingerprint_line> fingerprint{};
    std::function<bool()> asked_to_stop{};  ///< by a signal or because time is up; none: never
    std::function<bool(step_id)> asked_to_leave{};  ///< this rank alone, after this step; none: never
    rank_device* device = nullptr;       ///< none: no clock is set, no energy is read
    frontier_cache* clocks = nullptr;        ///< none: plans have no clocks
    energy_account* energies = nullptr;  ///< of all ranks; there where there is a device

    /// The rank has got something done.
    void progress() const
    {
        if (watch != nullptr) {
            watch->progress();
        }
    }

    /// For those who know no watchdog, only its counter.
    std::atomic<std::uint64_t>* heartbeat() const { return watch == nullptr ? nullptr : &watch->heartbeat(); }

    int layers() const { return static_cast<int>(model.layers.size()); }
    int microbatches() const { return config.train.microbatches; }
    microbatch_shape shape() const { return config.train.microbatch; }
    int items() const { return microbatches() * shape().slices; }  ///< of a step: contributions of a use
};

}  // namespace rheo::inline v0
