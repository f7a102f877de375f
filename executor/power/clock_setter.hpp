#pragma once
// SPDX-License-Identifier: Apache-2.0

// Sets clocks from a thread of its own: a change takes milliseconds, computations do not wait for it. The worker leaves
// a request, which costs a store and a system call; the thread takes the latest one, and sends nothing where nothing
// changes. Everything else that has to do with clocks happens on that thread too: the choice of the rung, the
// guardian and its replacement, ranks that share the device, putting back. Without a guardian no clock is touched.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "executor/power/descriptor.hpp"
#include "executor/power/guardian/guardian.hpp"
#include "executor/power/permission/device_claim.hpp"
#include "executor/power/permission/ladder.hpp"

namespace rheo::inline v0::power {

struct setter_config {
    ladder_config ladder;
    std::string guardian;  ///< the program; empty: rheo-guardian next to this one
    std::filesystem::path claims = default_claims();
    seconds look{0.5};                                    ///< how often the requests of other ranks are looked at
    std::function<void(std::string const& message)> say;  ///< called from the thread; each thing is reported once
};

/// What the setter has done by now.
struct setter_status {
    bool ready = false;  ///< it has begun: rung and sentence are known
    clock_rung rung = clock_rung::advise_only;
    std::string message;             ///< on which rung it is, and why not higher
    std::optional<megahertz> holds;  ///< what the device is locked to, as far as this rank knows; none: nothing
    std::int64_t switches = 0;       ///< that this rank has made
    std::int64_t failures = 0;
    seconds longest{};       ///< a switch, from the call to its end
    seconds total{};         ///< all switches; divided by their number it is the latency to plan with
    seconds longest_wait{};  ///< from a request to the end of the switch that it led to
};

class clock_setter {
public:
    clock_setter(any_power_device device, setter_config config);
    ~clock_setter();  ///< restores the clocks
    clock_setter(clock_setter const&) = delete;
    clock_setter& operator=(clock_setter const&) = delete;

    /// The clock that this rank wants from now on. Never waits. @pre above zero
    void request(megahertz clock) noexcept;

    setter_status status() const;

    /// Waits until the last request was dealt with, whatever came of it. @return false when that takes longer
    bool settled_within(seconds patience) const;

private:
    void run();
    bool begin();
    bool charge_guardian();
    void follow_request();
    void advise(std::string const& why);
    void end();
    void wake() noexcept;
    void report(std::string const& message);
    void note_rung();

    setter_config config_;
    clock_ladder ladder_;
    std::optional<device_claim> claim_;
    restoration back_;
    std::optional<guardian> guardian_;
    bool advises_ = false;                   ///< no clock is set any more, whatever the ladder says
    double failed_ = 0.0;                    ///< the request that could not be met: not tried again until there is another one
    std::optional<device_error_code> said_;  ///< of the last failure, until a success

    std::atomic<double> requested_clock_{0.0};
    std::atomic<std::int64_t> requested_at_{0};  ///< in ns of the steady clock
    std::atomic<std::uint64_t> requests_{0};
    std::atomic<std::uint64_t> handled_{0};
    std::atomic<bool> ends_{false};
    descriptor wake_fd_;

    mutable std::mutex mutex_;  // of the status
    setter_status status_;
    std::thread thread_;
};

}  // namespace rheo::inline v0::power
