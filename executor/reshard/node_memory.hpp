#pragma once
// SPDX-License-Identifier: Apache-2.0

// Memory that each rank lends to the others of its node, which read it where it is. The kernel has it under no name (memfd), so nothing is left
// behind when processes are killed, and the size of /dev/shm does not limit it.

#include <cstddef>
#include <vector>

#include "executor/mpi/communicator.hpp"

namespace rheo::inline v0::detail {

class node_memory {
public:
    /// Collective over the communicator. @param bytes that this rank lends; they take room when they are first written. @throws mpi::peer_lost, mpi::error
    node_memory(mpi::communicator const& comm, std::size_t bytes);
    node_memory(node_memory const&) = delete;
    node_memory& operator=(node_memory const&) = delete;
    ~node_memory();

    std::byte* mine() const { return mine_; }  ///< null: this rank lends none
    std::size_t bytes() const { return mine_ == nullptr ? 0 : bytes_; }

    /// Whether that rank of the communicator reads what this one lends.
    bool reaches(int rank) const { return mine_ != nullptr && readers_[static_cast<std::size_t>(rank)]; }
    /// What another rank of the communicator lends. Null: it lends nothing, or is on another node, or the node's ranks cannot map each other's memory
    std::byte const* of(int rank) const { return mapped_[static_cast<std::size_t>(rank)].data; }

private:
    struct mapping {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
    };

    void unmap();

    std::byte* mine_ = nullptr;
    std::size_t bytes_;
    std::vector<mapping> mapped_;  ///< by rank
    std::vector<bool> readers_;
};

}  // namespace rheo::inline v0::detail
