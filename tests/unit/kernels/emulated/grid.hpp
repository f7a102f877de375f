#pragma once
// SPDX-License-Identifier: Apache-2.0

// Runs a grid on one processor: blocks one after the other, the threads of a block as fibers that take turns where they wait for
// each other. In which order blocks and threads come is chosen by a number, so a result that depends on the order
// shows; shared memory is poisoned before each block, so what is read before it is written shows; threads that can never meet are
// a fault with a sentence, not a hang.

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <stdexcept>

namespace emulated {

/// A kernel broke a rule of the device.
struct fault : std::logic_error {
    using std::logic_error::logic_error;
};

struct extent {
    unsigned x = 1;
    unsigned y = 1;
    unsigned z = 1;
    constexpr std::uint64_t volume() const { return std::uint64_t{x} * y * z; }
};

/// What the running thread sees.
struct position {
    extent thread, block, block_size, grid_size;
};

/// 0: first to last, side by side; 1: last to first, each warp as far ahead of the others as it can get; further even numbers: shuffled, warps ahead;
/// odd numbers: shuffled at every turn.
void set_order(unsigned order);
/// Whether warps get ahead of each other in the present order.
bool runs_ahead();

/// How many threads of how many blocks ran since the program began, in how many launches of kernels.
struct work_done {
    std::uint64_t launches = 0;
    std::uint64_t blocks = 0;
    std::uint64_t threads = 0;
    std::uint64_t graphs = 0;  ///< that were launched; their kernels count as launches, too
};
work_done work();
void count_graph();
/// A library's product, which is computed without a kernel, counts as the launch that it would be.
void count_launch();

/// Calls kernel(arguments) in each thread of each block. @throws fault
void run_grid(extent grid, extent block, std::size_t shared_bytes, void (*kernel)(void*), void* arguments);

position const& here();
void* shared_memory();

enum class meeting : std::uint8_t {
    none,
    block_barrier,
    block_or,
    block_and,
    block_count,
    warp_barrier,
    warp_shuffle,
    warp_ballot,
    warp_add,
    warp_min,
    warp_max,
};

/// What a thread brings to a meeting with others of its block, or of its warp.
struct arrival {
    meeting kind = meeting::none;
    unsigned mask = 0xffffffffU;  ///< of the warp
    std::uint64_t value = 0;
    int source = 0;  ///< of a shuffle: the lane whose value is wanted
    std::source_location place;
};

/// Waits until all who are meant have come with the same kind and mask; returns what the kind says of all their values. @throws fault
std::uint64_t meet(arrival const& brought);

/// The running thread's number in its warp.
int lane();

}  // namespace emulated
