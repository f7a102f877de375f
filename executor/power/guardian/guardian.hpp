#pragma once
// SPDX-License-Identifier: Apache-2.0

// The rank's side of the guardian: a small process (rheo-guardian) that knows how the clocks are restored and does it
// when its rank has gone without a word, however it went. It sits at the other end of a socket and watches the rank's
// process; it takes no signal but SIGKILL, and it is in a session of its own, so what ends a job does not end it first. Only
// what kills every process of a node (the batch system at the end of a job) reaches both at once; the next rank
// on the device then finds what was there before (power/device_claim.hpp).

#include <string>

#include <sys/types.h>

#include "executor/power/descriptor.hpp"
#include "executor/power/device_result.hpp"
#include "executor/power/guardian/restoration.hpp"

namespace rheo::inline v0::power {

/// Where the program is: as configured, else `rheo-guardian` next to the running program.
device_result<std::string> guardian_program(std::string const& configured);

class guardian {
public:
    static device_result<guardian> start(std::string const& program);
    guardian(guardian&&) noexcept = default;
    guardian& operator=(guardian&& other) noexcept;
    ~guardian();  ///< one that is still in charge restores the clocks at once

    /// From its answer on, it is in charge. @param claim the device's file (device_claim::file())
    device_result<done> arm(std::string const& claim, restoration const& how);

    /// The rank has restored the clocks itself: the guardian ends and does nothing.
    void dismiss();

    bool lives();
    int socket() const { return socket_.get(); }  ///< readable when it has ended
    pid_t process() const { return process_; }

private:
    guardian() = default;
    void end(char const* word);

    descriptor socket_;
    pid_t process_ = -1;
};

}  // namespace rheo::inline v0::power
