#pragma once
// SPDX-License-Identifier: Apache-2.0

// How an NCCL call ends badly: an error with call and sentence. Whether a peer is gone is not for NCCL to tell: inside a node it waits silently for one that is,
// and what it reports of the network may be the loss of a rank or of a cable. Only the MPI's generation says who lives.

#include <string>

#include "executor/nccl/abi.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0::nccl {

struct error : exit_error {
    error(result error_code, std::string const& message) : exit_error{exit_code::environment, message}, code{error_code} {}
    result code;  ///< success: NCCL was not asked
};

}  // namespace rheo::inline v0::nccl
