#pragma once
// SPDX-License-Identifier: Apache-2.0

// Ranks that share a device share one small file on their host, named after the device. Each keeps its request there;
// anyone who holds the file's lock is the one writer, and sets the highest request of all that live: no process is slowed below
// its plan, and a device whose ranks disagree only costs energy. A rank's place in the file is a lock on one byte,
// which the kernel takes back when the process is gone, however it went; so there is no election and no dead
// rank counts. The first one leaves there how the clocks are restored; the last one does it. Ranks of other users have
// files of their own and are not seen.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "executor/power/descriptor.hpp"
#include "executor/power/device_result.hpp"
#include "executor/power/guardian/restoration.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::power {

/// Where such files are: /dev/shm, which ends with the host, else the folder for temporary files.
std::filesystem::path default_claims();

class device_claim {
public:
    static constexpr int most_ranks = 64;

    /// Takes a place in the device's file. @param key of the device (PowerDevice)
    static device_result<device_claim> join(std::filesystem::path const& folder, std::string const& key);

    /// What a rank does first, while no other can: `choose` says how it would restore the clocks, and learns whether nobody
    /// else has a clock set. @return how they are really restored: anyone who set a clock first knows what was there before
    device_result<restoration> begin(std::function<restoration(bool untouched)> const& choose);

    struct outcome {
        megahertz holds;       ///< the highest request, which is set now
        bool changed = false;  ///< by this call
    };

    /// Notes the request of this rank; when the highest one is not what is set, `set` is called with it.
    device_result<outcome> request(megahertz clock, std::function<device_result<done>(megahertz)> const& set);

    /// Gives the place back, and calls `restore` when no other process lives. The claim is of no use after that.
    device_result<done> leave(std::function<device_result<done>()> const& restore);

    int others() const;  ///< ranks that live, without this one
    std::string const& file() const { return path_; }

private:
    std::string path_;
    descriptor file_;
    int place_ = -1;
};

/// For a process that has outlived a rank: restores the clocks when no process of the file lives.
/// @return whether it did
device_result<bool> restore_if_last(std::string const& file, restoration const& how);

}  // namespace rheo::inline v0::power
