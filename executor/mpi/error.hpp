#pragma once
// SPDX-License-Identifier: Apache-2.0

// The two ways in which an MPI call can end badly. A lost peer is an event: it has its own type, which
// is no std::exception, and is caught in exactly one place (unless_peer_lost, below). Everything else is an
// error with code, call and sentence.

#include <stdexcept>
#include <string>

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0::mpi {

/// A rank of this generation is gone, or another rank has noticed that and revoked the communicators.
struct peer_lost {};

/// Does something that waits for peers; false when it was cut short by the loss of one.
template <class Work>
bool unless_peer_lost(Work&& work)
{
    try {
        work();
        return true;
    } catch (peer_lost const&) {
        return false;
    }
}

/// An MPI call failed for another reason. A type of its own, because a rank that ends in it makes no more MPI calls.
struct error : exit_error {
    explicit error(std::string const& message) : exit_error{exit_code::environment, message} {}
};

/// This rank comes back to others that hold it for lost and continue without it. It may do nothing more that they would notice: it ends by SIGKILL,
/// so this is no exit_error.
struct excluded_from_job : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// True for the error classes that a failure of a peer causes.
inline bool is_loss([[maybe_unused]] int code)
{
#ifdef MPIX_ERR_PROC_FAILED
    int error_class = code;
    MPI_Error_class(code, &error_class);
    return error_class == MPIX_ERR_PROC_FAILED || error_class == MPIX_ERR_PROC_FAILED_PENDING || error_class == MPIX_ERR_REVOKED;
#else
    return false;
#endif
}

/// Returns on success. @throws peer_lost, error
inline void check(int code, char const* call)
{
    if (code == MPI_SUCCESS) {
        return;
    }
    if (is_loss(code)) {
        throw peer_lost{};
    }
    char text[MPI_MAX_ERROR_STRING + 1] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw error{std::string{call} + " failed: " + text};
}

}  // namespace rheo::inline v0::mpi
