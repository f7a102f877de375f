#pragma once
// SPDX-License-Identifier: Apache-2.0

// A communicator of the stand-in: it comes up, and what is put into a stream for it runs there, in the order of issue.

#include <memory>
#include <optional>

#include "modes.hpp"
#include "operation.hpp"
#include "room.hpp"

namespace standin {

/// Remembers the sentence for ncclGetLastError.
ncclResult_t refused(ncclResult_t code, std::string const& sentence);
std::string& last_error();

class communicator : public std::enable_shared_from_this<communicator> {
public:
    /// @param most_blocks of its kernels: those of all communicators of a process have to find room on its device at once
    communicator(ncclUniqueId const& id, int ranks, int rank, int most_blocks, modes how);
    ~communicator();

    room const& all() const { return room_; }
    /// Between two calls; else the next one is refused.
    ncclResult_t ready() const;
    /// A look at it, which is what lets a call in progress go on.
    ncclResult_t poll();
    ncclResult_t put(operations some, cudaStream_t stream);
    bool is_idle() const;
    void finalize() { is_finalized_ = true; }
    /// Its operations end when their streams look at them next.
    void abort();

private:
    struct in_stream;
    struct parked {
        operations what;
        cudaStream_t stream;
    };
    bool is_broken();
    void put_now(parked some);
    void note(operations const& begun) const;

    modes how_;
    room room_;
    bool is_up_ = false;
    bool is_aborted_ = false;
    bool is_broken_ = false;
    bool is_finalized_ = false;
    int polls_left_;
    int most_blocks_;
    std::optional<parked> parked_;
};

}  // namespace standin
