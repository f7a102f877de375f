#pragma once
// SPDX-License-Identifier: Apache-2.0

// The pace of waits that poll. First a wait spins, for what is about to come. Then it yields, as long as no other thread wants the
// core. Then it sleeps, each time for a part of the time waited so far, so that its polls grow with the logarithm of its length. Polls that take
// long show that ranks share the core: then it sleeps almost at once. On a host with more ranks than cores those that
// wait would otherwise take the cores from the one that they all wait for, and a recovery would need the square of the ranks in polls.

#include <chrono>

namespace rheo::inline v0::mpi {

class polling {
public:
    using clock = std::chrono::steady_clock;

    /// How long to sleep after so long a wait; the message is noticed that much later at most. A part of 1/64 costs a step next to
    /// nothing; where the core is shared, sleeping longer is what lets the others come.
    static clock::duration sleep_after(clock::duration waited, bool shared);

    /// Between two polls. @returns true when it is time to look at what is dearer to look at than the message
    bool pause();

private:
    unsigned count_ = 0;   ///< polls of the wait in progress
    bool shared_ = false;  ///< another thread wants the core, too
    clock::time_point since_{};
};

}  // namespace rheo::inline v0::mpi
