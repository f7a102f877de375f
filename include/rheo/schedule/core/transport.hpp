#pragma once
// SPDX-License-Identifier: Apache-2.0

// How a send and its receive meet. The checks and the timeline take a transport as a type; which one
// the executor uses is its own choice, and the strictest one is the one to prove.

namespace rheo::inline v0 {

/// A send waits until its receive is reached, and the receive for its send; no tags, so both must be
/// the next transfer between the two ranks.
struct rendezvous {};

/// Sends and receives are posted and never wait; a computation waits for its message, whose transfer
/// begins when both are posted. What a worker over tagged non-blocking messages does.
struct nonblocking {};

/// Messages between two ranks wait in queues of `depth` places: a send waits for a place, a receive for the oldest message,
/// which must be its own. One queue per ordered pair of ranks, or one for activations and one for gradients.
struct fifo {
    int depth = 1;
    bool by_direction = false;
};

/// A send never waits; a receive waits for its own message, whatever came before it.
struct tagged {};

/// Rendezvous of lists that show transfers without all computations: what is sent is taken to be there.
struct rendezvous_of_given {};

/// No transfers at all: what one rank has computed every rank sees. For programs before lowering.
struct shared_memory {};

}  // namespace rheo::inline v0
