#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a member of a group gives another one in an exchange, and gets. Each floor names peers in its own way: members of a stage, ranks of a job, ranks of a
// communicator.

#include <cstddef>
#include <span>

namespace rheo::inline v0 {

template <class Peer>
struct outgoing_part {
    Peer to;
    std::span<std::byte const> data;
};

template <class Peer>
struct incoming_part {
    Peer from;
    std::span<std::byte> data;
};

}  // namespace rheo::inline v0
