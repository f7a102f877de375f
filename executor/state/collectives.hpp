#pragma once
// SPDX-License-Identifier: Apache-2.0

// The few small collective operations of a section, made of messages whose waits end with the generation
// (an MPI collective could block ranks that can no longer be reached). All of them go up
// and down one binomial tree over the members: 2 log2(members) messages long, and 2 (members - 1) messages in all, twice as many at most where
// words are many.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/mpi/messenger.hpp"

namespace rheo::inline v0 {

/// What all members reduce in one section: maxima of doubles and sums of integers, so order cannot matter.
struct step_scalars {
    std::vector<double> maxima;
    std::vector<std::int64_t> sums;
};

/// In place on every member. @pre same sizes everywhere, no NaN. @throws mpi::peer_lost
void all_reduce(mpi::messenger& messages, step_scalars& scalars);

/// Whether all members have the same numbers; the same answer on all of them. @throws mpi::peer_lost
bool same_everywhere(mpi::messenger& messages, std::span<std::uint64_t const> numbers);

/// Waits until all members have come here. Polled, with the pace of any wait: inside an agreement an MPI would spin. @throws mpi::peer_lost
void wait_for_all(mpi::messenger& messages);

/// The value of each member, by position. @throws mpi::peer_lost
std::vector<std::vector<std::int64_t>> all_gather(mpi::messenger& messages, std::span<std::int64_t const> mine);

/// The text of each member, by position. @throws mpi::peer_lost
std::vector<std::string> gather_texts(mpi::messenger& messages, std::string const& mine);

/// The value of the first member. @throws mpi::peer_lost
void broadcast(mpi::messenger& messages, std::vector<std::int64_t>& words);
/// The text of the first member. @throws mpi::peer_lost
void broadcast(mpi::messenger& messages, std::string& text);

}  // namespace rheo::inline v0
