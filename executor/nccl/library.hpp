#pragma once
// SPDX-License-Identifier: Apache-2.0

// NCCL, opened when the program runs: it is hundreds of megabytes, and a machine without it builds and runs the same program.

#include <string>

#include "executor/nccl/abi.hpp"

namespace rheo::inline v0::nccl {

class library {
public:
    static constexpr char const* default_name = "libnccl.so.2";
    /// The first that can be trusted with losses: its communicators are not blocking, and an abort of one ends what its kernels wait for.
    static constexpr int least_version = 22703;
    /// The first in which two ranks of a communicator may use one device, when NCCL_MULTI_RANK_GPU_ENABLE is 1.
    static constexpr int shares_devices_from = 23000;

    /// Opens it; a name without a slash is looked up as the loader does, and then where it was when this was configured. It stays open.
    /// @throws error when it cannot be opened, lacks a function, or is older than `least_version`
    explicit library(std::string const& name = default_name);
    library(library const&) = delete;
    library& operator=(library const&) = delete;

    int version() const { return version_; }  ///< 22809 is 2.28.9
    functions const& call() const { return call_; }

    /// Names a communicator; every member gets it from the one that made it. @throws error
    unique_id new_id() const;

    /// Returns on success and in progress. @param of the communicator asked; may be null @throws error
    void check(result code, char const* name, comm of = nullptr) const;

private:
    functions call_;
    int version_ = 0;
};

/// 2.28.9 for 22809.
std::string version_text(int version);

/// The version of NCCL, which is opened for that; where there is none, why.
struct found_nccl {
    int version = 0;
    std::string error_if_none;
};
found_nccl find_nccl(std::string const& name = library::default_name);

}  // namespace rheo::inline v0::nccl
