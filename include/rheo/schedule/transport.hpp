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

/// No transfers at all: what one rank has computed every rank sees. For programs before lowering.
struct shared_memory {};

}  // namespace rheo::inline v0
