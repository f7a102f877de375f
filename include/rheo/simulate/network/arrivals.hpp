#pragma once
// SPDX-License-Identifier: Apache-2.0

// Messages that are all given beforehand: when each of them arrives.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rheo/simulate/network/message_network.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

template <class Time = seconds>
struct timed_message {
    rank_id from;
    rank_id to;
    bytes size;
    Time at{};  ///< at its first link

    friend constexpr bool operator==(timed_message const&, timed_message const&) = default;
};

/// The arrival of each message. At one time they come to a link in the order in which they are given. A refusal says what is wrong with the
/// network or the messages, or that a time does not fit. @param own links of ranks that are not those of their levels; null: there are none
template <class Model>
result<std::vector<typename Model::time>> arrivals(array_view<network_level<typename Model::link> const> levels,
                                                   array_view<timed_message<typename Model::time> const> messages,
                                                   rank_links<typename Model::link> const* own = nullptr)
{
    if (auto fault = network_fault(levels); !fault.empty()) {
        return failure{std::move(fault)};
    }
    message_network<Model, std::uint32_t> network{levels, own};
    for (std::size_t k = 0; k < messages.size(); ++k) {
        auto const& m = messages[k];
        auto const is_rank = [&](rank_id rank) { return rank.value >= 0 && rank.value < network.ranks(); };
        if (!is_rank(m.from) || !is_rank(m.to) || m.from == m.to || m.size.count < 0 || m.at < typename Model::time{} || !Model::fits(m.at)) {
            return failure{"message " + std::to_string(k) + " of " + std::to_string(m.size.count) + " bytes from rank " + std::to_string(m.from.value) +
                           " to rank " + std::to_string(m.to.value) + ": expected two different ranks below " + std::to_string(network.ranks()) +
                           ", at least 0 bytes and a time from 0 on"};
        }
        network.send(m.from, m.to, m.size, m.at, static_cast<std::uint32_t>(k));
    }
    std::vector<typename Model::time> times(messages.size());
    while (auto const arrived = network.next()) {
        if (!Model::fits(arrived->at)) {
            return failure{"message " + std::to_string(arrived->note) +
                           " arrives after the largest time of this network model (2^63 - 1 ns where time is whole)"};
        }
        times[arrived->note] = arrived->at;
    }
    return times;
}

/// At time 0 each rank sends to each other, by rank and then by receiver.
template <class Time = seconds>
std::vector<timed_message<Time>> all_pairs(int ranks, bytes size)
{
    std::vector<timed_message<Time>> messages;
    for (rank_id from{0}; from.value < ranks; ++from) {
        for (rank_id to{0}; to.value < ranks; ++to) {
            if (from != to) {
                messages.push_back({from, to, size, {}});
            }
        }
    }
    return messages;
}

}  // namespace rheo::inline v0
