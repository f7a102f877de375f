#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether the ranks of a job move data by NCCL: each says what it has, and all come to the same answer. Bits do not depend on it.

#include <memory>
#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "executor/device/backend.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/nccl/library.hpp"

namespace rheo::inline v0 {

/// What a rank has.
struct nccl_offer {
    std::shared_ptr<nccl::library const> library{};  ///< null: not asked for, or see why
    std::string why{};                               ///< there is none
    std::string device{};                            ///< what ranks that share a device have in common
    int multiprocessors = 0;                         ///< of it
};

/// Opens NCCL where the config may use it.
nccl_offer offer_nccl(run_config const& config, compute_backend const& backend);

struct transport_answer {
    bool by_nccl = false;
    int multiprocessors = 0;  ///< of this rank's device, its share
    std::string reason{};     ///< why not, where it was asked for or would have been of use
};

/// The same on all ranks. @throws mpi::peer_lost
transport_answer agree_on_transport(mpi::messenger& messages, run_config const& config, nccl_offer const& mine);

}  // namespace rheo::inline v0
